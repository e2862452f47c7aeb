# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Machines that run kernels in source form."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from towpath.errors import ConfigError

if TYPE_CHECKING:
    from towpath import _core
    from towpath.kernels.chip_kernel import Fabric, KernelRun, MemoryBlock, SourceKernel


class RunsKernels(ABC):
    """A chip, or a cluster of chips, whose cores run kernels in TT-Metalium's source form."""

    @abstractmethod
    def _kernel_machine(self) -> Any:
        """The machine in the form that the compiled core reads."""

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
        link_faults: Sequence[str] = (),
    ) -> KernelRun:
        """Compiles kernels with g++ and runs them together, one program per chip.

        Args:
            kernels: files and the cores that they run on.
            semaphores: initial values of the semaphores 0, 1, ... of every core.
            write: bytes that are in memory when the kernels start.
            read: bytes to read when they have ended; `data` is their number.
            seed: seed of all random parts.
            cycles_max: longest run in cycles; a longer run is an error; 0: no limit; None:
                100,000,000.
            fabric: routers that run alongside the kernels: packets stay in their line ("1d",
                "1d_ring"), or turn ("2d", "2d_torus"); None: no routers.
            finds_hazards: True to check for hazards, including those that have no effect in this
                run.
            link_faults: links between chips that fail, such as "0:9,at=20us,training=5us".

        Returns:
            Times, profiler zones, recorded values, printed lines, and the bytes of `read`.

        Raises:
            ConfigError: a kernel does not compile, uses a feature that cores do not have, accesses
            memory that does not exist, or makes an invalid call, or there is no link that could
            fail. DeadlockError: kernels wait
            forever. RunError: kernels still run after `cycles_max`. HazardError: kernels on several
            chips contain a hazard with Ethernet or the fabric, or a kernel uses bytes before their
            barrier.
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
            link_faults=_faults_of(self._kernel_machine(), link_faults),
        )


def _faults_of(machine: Any, texts: Sequence[str]) -> list[_core.LinkFaults]:
    """The faults of each link of a machine, by its number."""
    from towpath import _core
    from towpath.collectives.link_faults import links_of, parse_link_fault

    if not texts:
        return []
    if not isinstance(machine, _core.ChipCluster):
        raise ConfigError("a chip on its own has no links; load a cluster of chips")
    by_link = links_of(machine, [parse_link_fault(text) for text in texts])
    return [
        by_link[number].core() if number in by_link else _core.LinkFaults()
        for number in range(len(machine.links))
    ]
