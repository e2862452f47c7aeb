# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Backends of torch.distributed: `towpath`, and `towpath-sim` with the time of a described machine.

>>> import torch.distributed as dist
>>> import towpath.torch                                              # doctest: +SKIP
>>> dist.init_process_group("towpath")                                # doctest: +SKIP
"""

from __future__ import annotations

from towpath.errors import ConfigError

try:
    import torch  # noqa: F401
except ImportError as error:
    raise ConfigError("towpath.torch needs PyTorch; pip install 'towpath[torch]'") from error

from towpath.torch.backend import register, sum_in_place
from towpath.torch.report import CollectiveCost, CommunicationReport
from towpath.torch.simulation import Simulation, simulate

__all__ = ["simulate", "Simulation", "CommunicationReport", "CollectiveCost", "sum_in_place"]

register()
