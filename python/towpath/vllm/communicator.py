# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""The class that vLLM calls for collectives of a group."""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist
from vllm.distributed.device_communicators.cpu_communicator import CpuCommunicator

from towpath.torch import sum_in_place

# The groups for which vLLM's own communicator makes shared memory.
_OWN_SHARED_MEMORY = ("tp", "pp")


class TowpathCommunicator(CpuCommunicator):
    """vLLM's communicator of CPUs with every collective through torch.distributed's device group.

    That group has the platform's backend, which is Towpath's.
    """

    def __init__(
        self,
        cpu_group: dist.ProcessGroup,
        device: torch.device | None = None,
        device_group: dist.ProcessGroup | None = None,
        unique_name: str = "",
        **options: Any,
    ) -> None:
        """Takes the arguments of vLLM's own communicator."""
        is_own = unique_name.startswith(_OWN_SHARED_MEMORY)
        name = f"towpath:{unique_name}" if is_own else unique_name
        super().__init__(cpu_group, device, device_group, name, **options)
        assert self.dist_module is dist, "vLLM chose a communicator of its own"
        self.unique_name = unique_name
        self._sum_in_place = sum_in_place(self.device_group)

    def all_reduce(self, input_: torch.Tensor) -> torch.Tensor:
        """The sum over the ranks, in place. It bypasses the layers of torch.distributed, whose code
        is no longer in the caches after a layer of the model.
        """
        self._sum_in_place(input_)
        return input_
