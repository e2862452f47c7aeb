# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""The rectangle of a multicast has a direction: that of its NoC, round the torus if need be."""

from __future__ import annotations

import pytest

from towpath import ConfigError, KernelRun, MemoryBlock, SourceKernel, load

WORKER_COLUMNS = (1, 2, 3, 4, 6, 7, 8, 9)  # of a row of the Wormhole
SOURCE, TARGET = 0x20000, 0x30000
SEND = """
#include "dataflow_api.h"
void kernel_main() {
  noc_async_write_multicast(
      0x20000, get_noc_multicast_addr(X_FIRST, Y_FIRST, X_LAST, Y_LAST, 0x30000), 64, WORKERS);
  noc_async_write_barrier();
}
"""


def sent(noc: int, first: tuple[int, int], last: tuple[int, int], workers: int) -> KernelRun:
    """A multicast of core (3, 1), told so many workers; what arrives in row 1 is read."""
    defines = {
        "X_FIRST": first[0], "Y_FIRST": first[1], "X_LAST": last[0], "Y_LAST": last[1],
        "WORKERS": workers,
    }  # fmt: skip
    kernel = SourceKernel(
        "send.cpp", core=(2, 0), noc=noc, text=SEND,
        defines={name: str(value) for name, value in defines.items()},
    )  # fmt: skip
    return load("wormhole").run_kernels(
        [kernel],
        write=[MemoryBlock((3, 1), SOURCE, bytes([7] * 64))]
        + [MemoryBlock((x, 1), TARGET, bytes(64)) for x in WORKER_COLUMNS],
        read=[MemoryBlock((x, 1), TARGET, 64) for x in WORKER_COLUMNS],
    )


@pytest.mark.parametrize(
    ("noc", "first", "last", "reached"),
    [
        (0, (9, 1), (2, 1), [1, 2, 9]),
        (0, (2, 1), (9, 1), [2, 4, 6, 7, 8, 9]),
        (1, (2, 1), (9, 1), [1, 2, 9]),
        (1, (9, 1), (2, 1), [2, 4, 6, 7, 8, 9]),
        (0, (7, 1), (7, 1), [7]),
        (1, (7, 1), (7, 1), [7]),
        (0, (8, 11), (1, 1), [1, 8, 9]),  # round both edges, over a harvested row
    ],
)
def test_a_multicast_reaches_the_workers_on_its_way(noc, first, last, reached):
    run = sent(noc, first, last, len(reached))
    arrived = [x for x, block in zip(WORKER_COLUMNS, run.read, strict=True) if any(block)]
    assert arrived == reached
    assert all(block in (bytes(64), bytes([7] * 64)) for block in run.read)


def test_the_time_is_that_of_the_way():
    whole_row = [sent(0, (9, 1), (2, 1), 3), sent(0, (2, 1), (9, 1), 6), sent(1, (9, 1), (2, 1), 6)]
    over_the_left_edge = sent(1, (2, 1), (9, 1), 3)  # 4 hops instead of 9
    assert len({run.time_ns for run in whole_row}) == 1
    assert over_the_left_edge.time_ns < whole_row[0].time_ns


@pytest.mark.parametrize("noc", [0, 1])
def test_swapped_corners_are_refused_with_what_they_cover(noc):
    first, last = ((9, 1), (2, 1)) if noc == 0 else ((2, 1), (9, 1))
    with pytest.raises(ConfigError) as caught:
        sent(noc, first, last, 6)
    assert str(caught.value) == (
        "kernel 'send' on core (3, 1) in noc_async_write_multicast at send.cpp:4: has 6 "
        f"destinations, but the rectangle ({first[0]}, 1) to ({last[0]}, 1), which goes round the "
        f"torus on NoC {noc} over columns 9 and 0 to 2 and row 1, has 3 workers other than "
        "this core; "
        f"the rectangle ({last[0]}, 1) to ({first[0]}, 1) has 6"
    )
