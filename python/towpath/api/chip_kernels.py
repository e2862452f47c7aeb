# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Machines that run kernels in source form."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from towpath.kernels.chip_kernel import Fabric, KernelRun, MemoryBlock, SourceKernel


class RunsKernels(ABC):
    """A chip, or several, whose cores run kernels in TT-Metalium's source form."""

    @abstractmethod
    def _kernel_machine(self) -> Any:
        """The machine as the compiled core sees it."""

    def run_kernels(
        self,
        kernels: Sequence[SourceKernel],
        *,
        semaphores: Sequence[int] = (),
        write: Sequence[MemoryBlock] = (),
        read: Sequence[MemoryBlock] = (),
        seed: int = 1,
        cycles_max: int | None = None,
        fabric: Fabric | None = None,
        finds_hazards: bool = True,
    ) -> KernelRun:
        """Compiles kernels with g++ and runs them together, one program per chip.

        Args:
            kernels: files and the cores that they run on.
            semaphores: initial values of the semaphores 0, 1, ... of every core.
            write: bytes that are in memory when the kernels start.
            read: bytes to read when they have ended; `data` is their number.
            seed: of whatever is random.
            cycles_max: longest run, in cycles; one that takes more is an error; 0: no limit; None:
                100,000,000.
            fabric: routers that run beside the kernels: packets stay in their line ("1d",
                "1d_ring"), or turn ("2d", "2d_torus"); None: none.
            finds_hazards: whether mistakes are looked for, also those that do no harm this time.

        Returns:
            Times, profiler zones, recorded values, printed lines, and the bytes of `read`.

        Raises:
            ConfigError: a kernel does not compile, uses what no core has, touches memory that is
                not there, or makes a call that cannot be carried out.
            DeadlockError: kernels wait forever.
            RunError: kernels go on after `cycles_max`.
            HazardError: kernels on several chips make a mistake with Ethernet or the fabric, or one
                uses bytes before their barrier.
        """
        from towpath.kernels.chip_kernel import run_source_kernels

        return run_source_kernels(
            self._kernel_machine(),
            kernels,
            semaphores=semaphores,
            write=write,
            read=read,
            seed=seed,
            cycles_max=cycles_max,
            fabric=fabric,
            finds_hazards=finds_hazards,
        )
