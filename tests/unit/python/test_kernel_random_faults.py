# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Random kernels of a core with one mistake each: named with its line, and silent without it."""

from __future__ import annotations

import random
from typing import NamedTuple

import pytest

from towpath import CircularBuffer, KernelRun, MemoryBlock, SourceKernel, TowpathError, load

L1_BYTES = 1499136
BUFFERS = [CircularBuffer(0, 0x30000, 4 * 1024, 1024)]
PARAMETERS = """
#include "dataflow_api.h"
#include <string.h>
volatile uint32_t sink;
uint32_t own[64];
__attribute__((noinline)) void fill(uint32_t count) {
  uint8_t bytes[16]; volatile uint8_t* at = bytes; for (uint32_t i = 0; i < count; ++i) at[i] = 1; }
void kernel_main() {
  const uint32_t kind = get_arg_val<uint32_t>(0), wrong = get_arg_val<uint32_t>(1);
  const uint32_t n = get_arg_val<uint32_t>(2), m = get_arg_val<uint32_t>(3);
  const uint32_t x = get_arg_val<uint32_t>(4), l1 = get_arg_val<uint32_t>(5);
  const uint32_t at = 0x20000 + 16 * n;
"""
FILL_END = 1 + next(
    number for number, line in enumerate(PARAMETERS.splitlines()) if line.endswith("= 1; }")
)
READ = "noc_async_read(get_noc_addr(x, 1, 0x40000), 0x30000, 512);"
LOOPBACK = (
    "noc_async_write_multicast_loopback_src(0x20000, get_noc_multicast_addr(1, 1, x, 1, 0x30000), "
    "512, x);"
)
PAGES = "cb_reserve_back(0, 1); cb_push_back(0, 1); cb_wait_front(0, 1);"
BARRIERS = "noc_async_read_barrier(); noc_async_write_barrier();"


class Kind(NamedTuple):
    """A mistake if `wrong` is 1: the lines before its own, its own, and those behind."""

    line: str
    words: str
    before: tuple[str, ...] = ()
    behind: tuple[str, ...] = ()


# n and m are at least 1 and at most 60.
KINDS = [
    Kind("sink = *(volatile uint32_t*)(wrong ? l1 + 4 * n : at);", "it loads 4 bytes"),
    Kind("*(volatile uint32_t*)(wrong ? l1 + 4 * n : at) = m;", "it stores 4 bytes"),
    Kind("sink = *(uint8_t*)(l1 - 1 + wrong * n);", "it loads 1 byte"),
    Kind("*(volatile uint64_t*)(l1 - 8 + wrong * 4) = m;", "it stores 8 bytes"),
    Kind("sink = *(volatile uint32_t*)(at + wrong * (1 + m % 3));", "a multiple of 4"),
    Kind("*(volatile uint16_t*)(at + wrong) = m;", "a multiple of 2"),
    Kind("*(volatile uint32_t*)(wrong ? 4 * n : at) = m;", "it stores 4 bytes"),
    Kind("uint32_t* p = own + (wrong ? 1 << 28 : 0); p[n] = m;", "neither in its L1 nor memory"),
    Kind("memcpy(own, (void*)(long)(l1 - 64 + wrong * n), 64); sink = own[3];", "memory"),
    Kind("fill(16 + wrong * (64 + m));", "written beyond its variables"),
    Kind("own[wrong ? 63 + n : n] = m;", "of an array of type 'unsigned int [64]'"),
    Kind("if (wrong) ((void (*)())(long)at)();", "without code"),
    Kind("sink = m / (1 - wrong);", "divides a whole number by zero"),
    Kind(
        "noc_async_write(at, get_noc_addr(x, 1, l1 - 64 + 16 * wrong * n), 64);",
        "leaves the memory there", (), (BARRIERS,),
    ),
    Kind(
        "noc_async_read(get_noc_addr(x, 1, 0x40000), l1 - 64 + 16 * wrong * n, 64);",
        "leaves the core's own memory", (), (BARRIERS,),
    ),
    Kind(
        "noc_async_write(at, get_noc_addr(x, 1, 0x40000 + 4 * wrong * (1 + m % 3)), 64);",
        "must be equal modulo 16", (), (BARRIERS,),
    ),
    Kind(
        "noc_async_read_one_packet(get_noc_addr(x, 1, 0x40000), 0x50000, 8192 + 32 * wrong * n);",
        "do not fit into one packet", (), (BARRIERS,),
    ),
    Kind(
        "noc_async_write(at, get_noc_addr(wrong ? 0 : x, 1 + wrong, 0x40000), 64);",
        "has no memory", (), (BARRIERS,),
    ),
    Kind(
        "sink = *(volatile uint32_t*)(0x30000 + 4 * n);", "which its read",
        (READ, "if (!wrong) noc_async_read_barrier();"), (BARRIERS,),
    ),
    Kind(
        "noc_async_write(0x30000 + 16 * (n % 16), get_noc_addr(x, 1, 0x60000), 64);",
        "which its read", (READ, "if (!wrong) noc_async_read_barrier();"), (BARRIERS,),
    ),
    Kind(
        "cb_push_back(0, 1);", "which its read",
        ("cb_reserve_back(0, 1);", READ, "if (!wrong) noc_async_read_barrier();"), (BARRIERS,),
    ),
    Kind(
        "sink = *(volatile uint8_t*)(0x30000 + 8 * n);", "which its multicast",
        (LOOPBACK, "noc_async_writes_flushed();", "if (!wrong) noc_async_write_barrier();"),
        (BARRIERS,),
    ),
    Kind(
        "cb_pop_front(0, 1);", "may still have to read",
        (PAGES, "noc_async_write(0x30000 + 16 * (n % 16), get_noc_addr(x, 1, 0x60000), 64);",
         "if (!wrong) noc_async_writes_flushed();"), (BARRIERS,),
    ),
    Kind("cb_push_back(0, 1 + 3 * wrong);", "with room for 3", ("cb_push_back(0, 1);",)),
    Kind("cb_pop_front(0, 1 + wrong);", "with 1 pushed", (PAGES,)),
]  # fmt: skip
FILLERS = (
    "sink = sink * 3 + n;",
    "*(volatile uint32_t*)(0x70000 + 4 * n) = m;",
    "own[n] += *(uint32_t*)(0x70000 + 4 * m);",
    "memcpy(own + 1, (void*)0x70010, 32);",
    "noc_semaphore_set((volatile uint32_t*)get_semaphore(0), n);",
    "noc_async_write(0x70000, get_noc_addr(x, 1, 0x80000), 16 * n); noc_async_write_barrier();",
    "noc_async_read(get_noc_addr(x, 1, 0x80000), 0x90000, 16 * m); noc_async_read_barrier();",
    "riscv_wait(n);",
    "",
)


