# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Kernels that others wrote, unmodified, from the checkout of tt-metal that $TT_METAL_HOME names:
what they measure beside what they measured on silicon, and the bytes that they move."""

from __future__ import annotations

import random
import statistics
from pathlib import Path

import pytest
import tt_metal_kernels as checkout
from tt_metal_kernels import SOURCE, Curve, kernel, run, tile

from towpath import MemoryBlock, load

pytestmark = pytest.mark.skipif(
    not Path(checkout.DATA_MOVEMENT).is_dir() or not checkout.HOME,
    reason="needs a checkout of tt-metal; set TT_METAL_HOME",
)

DATA = bytes(random.Random(1).randbytes(2048))


@pytest.mark.parametrize("chip", ["wormhole", "blackhole"])
def test_estimator_kernels_measure_what_they_measured_on_silicon(chip: str) -> None:
    errors = []
    for curve in checkout.curves(("one_to_one", "one_from_one")):
        if curve.chip != chip:
            continue
        for size_bytes in (64, 2048):
            measured = curve.cycles[size_bytes]
            errors.append(abs(checkout.estimator_cycles(curve, size_bytes) / measured - 1))
    assert len(errors) >= 20
    assert statistics.median(errors) <= 0.025
    # What is off: reads of 64 bytes back to back (validation/DEVIATIONS.md).
    assert sum(error <= 0.1 for error in errors) >= 0.9 * len(errors)
    assert max(errors) <= 0.2


def test_a_read_over_both_axes_takes_longer() -> None:
    same = Curve("wormhole", "one_from_one", 1, True, False, {})
    cycles = checkout.estimator_cycles(same, 64)
    assert checkout.estimator_cycles(same._replace(is_same_axis=False), 64) > cycles


def test_a_write_arrives() -> None:
    x, y = tile("wormhole", 3, 4)
    sender = kernel(
        "one_to_one/kernels/sender.cpp", compile_args=[SOURCE, 4, 2048, 0, x << 16 | y, 1]
    )
    found = run(
        "wormhole",
        [sender],
        write=[MemoryBlock(tile("wormhole", 0, 0), SOURCE, DATA)],
        read=[MemoryBlock((x, y), SOURCE, len(DATA))],
    )
    assert found.read == [DATA]
    assert ("sender", "Number of transactions", 4) in found.values


@pytest.mark.parametrize("is_linked", [0, 1])
def test_a_multicast_arrives_everywhere(is_linked: int) -> None:
    first, last = tile("wormhole", 1, 1), tile("wormhole", 3, 2)
    sender = kernel(
        "one_to_all/kernels/sender_multicast.cpp",
        compile_args=[
            SOURCE, SOURCE + 4096, 4, 2, 1024, 0, 6, is_linked, 0, *first, *last, 0, 3, 2,
        ],
    )  # fmt: skip
    places = [tile("wormhole", x, y) for x in (1, 2, 3) for y in (1, 2)]
    found = run(
        "wormhole",
        [sender],
        write=[MemoryBlock(tile("wormhole", 0, 0), SOURCE, DATA)],
        read=[MemoryBlock(place, SOURCE + 4096, len(DATA)) for place in places],
    )
    assert found.read == [DATA] * 6


def test_pages_of_dram_are_read_and_written() -> None:
    here, bank = tile("wormhole", 0, 0), first_bank()
    form = [
        0,
        0,
        0,
        0,
        2,
        2048,
    ]  # buffer, test, no sync, NoC, in DRAM, bytes of a page
    reader = kernel(
        "interleaved/kernels/interleaved_page_read.cpp",
        processor="data_movement_1",
        args=[4096, SOURCE],
        compile_args=[1, 1, 2048, *form],
    )
    blocks = [MemoryBlock(bank, 4096, DATA)]
    found = run("wormhole", [reader], write=blocks, read=[MemoryBlock(here, SOURCE, 2048)])
    assert found.read == [DATA]
    writer = kernel(
        "interleaved/kernels/interleaved_page_write.cpp",
        args=[4096, SOURCE],
        compile_args=[1, 1, 2048, *form],
    )
    blocks = [MemoryBlock(here, SOURCE, DATA)]
    found = run("wormhole", [writer], write=blocks, read=[MemoryBlock(bank, 4096, 2048)])
    assert found.read == [DATA]


def first_bank() -> tuple[int, int]:
    """A tile of the first group of DRAM channels."""
    place = load("wormhole").spec.build().dram_groups[0][0]
    return place[0], place[1]
