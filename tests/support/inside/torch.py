# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""The torch backend: how it is built, what it reports and what it simulates."""

from towpath.torch import build
from towpath.torch.backend import create
from towpath.torch.build import load_extension
from towpath.torch.report import Account
from towpath.torch.simulation import Simulation, _with_shares
