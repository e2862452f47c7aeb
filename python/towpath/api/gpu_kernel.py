# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""CUDA kernels for programs: `towpath.kernel`."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from towpath.api.kernel_profile import KernelProfile
from towpath.errors import ConfigError, quoted
from towpath.kernels.gpu_kernel import (
    KERNEL_LIMIT_S,
    GpuKernel,
    SimulatedGpus,
    existing_source,
    run_main,
)
from towpath.specs.machine_spec import MachineSpec

if TYPE_CHECKING:
    from towpath.kernels.profile import Recorded


@dataclass(frozen=True)
class ProgramRun:
    """A run of a source's main() on all PEs.

    Attributes:
        status: the highest return value of main() over all PEs; 0 means success.
        time_us: end of the last PE in simulated microseconds; None for a live run.
        profile: the profile of the run; None unless it was requested.
        remarks: sentences about code that is not wrong, but relies on more than NVSHMEM guarantees;
            only in simulated runs.
    """

    status: int
    time_us: float | None
    profile: KernelProfile | None = field(default=None, compare=False)
    remarks: tuple[str, ...] = ()


class Kernel(GpuKernel):
    """A CUDA source with NVSHMEM, compiled for this host. Create it with `kernel`."""

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
        """Creates PEs on a described machine, on which kernels are launched by name.

        Args:
            machine: a name that `machines` lists, or a file, of a cluster of GPUs.
            pes: number of PEs; PE n is on GPU n.
            settings: changed values: "gpu_cost.kernel.queue_pairs=32". They have priority over
                $NVSHMEM_IB_ENABLE_IBGDA and $NVSHMEM_IBGDA_NUM_RC_PER_PE.
            seed: seed of the simulation.
            profile: True to record the activities of blocks for `KernelProfile.of`.
            kernel_limit_s: processor time in seconds for which a kernel thread may compute without
                a wait; 0: no limit.
            race_check: True to report blocks that race for a word of global memory; each access is
                then checked.

        Returns:
            The PEs, with their symmetric memory.

        Raises:
            CompilationError: the source does not compile; the text is the compiler's. ConfigError:
            the machine is not a cluster of GPUs, or has too few GPUs.
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
        """Runs the source's main() on every PE of a described machine, in simulated time.

        Args:
            machine: a name that `machines` lists, or a file, of a cluster of GPUs.
            pes: number of PEs; PE n is on GPU n.
            arguments: arguments of main(), after the name of the file.
            settings: changed values: "gpu_cost.kernel.queue_pairs=32".
            seed: seed of the simulation.
            profile: True to record the activities of blocks; the simulated time is the same.
            kernel_limit_s: processor time in seconds for which a kernel thread may compute without
                a wait; 0: no limit.
            race_check: True to report blocks that race for a word of global memory.

        Returns:
            The status of main(), the simulated time, and the profile.

        Raises:
            CompilationError: the source does not compile; the text is the compiler's. ConfigError:
            the machine is not a cluster of GPUs, or has too few GPUs. DeadlockError: no PE can
            continue; the text lists each wait. HazardError: a kernel contains a mistake that
            corrupts some runs.
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
        """Runs the source's main() in processes of this host.

        Args:
            pes: number of processes.
            arguments: arguments of main(), after the name of the file.
            timeout_s: longest time without any progress, in seconds.
            profile: True to record the activities of blocks by this host's clock.
            checked: True to check the loads and stores of the source; without the check, kernels
                that only compute run faster.
            kernel_limit_s: processor time in seconds for which a kernel thread may compute without
                a wait; 0: no limit.

        Returns:
            The status of main(), and the profile.

        Raises:
            CompilationError: the source does not compile; the text is the compiler's. RankError: a
            process failed.
        """
        from towpath.collectives.live_launch import launch

        compiled = str(self.compile(live=True, checked=checked))
        limits = (timeout_s, _records(profile), _checked_limit(kernel_limit_s))
        job = (compiled, [self.file, *arguments], limits)
        results = launch(run_main, pes, timeout_s=timeout_s, arguments=job)
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


def kernel(
    file: str | os.PathLike[str], *, kernels: Sequence[str] = (), flags: Sequence[str] = ()
) -> Kernel:
    """Declares a CUDA source with calls of NVSHMEM, to run without a GPU.

    Args:
        file: the source, FILE.cu.
        kernels: instances of its kernel templates to launch by name: "ring<float>".
        flags: flags for the compiler: "-Iinclude", "-DSIZE=4".

    Returns:
        The source, not compiled yet.

    Raises:
        ConfigError: the file does not exist, or its name is not that of a CUDA source.
    """
    return Kernel(existing_source(file), kernels, flags)


def _checked_limit(seconds: float) -> float:
    if seconds >= 0:
        return seconds
    raise ConfigError(f"kernel_limit_s is {seconds}; it must be 0, for no limit, or more")


def _records(profile: bool) -> int:
    if not profile:
        return 0
    from towpath.kernels.profile import RECORDS_MAX

    return RECORDS_MAX


# Variables of NVSHMEM that change a described machine.
_INITIATED_BY_GPUS = "NVSHMEM_IB_ENABLE_IBGDA"
_QUEUE_PAIRS = "NVSHMEM_IBGDA_NUM_RC_PER_PE"
_SWITCH = {"0": "false", "1": "true", "false": "false", "true": "true"}


def environment_settings(environment: Mapping[str, str]) -> list[str]:
    """The settings of a machine that NVSHMEM's environment variables select.

    Args:
        environment: names and values of variables.

    Raises:
        ConfigError: a value is not one of NVSHMEM's.
    """
    settings = []
    if (given := environment.get(_INITIATED_BY_GPUS)) is not None:
        if given.lower() not in _SWITCH:
            raise ConfigError(f"{_INITIATED_BY_GPUS} is {quoted(given)}; it must be 0 or 1")
        value = _SWITCH[given.lower()]
        settings.append(f"gpu_cost.kernel.gpu_initiated_adapters={value}")
    if (given := environment.get(_QUEUE_PAIRS)) is not None:
        if not given.isdecimal() or not 1 <= int(given) <= 1024:
            raise ConfigError(f"{_QUEUE_PAIRS} is {quoted(given)}; it must be 1 to 1024")
        settings.append(f"gpu_cost.kernel.queue_pairs={given}")
    return settings


def _gpus(machine: str, settings: Iterable[str]) -> MachineSpec:
    from towpath.api.machine import load

    own = load(machine)
    if own.kind != "gpu_cluster":
        raise ConfigError(f"'{machine}' is a {own.kind}; CUDA kernels run on a gpu_cluster")
    spec: MachineSpec = own.spec
    if spec.gpu_cost.kernel is not None:
        settings = [*environment_settings(os.environ), *settings]
    return load(machine, settings=settings).spec
