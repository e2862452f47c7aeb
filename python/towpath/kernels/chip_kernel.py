# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Kernels in a vendor's source form, compiled and run on the cores of described chips."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args

from towpath import _core
from towpath.errors import ConfigError

if TYPE_CHECKING:
    from towpath._core import Chip, ChipCluster

# What a run may take where nothing is said: a tenth of a second on a Wormhole.
CYCLES_MAX = 100_000_000
CYCLES_LIMIT = 1 << 40

Processor = Literal["data_movement_0", "data_movement_1", "compute", "ethernet"]


class CircularBuffer(NamedTuple):
    """Pages of a core's L1 that its kernels pass to each other.

    Attributes:
        number: number of the buffer, 0 to 31.
        offset: offset of its first byte in L1.
        size_bytes: size of the whole buffer.
        page_bytes: size of a page.
        format: number of the DataFormat of its elements.
    """

    number: int
    offset: int
    size_bytes: int
    page_bytes: int
    format: int = 5


class FabricConnection(NamedTuple):
    """A connection to a router of the fabric, passed as arguments of a kernel.

    It represents the three words that `append_fabric_connection_rt_args` would add.

    Attributes:
        to_chip: a chip; the router is the first one on the path to it.
        link: number of the link, if there are several parallel links.
    """

    to_chip: int
    link: int = 0


Fabric = Literal["1d", "1d_ring", "2d", "2d_torus"]


@dataclass(frozen=True)
class SourceKernel:
    """A kernel file, with its core.

    Attributes:
        file: a C++ file with `void kernel_main()`.
        core: position in the logical grid of workers; (0, channel) for an Ethernet core.
        chip: number of the chip in its cluster.
        processor: the processor of the core that runs it.
        noc: NoC of the kernel; None: 0, and 1 on data_movement_1.
        args: runtime arguments, words and connections.
        common_args: runtime arguments that all cores share, words.
        compile_args: compile-time arguments, words.
        named_compile_args: compile-time arguments by name, words.
        defines: macros and their values.
        include_folders: folders of its headers, in addition to its own folder.
        circular_buffers: circular buffers of the core.
        text: the source, if it is not in the file; errors still name the file.
    """

    file: str | os.PathLike[str]
    core: tuple[int, int] = (0, 0)
    chip: int = 0
    processor: Processor = "data_movement_0"
    noc: int | None = None
    args: Sequence[int | FabricConnection] = ()
    common_args: Sequence[int] = ()
    compile_args: Sequence[int] = ()
    named_compile_args: Mapping[str, int] = field(default_factory=dict)
    defines: Mapping[str, str] = field(default_factory=dict)
    include_folders: Sequence[str | os.PathLike[str]] = ()
    circular_buffers: Sequence[CircularBuffer] = ()
    text: str = ""


class MemoryBlock(NamedTuple):
    """Bytes of a tile's memory.

    Attributes:
        tile: position in the coordinates of NoC 0.
        offset: offset of the first byte.
        data: the bytes, or their number if they are to be read.
        chip: number of the chip in its cluster.
    """

    tile: tuple[int, int]
    offset: int
    data: bytes | int
    chip: int = 0


class Zone(NamedTuple):
    """A profiler zone of a kernel, in cycles of its chip's clock."""

    kernel: str
    chip: int
    tile: tuple[int, int]
    name: str
    begin: int
    end: int

    @property
    def cycles(self) -> int:
        """Duration of the zone."""
        return self.end - self.begin


class Line(NamedTuple):
    """A line that a kernel printed."""

    kernel: str
    chip: int
    tile: tuple[int, int]
    text: str


@dataclass(frozen=True)
class KernelRun:
    """Result of a run of kernels.

    Attributes:
        time_ns: time at which the last kernel ended.
        kernels: first and last cycle of each kernel, in the given order.
        zones: measurements of their profiler zones, in order of their ends.
        values: (kernel, name, value) of each recorded value.
        lines: the printed lines.
        read: the requested bytes.
    """

    time_ns: float
    kernels: list[tuple[int, int]]
    zones: list[Zone]
    values: list[tuple[str, str, int]]
    lines: list[Line]
    read: list[bytes]


def _words(values: Sequence[int], what: str, kernel: SourceKernel) -> list[int]:
    """Arguments as 32-bit words; negative ones as their two's complement."""
    for value in values:
        if not -(2**31) <= value < 2**32:
            raise ConfigError(f"{what} {value} of kernel {kernel.file} is not a 32-bit word")
    return [value % 2**32 for value in values]


