# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""`towpath kernel run FILE.cpp`: a kernel of TT-Metalium on the cores of described chips."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from towpath.cli.options import AsJson, Seed, advanced, machine_option
from towpath.errors import ConfigError

if TYPE_CHECKING:
    from towpath.api.chips import Chip, ChipCluster
    from towpath.kernels.chip_kernel import (
        FabricConnection,
        KernelRun,
        MemoryBlock,
        SourceKernel,
    )

app = typer.Typer(add_completion=False, rich_markup_mode=None)


ProcessorWord = Literal["data_movement_0", "data_movement_1", "compute", "ethernet"]
# How the fabric's packets travel: along a line or with turns, and whether rings are closed.
FabricWord = Literal["1d", "1d_ring", "2d", "2d_torus"]
IncludeFolders = Annotated[
    list[Path] | None,
    advanced("--include", "-I", help="folder of headers; repeatable"),
]
CyclesMax = Annotated[
    int | None,
    advanced(
        help="cycles after which running kernels are an error; 0: any number; default: 100000000",
    ),
]
FabricOption = Annotated[FabricWord | None, typer.Option(help="routers that run beside the kernel")]


def _numbers(text: str, form: str, separators: str) -> list[int]:
    """The numbers in a text of this form."""
    try:
        return [int(part, 0) for part in re.split(f"[{separators}]", text)]
    except ValueError:
        raise ConfigError(f"'{text}' is not {form}") from None


def _cores(text: str) -> list[tuple[int, int]]:
    """The cores of "X,Y" or of the rectangle "X,Y-X,Y"."""
    form = "a core, X,Y, or a rectangle of them, X,Y-X,Y"
    found = _numbers(text, form, ",-")
    if len(found) == 2:
        found *= 2
    if len(found) != 4:
        raise ConfigError(f"--core '{text}' is not {form}")
    left, top, right, bottom = found
    return [(x, y) for y in range(top, bottom + 1) for x in range(left, right + 1)]


def _buffers(texts: list[str]) -> list[Any]:
    from towpath.kernels.chip_kernel import CircularBuffer

    form = "a circular buffer, NUMBER:OFFSET:SIZE:PAGE in bytes"
    buffers = []
    for text in texts:
        found = _numbers(text, form, ":")
        if len(found) != 4:
            raise ConfigError(f"--circular-buffer '{text}' is not {form}")
        buffers.append(CircularBuffer(*found))
    return buffers


def _defines(texts: list[str]) -> dict[str, str]:
    pairs = (text.partition("=") for text in texts)
    return {name: value or "1" for name, _, value in pairs}


def _blocks(texts: list[str]) -> list[MemoryBlock]:
    from towpath.kernels.chip_kernel import MemoryBlock

    form = "a block of memory, X,Y:OFFSET:SIZE, with the tile in the coordinates of NoC 0"
    blocks = []
    for text in texts:
        found = _numbers(text, form, ",:")
        if len(found) != 4:
            raise ConfigError(f"--read '{text}' is not {form}")
        blocks.append(MemoryBlock((found[0], found[1]), found[2], found[3]))
    return blocks


@app.command()
def run(
    file: Annotated[Path, typer.Argument(help="a C++ file with void kernel_main()")],
    machine: Annotated[
        str, machine_option("a chip, or chips that Ethernet joins: a name or a file")
    ] = "wormhole",
    core: Annotated[
        list[str] | None,
        typer.Option(help="logical core X,Y, or X,Y-X,Y; (0, channel) of Ethernet; repeatable"),
    ] = None,
    chip: Annotated[int, typer.Option(help="number of the chip", min=0)] = 0,
    processor: Annotated[
        ProcessorWord, typer.Option(help="the core's processor")
    ] = "data_movement_0",
    noc: Annotated[int | None, advanced(help="the kernel's NoC, 0 or 1")] = None,
    arg: Annotated[
        list[str] | None,
        typer.Option(help="runtime argument, or to:CHIP, a connection there; repeatable, in order"),
    ] = None,
    fabric: FabricOption = None,
    compile_arg: Annotated[
        list[str] | None,
        advanced(help="compile-time argument; repeatable, in order"),
    ] = None,
    define: Annotated[
        list[str] | None,
        advanced("--define", "-D", help="macro NAME=VALUE; repeatable"),
    ] = None,
    include: IncludeFolders = None,
    circular_buffer: Annotated[
        list[str] | None,
        advanced(help="NUMBER:OFFSET:SIZE:PAGE, in bytes; repeatable"),
    ] = None,
    semaphore: Annotated[
        list[int] | None,
        advanced(help="initial value of the next semaphore; repeatable"),
    ] = None,
    read: Annotated[
        list[str] | None, typer.Option(help="print memory afterwards: X,Y:OFFSET:SIZE; repeatable")
    ] = None,
    cycles_max: CyclesMax = None,
    seed: Seed = 1,
    as_json: AsJson = False,
) -> None:
    """Compile a kernel of TT-Metalium with g++ and run it on the cores of a described chip."""
    from towpath.kernels.chip_kernel import SourceKernel
    from towpath.pages.provenance import provenance

    loaded = _loaded(machine)
    common = SourceKernel(
        file,
        chip=chip,
        processor=processor,
        noc=noc,
        args=_arguments(arg),
        compile_args=_words(compile_arg),
        defines=_defines(define or []),
        include_folders=include or [],
        circular_buffers=_buffers(circular_buffer or []),
    )
    places = [place for text in core or ["0,0"] for place in _cores(text)]
    kernels = [replace(common, core=place) for place in places]
    blocks = [block._replace(chip=chip) for block in _blocks(read or [])]
    options: dict[str, Any] = {"seed": seed, "cycles_max": cycles_max, "fabric": fabric}
    found = loaded.run_kernels(kernels, semaphores=semaphore or [], read=blocks, **options)
    if as_json:
        from towpath.cli.output_file import json_text

        print(json_text(_to_dict(kernels, blocks, found), provenance([loaded.spec])))
    else:
        print(run_text(kernels, blocks, found))