class Source(NamedTuple):
    """A kernel with a branch for each kind, and the line of each mistake."""

    text: str
    lines: dict[int, int]


def drawn_source(draw: random.Random) -> Source:
    lines = PARAMETERS.splitlines()
    places: dict[int, int] = {}
    for number in draw.sample(range(len(KINDS)), len(KINDS)):
        kind = KINDS[number]
        lines += draw.choices(FILLERS, k=draw.randrange(4))
        lines.append(f"if (kind == {number}) {{")
        for line in kind.before:
            lines += [line, *draw.choices(("", "sink = sink + m;"), k=draw.randrange(2))]
        lines.append(kind.line)
        # A stack is checked at the end of its function.
        places[number] = FILL_END if kind.line.startswith("fill(") else len(lines)
        lines += [*kind.behind, "}"]
    return Source("\n".join([*lines, "}", ""]), places)


def run(source: Source, arguments: tuple[int, ...], noc: int) -> KernelRun:
    kernel = SourceKernel(
        "drawn.cpp", core=(0, 0), noc=noc, args=list(arguments), text=source.text,
        circular_buffers=BUFFERS,
    )  # fmt: skip
    return load("wormhole").run_kernels(
        [kernel], semaphores=[0], write=[MemoryBlock((1, 1), 0x20000, bytes(4096))]
    )


def check(sources: int, kernels_of_each: int, seed: int) -> int:
    """Returns the number of mistakes that were named."""
    draw = random.Random(seed)
    named = 0
    for _ in range(sources):
        source = drawn_source(draw)
        for _ in range(kernels_of_each):
            number = draw.randrange(len(KINDS))
            values = (draw.randint(1, 60), draw.randint(1, 60), draw.randint(2, 4), L1_BYTES)
            run(source, (number, 0, *values), noc=0)
            with pytest.raises(TowpathError) as caught:
                run(source, (number, 1, *values), noc=0)
            said = str(caught.value)
            assert KINDS[number].words in said, (number, values, said)
            assert f"at drawn.cpp:{source.lines[number]}: " in said, (number, values, said)
            named += 1
    return named


@pytest.mark.slow
def test_each_kind_is_named_with_its_line_and_silent_without_it():
    source = drawn_source(random.Random(1))
    for number, kind in enumerate(KINDS):
        values = (7, 5, 3, L1_BYTES)
        run(source, (number, 0, *values), noc=0)
        with pytest.raises(TowpathError) as caught:
            run(source, (number, 1, *values), noc=0)
        assert kind.words in str(caught.value)
        assert f"at drawn.cpp:{source.lines[number]}: " in str(caught.value)


@pytest.mark.long
def test_500_random_kernels_are_named_with_their_line():
    assert check(sources=50, kernels_of_each=10, seed=43) == 500
