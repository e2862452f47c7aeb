# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Runs of the kernels with which tt-metal tests its Ethernet links, and what they measured."""

from __future__ import annotations

import csv
from pathlib import Path

from tt_metal_cases import DATA_FOLDER, Case
from tt_metal_kernels import HOME, INCLUDE, SOURCE, tile

from towpath import SourceKernel

LINK_TESTS = Path(HOME) / "tests/tt_metal/tt_metal/test_kernels/dataflow/unit_tests/erisc"
UNRESERVED = 0x1A800


def link_test(test: str, metric: str, size_bytes: int) -> Case:
    """The kernels of the tests of Ethernet links, between the chips of an n300.

    Args:
        test: erisc, or erisc_write_worker, whose receiver writes into a worker of its chip.
        metric: bandwidth or sender_latency.
        size_bytes: of a packet.
    """
    slots, packets = 16, 256 if metric == "bandwidth" else 1
    form = [0 if test == "erisc" else 2, int(metric == "bandwidth"), slots, 0]
    worker = tile("wormhole", 0, 0)
    args = [UNRESERVED, packets, size_bytes, *worker, SOURCE]
    names = ("sender", "receiver")
    used = [
        SourceKernel(
            LINK_TESTS / f"ethernet_write_worker_latency_ubench_{name}.cpp",
            core=(0, channel),
            chip=chip,
            processor="ethernet",
            args=[*args, 0, 0] if name == "sender" else args,
            compile_args=form,
            include_folders=INCLUDE,
        )
        for name, (chip, channel) in zip(names, LINK, strict=True)
    ]
    value = _link_row(test, metric, size_bytes)
    total = packets * slots * size_bytes
    cycles = value if metric == "sender_latency" or value is None else total / value
    return Case(f"{test} {metric} {size_bytes}", "n300", used, [], [], (), cycles)


# The first link between its chips that is not the dispatcher's.
LINK = ((0, 9), (1, 1))


def _link_row(test: str, metric: str, size_bytes: int) -> float | None:
    path = DATA_FOLDER / "ethernet_links.csv"
    if not path.is_file():
        return None
    wanted = ("wormhole_b0", test, "uni", metric, str(size_bytes))
    with path.open() as file:
        for row in csv.DictReader(file):
            columns = ("arch", "test", "direction", "metric", "packet_bytes")
            if tuple(row[column] for column in columns) == wanted:
                return float(row["value"])
    raise AssertionError(wanted)
