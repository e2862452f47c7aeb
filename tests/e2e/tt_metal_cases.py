# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Runs of the data movement tests' kernels of a tt-metal checkout, one per kernel file: the
arguments that its host program gives it, the bytes that must be in memory afterwards, and, where
the same traffic was measured, how long it took on silicon."""

from __future__ import annotations

import csv
import os
import random
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from tt_metal_kernels import SOURCE, kernel, tile

from towpath import CircularBuffer, MemoryBlock, SourceKernel, load

DATA_FOLDER = Path(os.environ.get("TOWPATH_DATA", Path(__file__).parents[3] / "shared/data"))
DATA = bytes(random.Random(2).randbytes(64 * 1024))
TO = SOURCE + 0x10000  # where a kernel writes that does not write to where it reads
DRAM_AT = 0x1000
SCRATCH = 0x1E000
PAGE = 2048


class Expected(NamedTuple):
    """Bytes that must be somewhere when the kernels have ended."""

    block: MemoryBlock
    data: bytes


class Case(NamedTuple):
    """A run of kernels of the checkout.

    Attributes:
        name: of the kernel files, below the folder of data movement tests.
        chip: what it runs on.
        kernels: what runs.
        write: what is in memory before.
        expected: what must be there afterwards.
        semaphores: initial values.
        measured_cycles: of a zone on silicon, the median of all cores with one; None: not measured.
        mistake: what the kernels are stopped for, if they make one.
    """

    name: str
    chip: str
    kernels: list[SourceKernel]
    write: list[MemoryBlock]
    expected: list[Expected]
    semaphores: tuple[int, ...] = ()
    measured_cycles: float | None = None
    mistake: str = ""


# --- what was measured ----------------------------------------------------------------------------


@cache
def _rows() -> list[dict[str, str]]:
    path = DATA_FOLDER / "noc_silicon_cycles.csv"
    if not path.is_file():
        return []
    with path.open() as file:
        return list(csv.DictReader(file))


def measured(chip: str, pattern: str, transactions: int, **columns: Any) -> float | None:
    """Cycles of a row of the table of silicon; `columns` are other values that it must have."""
    arch = "wormhole_b0" if chip == "wormhole" else chip
    wanted = {"arch": arch, "pattern": pattern, "num_transactions": transactions, **columns}
    defaults = {
        "mechanism": "unicast", "stateful": False, "loopback": False, "transaction_bytes": PAGE,
    }  # fmt: skip
    wanted = {**defaults, **wanted}
    found = [
        float(row["cycles"])
        for row in _rows()
        if all(row[name] == str(value) for name, value in wanted.items())
    ]
    assert len(found) <= 1, (wanted, found)
    return found[0] if found else None


def _issue_cycles(chip: str, pattern: str, few: int, many: int, **columns: Any) -> float | None:
    """Cycles from one transaction to the next, from two rows of the smallest transactions."""
    first = measured(chip, pattern, few, transaction_bytes=64, **columns)
    last = measured(chip, pattern, many, transaction_bytes=64, **columns)
    return None if first is None or last is None else (last - first) / (many - few)


# --- places ---------------------------------------------------------------------------------------


def packed(place: tuple[int, int]) -> int:
    """Coordinates as the kernels take them in one word."""
    return place[0] << 16 | place[1]


def bank(chip: str, number: int) -> tuple[tuple[int, int], int]:
    """The tile of a DRAM bank, and the offset of the bank's first byte there."""
    built = load(chip).spec.build()
    channels = built.dram["channels_per_group"]
    at = built.dram_groups[number // channels][0]
    return (at[0], at[1]), int(number % channels * built.dram["channel_bytes"])


def _square(side: int, first: tuple[int, int] = (0, 0)) -> list[tuple[int, int]]:
    """Logical places column by column, as host programs list them."""
    return [(first[0] + x, first[1] + y) for x in range(side) for y in range(side)]


def _at(place: tuple[int, int], offset: int, data: bytes) -> MemoryBlock:
    return MemoryBlock(place, offset, data)


def _expects(place: tuple[int, int], offset: int, data: bytes) -> Expected:
    return Expected(MemoryBlock(place, offset, len(data)), data)


def _word(value: int) -> bytes:
    return value.to_bytes(4, "little")


SEMAPHORES_AT = 0x10000  # of a worker, 16 bytes apart


# --- from one core to another ---------------------------------------------------------------------


# What a kernel is stopped for that ends while something that it sent may not have left.
NO_BARRIER = "without the barrier it needs"


def one_to_one(chip: str) -> Iterator[Case]:
    here, there = tile(chip, 0, 0), tile(chip, 0, 1)
    block = DATA[:PAGE]
    written = [_expects(there, SOURCE, block)]
    held = [_at(here, SOURCE, block)]
    count = 256
    row = measured(chip, "one_to_one", count, same_axis=True)
    stateful = measured(chip, "one_to_one", count, same_axis=True, stateful=True)
    plain = {"compile_args": [SOURCE, count, PAGE, 0, packed(there), 1]}
    for name in ("sender", "sender_2_0"):
        path = f"one_to_one/kernels/{name}.cpp"
        yield Case(path, chip, [kernel(path, **plain)], held, written, (), row)
    path = "core_bidirectional/kernels/sender.cpp"
    used = kernel(path, compile_args=[0, SOURCE, count, PAGE, packed(there), 0])
    yield Case(path, chip, [used], held, written, (), row)
    for name in ("write_one_packet", "write_one_packet_2_0"):
        path = f"one_packet/kernels/{name}.cpp"
        used = kernel(path, args=[SOURCE, SOURCE, *there], compile_args=[count, PAGE, 0])
        yield Case(path, chip, [used], held, written, (), stateful)
    path = "noc_estimator_tests/kernels/writer.cpp"
    used = kernel(
        path,
        compile_args=[
            SOURCE, SOURCE, count, PAGE, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, packed(there), 0, 0, 0, 1, 0,
        ],
    )  # fmt: skip
    yield Case(path, chip, [used], held, written, (), row)
    path = "loopback/kernels/sender.cpp"
    used = kernel(path, args=[0, *here], compile_args=[SOURCE, TO, 4, 2, 1024, 0])
    yield Case(path, chip, [used], held, [], (0,), None, NO_BARRIER)


def one_from_one(chip: str) -> Iterator[Case]:
    here, there = tile(chip, 0, 0), tile(chip, 1, 1)
    block = DATA[:PAGE]
    count = 16
    row = measured(chip, "one_from_one", count, same_axis=False)
    reads: dict[str, Any] = {"processor": "data_movement_1", "noc": 0}
    held, got = [_at(there, SOURCE, block)], [_expects(here, SOURCE, block)]
    for name in ("requestor", "requestor_2_0"):
        path = f"one_from_one/kernels/{name}.cpp"
        used = kernel(path, args=[*there], compile_args=[SOURCE, count, PAGE, 0, 1], **reads)
        yield Case(path, chip, [used], held, got, (), row)
    path = "core_bidirectional/kernels/requestor.cpp"
    used = kernel(path, compile_args=[0, SOURCE, count, PAGE, packed(there)], **reads)
    yield Case(path, chip, [used], held, got, (), row)
    path = "noc_estimator_tests/kernels/reader.cpp"
    used = kernel(
        path,
        args=[*there],
        compile_args=[SOURCE, count, PAGE, 0, 0, 0, 0, 1, 0, 0, 1, 0, 0],
        **reads,
    )
    yield Case(path, chip, [used], held, got, (), row)
    near = tile(chip, 0, 1)
    row = measured(chip, "one_from_one", count, same_axis=True, stateful=True)
    for name in ("read_one_packet", "read_one_packet_2_0"):
        path = f"one_packet/kernels/{name}.cpp"
        used = kernel(path, args=[SOURCE, SOURCE, *near], compile_args=[count, PAGE, 0], **reads)
        yield Case(path, chip, [used], [_at(near, SOURCE, block)], got, (), row)


def both_ways(chip: str) -> Iterator[Case]:
    here, there = tile(chip, 0, 0), tile(chip, 1, 1)
    path = "core_bidirectional/kernels/sender_and_requestor.cpp"
    used = kernel(path, compile_args=[0, SOURCE, TO, 16, PAGE, packed(there), 0])
    out, back = DATA[:PAGE], DATA[PAGE : 2 * PAGE]
    yield Case(
        path, chip, [used], [_at(here, SOURCE, out), _at(there, TO, back)],
        [_expects(there, SOURCE, out), _expects(here, TO, back)],
    )  # fmt: skip


def calls(chip: str) -> Iterator[Case]:
    """Kernels that measure the calls alone: the cycles from one transaction to the next."""
    here, there = tile(chip, 0, 0), tile(chip, 0, 1)
    far = tile(chip, 1, 1)
    block = DATA[:64]
    count = 256
    folder = "noc_api_latency/kernels"

    def case(name: str, other: tuple[int, int], interval: float | None, **fields: Any) -> Case:
        path = f"{folder}/{name}.cpp"
        used = kernel(path, compile_args=[SOURCE, count, 64, 0, packed(other)], **fields)
        cycles = None if interval is None else interval * count
        source, target = (other, here) if "read" in name else (here, other)
        held, after = [_at(source, SOURCE, block)], [_expects(target, SOURCE, block)]
        return Case(path, chip, [used], held, after, (), cycles)

    reads: dict[str, Any] = {"processor": "data_movement_1", "noc": 0}
    interval = _issue_cycles(chip, "one_to_one", 64, 256, same_axis=True)
    yield case("unicast_write_2_0", there, interval)
    interval = _issue_cycles(chip, "one_to_one", 4, 256, same_axis=True, stateful=True)
    yield case("stateful_write_2_0", there, interval)
    interval = _issue_cycles(chip, "one_from_one", 16, 256, same_axis=False)
    yield case("unicast_read_2_0", far, interval, **reads)
    interval = _issue_cycles(chip, "one_from_one", 16, 64, same_axis=True, stateful=True)
    yield case("stateful_read_2_0", there, interval, **reads)
    path = f"{folder}/multicast_write_2_0.cpp"
    first, last = tile(chip, 1, 1), tile(chip, 2, 2)
    used = kernel(path, compile_args=[SOURCE, 8, 64, 0, packed(first), packed(last), 0, 4])
    after = [_expects(tile(chip, x, y), SOURCE, block) for x, y in _square(2, (1, 1))]
    yield Case(path, chip, [used], [_at(here, SOURCE, block)], after)


def direct_writes(chip: str) -> Iterator[Case]:
    there = tile(chip, 1, 0)
    words = b"".join(_word(7 + i) + bytes(12) for i in range(8))
    path = "direct_write/kernels/sender_non_stateful.cpp"
    used = kernel(path, compile_args=[0, 8, 7, 0, 0, 0, SOURCE, 16, packed(there), 0])
    yield Case(path, chip, [used], [], [_expects(there, SOURCE, words)])
    path = "direct_write/kernels/sender_stateful.cpp"  # to one place, the last value stays
    used = kernel(path, compile_args=[0, 8, 7, 0, 1, 0, SOURCE, 16, packed(there), 0])
    yield Case(path, chip, [used], [], [_expects(there, SOURCE, _word(14))])


def transaction_ids(chip: str) -> Iterator[Case]:
    here, first, second = tile(chip, 0, 0), tile(chip, 1, 1), tile(chip, 2, 2)
    size = 15 * 512
    sent, fetched = DATA[:size], DATA[size : 2 * size]
    folder = "transaction_id/kernels"
    args = [SOURCE, 15, 512, 0, packed(first), packed(second)]
    for name in ("reader_writer", "reader_writer_one_packet_stateful"):
        path = f"{folder}/{name}.cpp"
        after = [_expects(here, SOURCE, fetched), _expects(first, SOURCE, fetched)]
        held = [_at(second, SOURCE, fetched)]
        yield Case(path, chip, [kernel(path, compile_args=args)], held, after)
    for name in (
        "writer_reader", "writer_reader_one_packet", "writer_reader_one_packet_stateful",
    ):  # fmt: skip
        path = f"{folder}/{name}.cpp"
        after = [_expects(here, SOURCE, fetched), _expects(first, SOURCE, sent)]
        held = [_at(here, SOURCE, sent), _at(second, SOURCE, fetched)]
        yield Case(path, chip, [kernel(path, compile_args=args)], held, after)


# --- many cores -----------------------------------------------------------------------------------


def one_to_many(chip: str) -> Iterator[Case]:
    block = DATA[:PAGE]
    beside = tile(chip, 3, 0)
    everyone = [tile(chip, x, y) for x, y in _square(3)]
    count = 16
    row = measured(chip, "one_to_all", count * 9, num_subordinates=9)
    for name in ("sender_unicast", "sender_unicast_2_0"):
        path = f"one_to_all/kernels/{name}.cpp"
        used = kernel(
            path,
            core=(3, 0),
            args=[packed(place) for place in everyone],
            compile_args=[SOURCE, TO, count, 1, PAGE, 0, 9, 1],
        )
        after = [_expects(place, TO, block) for place in everyone]
        yield Case(path, chip, [used], [_at(beside, SOURCE, block)], after, (), row)
    row = measured(
        chip, "one_to_all", 256, num_subordinates=9, mechanism="multicast_linked", loopback=False
    )
    corners = [*everyone[0], *everyone[-1]]
    for name in ("sender_multicast", "sender_multicast_2_0"):
        path = f"one_to_all/kernels/{name}.cpp"
        used = kernel(
            path,
            core=(3, 0),
            compile_args=[SOURCE, TO, 256, 1, PAGE, 0, 9, 1, 0, *corners, 0, 3, 3],
        )
        after = [_expects(place, TO, block) for place in everyone]
        yield Case(path, chip, [used], [_at(beside, SOURCE, block)], after, (), row)


def with_semaphores(chip: str) -> Iterator[Case]:
    sender_at = tile(chip, 3, 0)
    places = _square(2)
    corners = [*tile(chip, *places[0]), *tile(chip, *places[-1])]
    block = DATA[:PAGE]
    folder = "one_to_all/kernels"
    sender = kernel(
        f"{folder}/sender_multicast_sem.cpp",
        core=(3, 0),
        compile_args=[SOURCE, TO, 3, 1, PAGE, 0, 4, 0, 0, *corners, 0, 2, 2, 0, 1, 2],
    )
    receivers = [
        kernel(
            f"{folder}/receiver_sem.cpp",
            core=place,
            processor="data_movement_1",
            compile_args=[3, 1, PAGE, 0, 0, 2, packed(sender_at)],
        )
        for place in places
    ]
    for name in ("sender_multicast_sem", "receiver_sem"):
        yield Case(
            f"{folder}/{name}.cpp", chip, [sender, *receivers], [_at(sender_at, SOURCE, block)],
            [], (0, 1, 0), None, NO_BARRIER,
        )  # fmt: skip


def atomics(chip: str) -> Iterator[Case]:
    there = tile(chip, 1, 1)
    sender = kernel(
        "atomics/kernels/atomic_semaphore_sender.cpp",
        compile_args=[SOURCE, 10, 3, 0, packed(there), 64],
    )
    receiver = kernel(
        "atomics/kernels/atomic_semaphore_receiver.cpp",
        core=(1, 1),
        compile_args=[SOURCE, 10, 3, 0, 64],
    )
    after = [_expects(there, SOURCE + 64, _word(30))]
    for name in ("sender", "receiver"):
        path = f"atomics/kernels/atomic_semaphore_{name}.cpp"
        yield Case(path, chip, [sender, receiver], [], after)
    places = _square(2, (1, 1))
    corners = [*tile(chip, *places[0]), *tile(chip, *places[-1])]
    for suffix in ("", "_2_0"):
        folder = "multicast_atomics/kernels/multicast_atomic"
        sends = kernel(f"{folder}_sender{suffix}.cpp", compile_args=[0, 5, 2, 4, *corners, 0])
        waits = [
            kernel(
                f"{folder}_receiver{suffix}.cpp",
                core=place,
                processor="data_movement_1",
                compile_args=[0, 10, 0],
            )
            for place in places
        ]
        after = [_expects(tile(chip, *place), SEMAPHORES_AT, _word(10)) for place in places]
        for name in ("sender", "receiver"):
            yield Case(f"{folder}_{name}{suffix}.cpp", chip, [sends, *waits], [], after, (0,))


def everyone(chip: str) -> Iterator[Case]:
    """Each of a square to or from each, itself too."""
    places = _square(2)
    tiles = [tile(chip, *place) for place in places]
    coordinates = [number for place in tiles for number in place]
    writes = 4 if chip == "wormhole" else 16
    row = measured(chip, "all_to_all", writes * 4, num_subordinates=4)
    block = DATA[:PAGE]
    held = [_at(at, SOURCE, block) for at in tiles]
    after = [_expects(at, TO, block) for at in tiles]
    for name in ("sender", "sender_2_0"):
        path = f"all_to_all/kernels/{name}.cpp"
        args = [0, SOURCE, TO, writes, PAGE, 4, 1]
        used = [kernel(path, core=place, args=coordinates, compile_args=args) for place in places]
        yield Case(path, chip, used, held, after, (), row)
    row = measured(chip, "all_from_all", 64, num_subordinates=4)
    for name in ("requestor", "requestor_2_0"):
        path = f"all_from_all/kernels/{name}.cpp"
        args = [0, TO, SOURCE, 16, PAGE, 4, 1]
        used = [
            kernel(
                path, core=place, processor="data_movement_1", args=coordinates, compile_args=args
            )
            for place in places
        ]
        yield Case(path, chip, used, held, after, (), row)


def one_from_all(chip: str) -> Iterator[Case]:
    block = DATA[:PAGE]
    path = "one_from_all/kernels/gatherer.cpp"
    built = load(chip).spec.build()
    columns, rows = (8, 7) if chip == "wormhole" else (built.worker_columns, built.worker_rows)
    grid = [(x, y) for x in range(columns) for y in range(rows) if (x, y) != (0, 0)]
    sources = [tile(chip, *place) for place in grid]
    row = measured(chip, "one_from_all", 16 * len(grid), num_subordinates=len(grid))
    used_one = kernel(
        path,
        processor="data_movement_1",
        args=[number for place in sources for number in place],
        compile_args=[SOURCE, 16, PAGE, 0, len(grid), 1],
    )
    held = [_at(at, SOURCE, block) for at in sources]
    yield Case(path, chip, [used_one], held, [_expects(tile(chip, 0, 0), SOURCE, block)], (), row)


# --- DRAM -----------------------------------------------------------------------------------------


def _channel_cycles(direction: str, size_bytes: int) -> float | None:
    """Cycles of so many bytes from one core on one channel of a Wormhole, at 1 GHz."""
    path = DATA_FOLDER / "dram_silicon.csv"
    if not path.is_file():
        return None
    with path.open() as file:
        rates = [
            float(row["GBps"])
            for row in csv.DictReader(file)
            if (row["channels"], row["n_tiles"], row["direction"]) == ("1", "1", direction)
        ]
    return size_bytes / rates[0] if rates else None


def dram_unary(chip: str) -> Iterator[Case]:
    here, (at, base) = tile(chip, 0, 0), bank(chip, 0)
    count, block = 64, DATA[:8192]
    is_measured = chip == "wormhole"
    form = [0, count, 4, PAGE, DRAM_AT, 0, SOURCE, 0]
    for suffix in ("", "_2_0"):
        path = f"dram_unary/kernels/reader_unary{suffix}.cpp"
        used = kernel(path, processor="data_movement_1", noc=0, compile_args=form)
        row = _channel_cycles("read", count * 8192) if is_measured else None
        after = [_expects(here, SOURCE, block), _expects(here, SEMAPHORES_AT, _word(1))]
        yield Case(path, chip, [used], [_at(at, base + DRAM_AT, block)], after, (0,), row)
        path = f"dram_unary/kernels/writer_unary{suffix}.cpp"
        used = kernel(path, noc=0, compile_args=[*form, 0])
        row = _channel_cycles("write", count * 8192) if is_measured else None
        after = [_expects(at, base + DRAM_AT, block)]
        yield Case(path, chip, [used], [_at(here, SOURCE, block)], after, (1,), row)


def dram_sharded(chip: str) -> Iterator[Case]:
    here, (at, base) = tile(chip, 0, 0), bank(chip, 0)
    count, pages = 64, 4
    block = DATA[: pages * PAGE]
    row = _channel_cycles("read", count * len(block)) if chip == "wormhole" else None
    for name in ("", "_2_0", "_trid", "_trid_2_0"):
        path = f"dram_sharded/kernels/dram_sharded_read{name}.cpp"
        form = [count, 1, pages, PAGE, 0] + ([15] if "trid" in name else [])
        used = kernel(path, args=[DRAM_AT, SOURCE], compile_args=form)
        held = [_at(at, base + DRAM_AT, block)]
        if name == "_trid_2_0":  # it gives the id as the channel
            yield Case(path, chip, [used], held, [], (), None, "there is no transaction id")
            continue
        yield Case(path, chip, [used], held, [_expects(here, SOURCE, block)], (), row)
    path = "dram_neighbour/kernels/dram_neighbour_read.cpp"
    used = kernel(
        path,
        args=[DRAM_AT, SOURCE, 0, 0, *here, 1, SCRATCH],
        compile_args=[count, pages, PAGE, 0],
    )
    yield Case(path, chip, [used], held, [_expects(here, SOURCE, block)], (0,), row)


def interleaved(chip: str) -> Iterator[Case]:
    here, banks = tile(chip, 0, 0), [bank(chip, number) for number in range(2)]
    block = DATA[: 2 * PAGE]
    parts = [block[:PAGE], block[PAGE:]]
    in_dram = [(at, base + DRAM_AT, part) for (at, base), part in zip(banks, parts, strict=True)]
    accessor = [2, PAGE]  # in DRAM, bytes of a page
    form = [1, 2, PAGE, 0, 0, 0, 0, *accessor]
    barrier = [0, *here, 1, SCRATCH]
    for way in ("read", "write"):
        held = [_at(*one) for one in in_dram] if way == "read" else [_at(here, SOURCE, block)]
        after = (
            [_expects(here, SOURCE, block)]
            if way == "read"
            else [_expects(*one) for one in in_dram]
        )
        name = f"interleaved/kernels/interleaved_page_{way}.cpp"
        used = kernel(name, args=[DRAM_AT, SOURCE], compile_args=form)
        yield Case(name, chip, [used], held, after)
        name = f"multi_interleaved/kernels/multi_interleaved_{way}.cpp"
        args = [DRAM_AT, SOURCE, 0, *barrier]
        used = kernel(name, args=args, compile_args=[1, 2, PAGE, 0, 0, 0, *accessor])
        yield Case(name, chip, [used], held, after, (0,))
        name = f"noc_estimator_tests/kernels/dram_{way}er.cpp".replace("writeer", "writer")
        args = [DRAM_AT, SOURCE, 1, *barrier]
        used = kernel(name, args=args, compile_args=[2, PAGE, 0, 0, 1, 0, 0, 2, *accessor])
        first = [in_dram[0]] if way == "read" else in_dram  # the last page read is page 0
        data = parts[0]
        held = [_at(*one) for one in first] if way == "read" else [_at(here, SOURCE, data)]
        after = (
            [_expects(here, SOURCE, data)]
            if way == "read"
            else [_expects(at, offset, data) for at, offset, _ in in_dram]
        )
        yield Case(name, chip, [used], held, after, (0,))


def to_sharded(chip: str) -> Iterator[Case]:
    """A block of an interleaved tensor into a circular buffer, by tiles and by rows."""
    here, (at, base) = tile(chip, 0, 0), bank(chip, 0)
    buffers = [
        CircularBuffer(number, SOURCE + number * 0x8000, 4 * PAGE, PAGE) for number in (0, 1)
    ]
    folder = "interleaved_to_sharded_hardcoded/kernels"
    block = DATA[:PAGE]
    held = [_at(at, base + DRAM_AT, block)]
    after = [_expects(here, SOURCE, block)]
    reads: dict[str, Any] = {"processor": "data_movement_1", "circular_buffers": buffers}
    path = f"{folder}/reader_unary_sharded_blocks_interleaved_start_id.cpp"
    used = kernel(
        path, args=[DRAM_AT, 1, 1, 0, 1, 1, 0, 0], compile_args=[0, 1, 2, PAGE, 0], **reads
    )
    yield Case(path, chip, [used], held, after)
    path = f"{folder}/reader_unary_stick_layout_sharded_blocks_interleaved_start_id.cpp"
    used = kernel(
        path,
        args=[DRAM_AT, 1, 1, PAGE, PAGE, 0, 0, PAGE, 0, 0],
        compile_args=[0, 1, PAGE, 2, PAGE, 0, 2],
        **reads,
    )
    yield Case(path, chip, [used], held, after)


def reshard(chip: str) -> Iterator[Case]:
    here, there = tile(chip, 0, 0), tile(chip, 1, 0)
    path = "reshard_hardcoded/kernels/reshard_reader.cpp"
    stride = 1 << 16 | 2 << 8  # a page per stride, two strides
    args = [there[0], there[1], SOURCE, 2, 1, 0, 0, 1 << 16, stride]
    used = kernel(
        path,
        processor="data_movement_1",
        args=args,
        compile_args=[TO, 1, 1, PAGE, 2, PAGE, 0],
    )
    block = DATA[: 3 * PAGE]
    after = [_expects(here, TO, block[:PAGE] + block[2 * PAGE :])]
    yield Case(path, chip, [used], [_at(there, SOURCE, block)], after)


GROUPS = (
    one_to_one, one_from_one, both_ways, calls, direct_writes, transaction_ids, one_to_many,
    with_semaphores, atomics, everyone, one_from_all, dram_unary, dram_sharded, interleaved,
    to_sharded, reshard,
)  # fmt: skip


def cases(chip: str) -> list[Case]:
    """All of them on a chip, one per kernel file."""
    found: Sequence[Case] = [case for group in GROUPS for case in group(chip)]
    assert len({case.name for case in found}) == len(found)
    return list(found)
