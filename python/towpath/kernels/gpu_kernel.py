# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""CUDA sources with NVSHMEM, compiled for this host: run in processes, or in simulated time."""

from __future__ import annotations

import os
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from towpath.errors import ConfigError

if TYPE_CHECKING:
    from numpy.typing import DTypeLike, NDArray

    from towpath import _core
    from towpath.collectives.live_communicator import Communicator
    from towpath.kernels.profile import Recorded
    from towpath.specs.machine_spec import MachineSpec

# For how long a thread of a kernel may compute without a wait, in seconds of processor time.
KERNEL_LIMIT_S = 30.0

_FORMATS = {
    ("signed", 1): "b", ("signed", 2): "h", ("signed", 4): "i", ("signed", 8): "q",
    ("unsigned", 1): "B", ("unsigned", 2): "H", ("unsigned", 4): "I", ("unsigned", 8): "Q",
    ("pointer", 8): "Q", ("floating", 4): "f", ("floating", 8): "d",
}  # fmt: skip


class GpuKernel:
    """A CUDA source with NVSHMEM, compiled for this host."""

    def __init__(self, file: str, kernels: Sequence[str], flags: Sequence[str]) -> None:
        """Stores the source and the options of the compilation."""
        self.file = file
        self.kernels = tuple(kernels)
        self.flags = tuple(flags)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.file!r})"

    def compile(self, *, live: bool = False, checked: bool = True) -> Path:
        """Compiles the source, unless it is already compiled.

        Args:
            live: True for processes of this host instead of simulated time.
            checked: in live runs, True to check loads and stores; in simulated runs they are always
                checked.

        Returns:
            The compiled object.

        Raises:
            CompilationError: the source does not compile; the text is the compiler's.
        """
        from towpath import _core

        include = Path(_core.__file__).parent / "gpu_include"
        # A thread that polls must let the others go on.
        polls = "volatile" in Path(self.file).read_text(encoding="utf-8", errors="replace")
        compiled = _core.compile_cuda(
            self.file,
            str(include),
            list(self.kernels),
            list(self.flags),
            not live or polls or checked,
        )
        return Path(compiled)

    def simulate(
        self,
        machine: MachineSpec,
        pes: int,
        *,
        seed: int = 1,
        records_max: int = 0,
        kernel_limit_s: float = KERNEL_LIMIT_S,
        race_check: bool = False,
    ) -> SimulatedGpus:
        """Creates its PEs on the GPUs of a described machine, to launch kernels by name.

        Args:
            machine: a cluster of GPUs.
            pes: number of PEs; PE n is on GPU n.
            seed: seed of the simulation.
            records_max: maximum number of records for `SimulatedGpus.recorded`; 0: none.
            kernel_limit_s: processor time in seconds for which a kernel thread may compute without
                a wait; 0: no limit.
            race_check: True to report blocks that race for a word of global memory.

        Returns:
            The PEs, with their symmetric memory.

        Raises:
            CompilationError: the source does not compile. ConfigError: the machine has fewer GPUs,
            or does not describe the costs of kernels.
        """
        from towpath import _core

        hosts = -(-pes // machine.gpus_per_host)
        compiled = str(self.compile())
        try:
            core = _core.SimulatedPes(
                machine.build(hosts=hosts), compiled, pes, seed,
                profile_records_max=records_max, kernel_limit_s=kernel_limit_s,
                checks_races=race_check,
            )  # fmt: skip
        except ValueError as error:
            raise ConfigError(str(error)) from None
        return SimulatedGpus(core, machine.name)


def run_main(
    communicator: Communicator,
    compiled: str,
    arguments: list[str],
    limits: tuple[float, int, float],
) -> tuple[int, dict[str, Any] | None]:
    """Runs main() of a compiled source in the process of a rank. It is in this module because a
    rank imports the module of its function, and the modules of machines take 0.1 s to import.

    Args:
        communicator: the communicator of the rank.
        compiled: the compiled object.
        arguments: arguments of main(), the name of the file first.
        limits: longest time without any progress in seconds, number of records, and limit of a
            kernel thread in seconds.

    Returns:
        The status, and the records if there are any.
    """
    from towpath import _core

    return _core.run_cuda_live(communicator._open, compiled, arguments, *limits)


class SymmetricArray:
    """The same array on every PE.

    Attributes:
        on: the array of each PE, by its number; writing to it changes the PE's memory.
    """

    def __init__(self, addresses: list[int], on: list[NDArray[Any]]) -> None:
        """Created by `SimulatedGpus.symmetric`."""
        self.addresses = addresses
        self.on = on


class SimulatedGpus:
    """PEs of a compiled source, each on its GPU, in one simulation; see `GpuKernel.simulate`."""

    def __init__(self, core: _core.SimulatedPes, machine: str = "") -> None:
        """Created by `GpuKernel.simulate`."""
        self._core = core
        self._machine = machine

    def recorded(self) -> Recorded | None:
        """The records so far; None if `simulate` was not asked to keep records."""
        core = self._core.profile()
        if core is None:
            return None
        from towpath.kernels.profile import recorded_simulation

        return recorded_simulation(self._machine, self.pes, core)

    def run_main(self, words: Sequence[str]) -> int:
        """Runs main() on every PE.

        Args:
            words: arguments of main(), the name of the program first.

        Returns:
            The highest status.

        Raises:
            DeadlockError: no PE can continue. The text lists the wait of each PE. HazardError: a
            kernel contains a mistake that corrupts some runs.
        """
        return self._core.run_main(list(words))

    @property
    def pes(self) -> int:
        """Number of PEs."""
        return self._core.pes

    def symmetric(self, count: int, dtype: DTypeLike = "float32") -> SymmetricArray:
        """Allocates symmetric memory, filled with zeros.

        Args:
            count: number of elements on each PE.
            dtype: type of an element.

        Returns:
            The array of every PE.
        """
        import numpy as np

        size_bytes = count * np.dtype(dtype).itemsize
        addresses = self._core.allocate(size_bytes)
        views = [self._core.bytes_at(address, size_bytes).view(dtype) for address in addresses]
        return SymmetricArray(addresses, views)

    def launch(
        self,
        kernel: str,
        grid: int | tuple[int, ...],
        block: int | tuple[int, ...],
        arguments: Sequence[Any],
        *,
        shared_bytes: int = 0,
        on: Sequence[int] | None = None,
    ) -> float:
        """Launches a kernel on PEs and waits for all.

        Args:
            kernel: name of the kernel; "ring<float>" for an instance of a template.
            grid: blocks in up to three dimensions.
            block: threads per block in up to three dimensions.
            arguments: numbers, SymmetricArrays, or lists with a number for each PE.
            shared_bytes: dynamic shared memory per block.
            on: the PEs that launch it; None: all PEs.

        Returns:
            Simulated microseconds, from the call until the last kernel has ended.

        Raises:
            ConfigError: there is no such kernel, or the arguments do not match it. DeadlockError:
            no PE can continue; the text lists each wait. HazardError: the kernel contains a mistake
            that corrupts some runs.
        """
        parameters = self._core.parameters(kernel)
        if len(parameters) != len(arguments):
            raise ConfigError(
                f"kernel '{kernel}' takes {len(parameters)} arguments; {len(arguments)} were given"
            )
        words = [
            [_word(kernel, index, kind, value, pe) for index, (kind, value) in
             enumerate(zip(parameters, arguments, strict=True))]
            if on is None or pe in on else None
            for pe in range(self.pes)
        ]  # fmt: skip
        return self._core.launch(kernel, _three(grid), _three(block), shared_bytes, words)


def _three(size: int | tuple[int, ...]) -> list[int]:
    sizes = [size] if isinstance(size, int) else list(size)
    return [*sizes, 1, 1][:3]


def _word(kernel: str, index: int, parameter: tuple[str, int], value: Any, pe: int) -> int:
    """The argument of a PE as the 8 bytes that contain it."""
    if isinstance(value, SymmetricArray):
        value = value.addresses[pe]
    elif isinstance(value, list):
        value = value[pe]
    form = _FORMATS.get(parameter)
    try:
        if form is None:
            raise TypeError
        number = float(value) if parameter[0] == "floating" else int(value)
        packed = struct.pack("<" + form, number)
    except (struct.error, TypeError, ValueError):
        kind, size = parameter
        raise ConfigError(
            f"argument {index} of kernel '{kernel}' is {value!r}; it takes a {kind} value of "
            f"{size} bytes"
        ) from None
    return int.from_bytes(packed.ljust(8, b"\0"), "little")


def existing_source(file: str | os.PathLike[str]) -> str:
    """The path of a CUDA source as text.

    Raises:
        ConfigError: there is no such file, or its name does not end in .cu.
    """
    path = Path(file)
    if path.suffix != ".cu":
        raise ConfigError(f"'{path}' does not have the name of a CUDA source; it must end in .cu")
    if not path.is_file():
        raise ConfigError(f"there is no file '{path}'")
    return str(path)