def _add(program: _core.SourceProgram, kernel: SourceKernel) -> None:
    noc = kernel.noc
    if noc is None:
        noc = 1 if kernel.processor == "data_movement_1" else 0
    words: list[int] = []
    connections: list[tuple[int, int, int]] = []
    for value in kernel.args:
        if isinstance(value, FabricConnection):
            connections.append((len(words), value.to_chip, value.link))
        else:
            words.append(value)
    program.add_kernel(
        os.fspath(kernel.file),
        text=kernel.text,
        chip=kernel.chip,
        core=kernel.core,
        processor=kernel.processor,
        noc=noc,
        args=_words(words, "argument", kernel),
        common_args=_words(kernel.common_args, "common argument", kernel),
        compile_args=_words(kernel.compile_args, "compile-time argument", kernel),
        named_compile_args=dict(kernel.named_compile_args),
        defines={name: str(value) for name, value in kernel.defines.items()},
        include_folders=[os.fspath(folder) for folder in kernel.include_folders],
        circular_buffers=list(kernel.circular_buffers),
        connections=connections,
    )


def _mode(fabric: Fabric) -> tuple[bool, bool]:
    """Two flags: packets may turn, and links that close a line are used."""
    if fabric not in get_args(Fabric):
        raise ConfigError(
            f"there is no fabric '{fabric}'; choose one of {', '.join(get_args(Fabric))}"
        )
    return fabric.startswith("2d"), fabric.endswith(("ring", "torus"))


def source_program(kernels: Sequence[SourceKernel], **options: Any) -> _core.SourceProgram:
    """Kernels in the form of the core.

    Args:
        kernels: files and the cores that run them.
        options: options of the core's program.

    Raises:
        ConfigError: there are no kernels, or an argument is not a word.
    """
    if not kernels:
        raise ConfigError("no kernel was given; give at least one")
    program = _core.SourceProgram(**options)
    for kernel in kernels:
        _add(program, kernel)
    return program


def run_source_kernels(
    machine: Chip | ChipCluster,
    kernels: Sequence[SourceKernel],
    *,
    semaphores: Sequence[int] = (),
    write: Sequence[MemoryBlock] = (),
    read: Sequence[MemoryBlock] = (),
    seed: int = 1,
    cycles_max: int | None = None,
    fabric: Fabric | None = None,
    finds_hazards: bool = True,
    link_faults: Sequence[_core.LinkFaults] = (),
) -> KernelRun:
    """Compiles kernels and runs them together, one program per chip; see Chip.run_kernels."""
    if cycles_max is None:
        cycles_max = CYCLES_MAX
    if not 0 <= cycles_max <= CYCLES_LIMIT:
        raise ConfigError(
            f"cycles_max is {cycles_max}; it must be 1 to {CYCLES_LIMIT} cycles, or 0 for no limit"
        )
    program = source_program(
        kernels,
        semaphores=list(semaphores),
        seed=seed,
        cycles_max=cycles_max,
        finds_hazards=finds_hazards,
        fabric=None if fabric is None else _mode(fabric),
        link_faults=list(link_faults),
    )
    for block in write:
        if not isinstance(block.data, bytes):
            raise ConfigError(f"the data for tile {block.tile} must be bytes")
        program.write(block.chip, block.tile, block.offset, block.data)
    for block in read:
        size_bytes = block.data if isinstance(block.data, int) else len(block.data)
        program.read(block.chip, block.tile, block.offset, size_bytes)
    try:
        found = _core.run_source_program(machine, program)
    except ValueError as error:
        raise ConfigError(str(error)) from None
    return kernel_run(found)


def kernel_run(found: dict[str, Any]) -> KernelRun:
    """Converts the core's result of a run of kernels, complete or in progress."""
    return KernelRun(
        time_ns=found["time_ps"] / 1000,
        kernels=[tuple(times) for times in found["kernels"]],
        zones=[
            Zone(kernel, chip, tile, name, begin, end)
            for (chip, tile, kernel), name, begin, end in found["zones"]
        ],
        values=[(who[2], name, value) for who, name, value in found["values"]],
        lines=[Line(kernel, chip, tile, text) for (chip, tile, kernel), text in found["lines"]],
        read=list(found["after"]),
    )
