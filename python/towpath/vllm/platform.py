# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""vLLM's platform of CPUs, with another backend of torch.distributed and another communicator."""

from __future__ import annotations

import os
from typing import Any

from vllm.platforms import cpu_platform_plugin
from vllm.utils.import_utils import resolve_obj_by_qualname

import towpath.torch
from towpath.torch.backend import BACKEND
from towpath.torch.simulation import SIMULATED_BACKEND
from towpath.vllm import LIVE, VARIABLE

# With extensions for some processors, vLLM has a platform of CPUs for them.
_CpuPlatform: Any = resolve_obj_by_qualname(cpu_platform_plugin())


def _backend() -> str:
    machine = os.environ[VARIABLE]
    if machine == LIVE:
        return BACKEND
    towpath.torch.simulate(machine)
    return SIMULATED_BACKEND


class TowpathPlatform(_CpuPlatform):
    """CPUs whose ranks communicate over Towpath."""

    dist_backend: str = _backend()

    @classmethod
    def get_device_communicator_cls(cls) -> str:
        """The class that vLLM creates for each of its groups."""
        return "towpath.vllm.communicator.TowpathCommunicator"