def _loaded(machine: str) -> Chip | ChipCluster:
    from towpath.api.chips import Chip, ChipCluster
    from towpath.api.machine import load

    loaded = load(machine)
    if not isinstance(loaded, (Chip, ChipCluster)):
        raise ConfigError(
            f"--machine '{machine}' has no cores for kernels of TT-Metalium; choose a chip or "
            "a cluster of chips"
        )
    return loaded


def _words(texts: list[str] | None) -> list[int]:
    return [_numbers(text, "a number", " ")[0] for text in texts or []]


def _arguments(texts: list[str] | None) -> list[int | FabricConnection]:
    """Integers, and connections to routers toward a chip: to:CHIP, or to:CHIP:LINK."""
    from towpath.kernels.chip_kernel import FabricConnection

    found: list[int | FabricConnection] = []
    for text in texts or []:
        if not text.startswith("to:"):
            found += _words([text])
            continue
        form = "a connection, to:CHIP or to:CHIP:LINK"
        numbers = _numbers(text[3:], form, ":")
        if len(numbers) > 2:
            raise ConfigError(f"--arg '{text}' is not {form}")
        found.append(FabricConnection(*numbers))
    return found


def _to_dict(
    kernels: list[SourceKernel], blocks: list[MemoryBlock], found: KernelRun
) -> dict[str, Any]:
    return {
        "time_ns": found.time_ns,
        "kernels": [
            {"core": list(kernel.core), "chip": kernel.chip, "begin": begin, "end": end}
            for kernel, (begin, end) in zip(kernels, found.kernels, strict=True)
        ],
        "zones": [zone._asdict() for zone in found.zones],
        "values": [
            {"kernel": kernel, "name": name, "value": value} for kernel, name, value in found.values
        ],
        "lines": [line._asdict() for line in found.lines],
        "read": [
            {"tile": list(block.tile), "offset": block.offset, "bytes": data.hex()}
            for block, data in zip(blocks, found.read, strict=True)
        ],
    }


def run_text(kernels: list[SourceKernel], blocks: list[MemoryBlock], found: KernelRun) -> str:
    """A run as lines of text: output of kernels, their zones, their durations, and the memory
    read.
    """
    lines = [
        f"{line.chip}:({line.tile[0]}, {line.tile[1]}):{line.kernel}: {line.text}"
        for line in found.lines
    ]
    for kernel, (begin, end) in zip(kernels, found.kernels, strict=True):
        where = f"core ({kernel.core[0]}, {kernel.core[1]}) of chip {kernel.chip}"
        lines.append(f"{where}: cycles {begin} to {end}")
    for zone in found.zones:
        where = f"tile ({zone.tile[0]}, {zone.tile[1]}) of chip {zone.chip}"
        lines.append(f"{where}: zone {zone.name}: {zone.cycles} cycles")
    lines += [f"{kernel}: {name} = {value}" for kernel, name, value in found.values]
    for block, data in zip(blocks, found.read, strict=True):
        lines += _dump(block, data)
    lines.append(f"{found.time_ns:,.0f} ns")
    return "\n".join(lines)


def _dump(block: MemoryBlock, data: bytes) -> list[str]:
    """Memory as 32-bit words, 8 per line, with the last word padded with zeros."""
    x, y = block.tile
    lines = [f"memory of tile ({x}, {y}), from {block.offset:#x}:"]
    for begin in range(0, len(data), 32):
        part = data[begin : begin + 32]
        words = [
            int.from_bytes(part[at : at + 4].ljust(4, b"\0"), "little")
            for at in range(0, len(part), 4)
        ]
        lines.append(f"  {block.offset + begin:#08x} " + " ".join(f"{w:08x}" for w in words))
    return lines
