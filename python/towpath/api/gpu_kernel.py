# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Kernels as a program handles them: `towpath.kernel`."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from towpath.api.kernel_profile import KernelProfile
from towpath.errors import ConfigError
from towpath.kernels.gpu_kernel import (
    KERNEL_LIMIT_S,
    GpuKernel,
    SimulatedGpus,
    existing_source,
)
from towpath.specs.machine_spec import MachineSpec

if TYPE_CHECKING:
    from towpath.collectives.live_communicator import Communicator
    from towpath.kernels.profile import Recorded


@dataclass(frozen=True)
class ProgramRun:
    """A run of a source's main() on all PEs.

    Attributes:
        status: the highest that main() returned on a PE; 0 means success.
        time_us: when the last PE had ended, in simulated microseconds; None for a live run.
        profile: where the time went; None unless that was asked for.
        remarks: sentences about what is no error, but relies on more than NVSHMEM promises; of
            simulated runs.
    """

    status: int
    time_us: float | None
    profile: KernelProfile | None = field(default=None, compare=False)
    remarks: tuple[str, ...] = ()


class Kernel(GpuKernel):
    """A CUDA source with NVSHMEM, compiled for this host; `kernel` makes one."""

    def load(
        self,
        machine: str,
        pes: int,
        *,
        settings: Iterable[str] = (),
        seed: int = 1,
        profile: bool = False,
        kernel_limit_s: float = KERNEL_LIMIT_S,
        race_check: bool = False,
    ) -> SimulatedGpus:
        """PEs on a described machine, on which kernels are launched by name.

        Args:
            machine: a name that `machines` lists, or a file, of a cluster of GPUs.
            pes: how many PEs; PE n is on GPU n.
            settings: other values: "gpu_cost.kernel.queue_pairs=32".
            seed: of the simulation.
            profile: record what blocks do, for `KernelProfile.of`.
            kernel_limit_s: processor time for which a thread of a kernel may compute without a
                wait, in seconds; 0: any.
            race_check: whether blocks that race for a word of global memory are an error; each
                access is then looked up.

        Returns:
            The PEs, with their symmetric memory.

        Raises:
            CompilationError: the source does not compile; the text is the compiler's.
            ConfigError: the machine is not one of GPUs, or has fewer of them.
        """
        return self.simulate(
            _gpus(machine, settings), pes, seed=seed, records_max=_records(profile),
            kernel_limit_s=_checked_limit(kernel_limit_s), race_check=race_check,
        )  # fmt: skip

    def run(
        self,
        machine: str,
        pes: int,
        *,
        arguments: Sequence[str] = (),
        settings: Iterable[str] = (),
        seed: int = 1,
        profile: bool = False,
        kernel_limit_s: float = KERNEL_LIMIT_S,
        race_check: bool = False,
    ) -> ProgramRun:
        """Run the source's main() on every PE of a described machine, in simulated time.

        Args:
            machine: a name that `machines` lists, or a file, of a cluster of GPUs.
            pes: how many PEs; PE n is on GPU n.
            arguments: of main(), after the name of the file.
            settings: other values: "gpu_cost.kernel.queue_pairs=32".
            seed: of the simulation.
            profile: record what blocks do; the simulated time is the same.
            kernel_limit_s: as in `load`.
            race_check: as in `load`.

        Returns:
            The status of main(), the simulated time, and the profile.

        Raises:
            CompilationError: the source does not compile; the text is the compiler's.
            ConfigError: the machine is not one of GPUs, or has fewer of them.
            DeadlockError: nothing can go on; the text names who waits where.
            HazardError: a kernel does what spoils some runs.
        """
        gpus = self.load(
            machine, pes, settings=settings, seed=seed, profile=profile,
            kernel_limit_s=kernel_limit_s, race_check=race_check,
        )  # fmt: skip
        status = gpus.run_main([self.file, *arguments])
        core = gpus._core
        found = self._profile(gpus.recorded(), pes)
        return ProgramRun(status, core.finished_at_us, found, tuple(core.remarks))

    def run_live(
        self,
        pes: int,
        *,
        arguments: Sequence[str] = (),
        timeout_s: float = 60.0,
        profile: bool = False,
        checked: bool = True,
        kernel_limit_s: float = KERNEL_LIMIT_S,
    ) -> ProgramRun:
        """Run the source's main() in processes of this host.

        Args:
            pes: how many processes.
            arguments: of main(), after the name of the file.
            timeout_s: how long nothing at all may happen, in seconds.
            profile: record what blocks do, by this host's clock.
            checked: whether the loads and stores of the source are checked; without, kernels that
                only compute run faster.
            kernel_limit_s: as in `load`.

        Returns:
            The status of main(), and the profile.

        Raises:
            CompilationError: the source does not compile; the text is the compiler's.
            RankError: a process failed.
        """
        from towpath.collectives.live_launch import launch

        compiled = str(self.compile(live=True, checked=checked))
        limits = (timeout_s, _records(profile), _checked_limit(kernel_limit_s))
        job = (compiled, [self.file, *arguments], limits)
        results = launch(_run_main, pes, timeout_s=timeout_s, arguments=job)
        recorded = None
        if profile:
            from towpath.kernels.profile import recorded_live

            recorded = recorded_live([each for _, each in results])
        status = max(status for status, _ in results)
        return ProgramRun(status, None, self._profile(recorded, pes))

    def _profile(self, recorded: Recorded | None, pes: int) -> KernelProfile | None:
        if recorded is None:
            return None
        name = Path(self.file).name
        plural = "" if pes == 1 else "s"
        return KernelProfile(recorded, f"{name} on {recorded.where}, {pes} PE{plural}")


def _run_main(
    communicator: Communicator,
    compiled: str,
    arguments: list[str],
    limits: tuple[float, int, float],
) -> tuple[int, dict[str, Any] | None]:
    from towpath import _core

    return _core.run_cuda_live(communicator._open, compiled, arguments, *limits)


def kernel(
    file: str | os.PathLike[str], *, kernels: Sequence[str] = (), flags: Sequence[str] = ()
) -> Kernel:
    """A CUDA source, with NVSHMEM's calls, to run without a GPU.

    Args:
        file: the source, FILE.cu.
        kernels: instances of its kernel templates to launch by name: "ring<float>".
        flags: of the compiler: "-Iinclude", "-DSIZE=4".

    Returns:
        The source; nothing is compiled yet.

    Raises:
        ConfigError: there is no such file, or it is not a CUDA source by its name.
    """
    return Kernel(existing_source(file), kernels, flags)


def _checked_limit(seconds: float) -> float:
    if seconds >= 0:
        return seconds
    raise ConfigError(f"kernel_limit_s is {seconds}; it is 0, for no limit, or more")


def _records(profile: bool) -> int:
    if not profile:
        return 0
    from towpath.kernels.profile import RECORDS_MAX

    return RECORDS_MAX


def _gpus(machine: str, settings: Iterable[str]) -> MachineSpec:
    from towpath.api.machine import load

    loaded = load(machine, settings=settings)
    if loaded.kind != "gpu_cluster":
        raise ConfigError(f"'{machine}' is a {loaded.kind}; CUDA kernels run on a gpu_cluster")
    return loaded.spec
