# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Kernels as a program handles them: `towpath.kernel`."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence

from towpath.errors import ConfigError
from towpath.kernels.gpu_kernel import GpuKernel, KernelRun, SimulatedGpus, existing_source
from towpath.specs.machine_spec import MachineSpec


class Kernel:
    """A CUDA source with NVSHMEM, compiled for this host; `kernel` makes one."""

    def __init__(self, source: GpuKernel) -> None:
        """Wraps a source; users call `kernel`."""
        self._source = source

    def __repr__(self) -> str:
        return f"Kernel({self._source.file!r})"

    def load(
        self, machine: str, pes: int, *, settings: Iterable[str] = (), seed: int = 1
    ) -> SimulatedGpus:
        """PEs on a described machine, on which kernels are launched by name.

        Args:
            machine: a name that `machines` lists, or a file, of a cluster of GPUs.
            pes: how many PEs; PE n is on GPU n.
            settings: other values: "gpu_cost.kernel.queue_pairs=32".
            seed: of the simulation.

        Returns:
            The PEs, with their symmetric memory.

        Raises:
            CompilationError: the source does not compile; the text is the compiler's.
            ConfigError: the machine is not one of GPUs, or has fewer of them.
        """
        return self._source.simulate(_gpus(machine, settings), pes, seed=seed)

    def run(
        self,
        machine: str,
        pes: int,
        *,
        arguments: Sequence[str] = (),
        settings: Iterable[str] = (),
        seed: int = 1,
    ) -> KernelRun:
        """Run the source's main() on every PE of a described machine, in simulated time.

        Args:
            machine: a name that `machines` lists, or a file, of a cluster of GPUs.
            pes: how many PEs; PE n is on GPU n.
            arguments: of main(), after the name of the file.
            settings: other values: "gpu_cost.kernel.queue_pairs=32".
            seed: of the simulation.

        Returns:
            The status of main(), and the simulated time.

        Raises:
            CompilationError: the source does not compile; the text is the compiler's.
            ConfigError: the machine is not one of GPUs, or has fewer of them.
            DeadlockError: nothing can go on; the text names who waits where.
            HazardError: a kernel does what spoils some runs.
        """
        return self._source.run_simulated(_gpus(machine, settings), pes, arguments, seed=seed)

    def run_live(
        self, pes: int, *, arguments: Sequence[str] = (), timeout_s: float = 60.0
    ) -> KernelRun:
        """Run the source's main() in processes of this host.

        Args:
            pes: how many processes.
            arguments: of main(), after the name of the file.
            timeout_s: how long nothing at all may happen, in seconds.

        Returns:
            The status of main().

        Raises:
            CompilationError: the source does not compile; the text is the compiler's.
            RankError: a process failed.
        """
        return self._source.run_live(pes, arguments, timeout_s=timeout_s)


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
    return Kernel(GpuKernel(existing_source(file), kernels, flags))


def _gpus(machine: str, settings: Iterable[str]) -> MachineSpec:
    from towpath.api.machine import load

    loaded = load(machine, settings=settings)
    if loaded.kind != "gpu_cluster":
        raise ConfigError(f"'{machine}' is a {loaded.kind}; CUDA kernels run on a gpu_cluster")
    return loaded.spec
