# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Private names for tests of `towpath doctor` and `towpath job`."""

from towpath.api.doctor import diagnose
from towpath.api.job import read_job
from towpath.operators.job import EXTRAPOLATION_ERROR_PCT

__all__ = ["EXTRAPOLATION_ERROR_PCT", "diagnose", "read_job"]
