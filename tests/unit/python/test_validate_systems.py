# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Rows of any system whose columns are known: each has a figure that fits to its neighbours."""

import random

import pytest

from inside.validation import FABRIC_KINDS, CannotSimulate, ChipCall, Context, form_of, system_of

NEIGHBOURS, LINE, STREAMS, COLLECTIVES = FABRIC_KINDS

SYSTEMS = (
    "n300", "t3k_8", "T3000", "galaxy", "wh_galaxy_32", "6u", "p150_x2", "p150_x4", "p150_x8",
    "p300_x2", "bh_galaxy_32", "bh_galaxy_2x2",
)  # fmt: skip
FORMS = ("line", "ring", "mesh", "torus")
OPS = ("all_gather", "reduce_scatter", "all_reduce", "all_to_all")
SIZES = (4096, 32768, 262144)
# Collectives that an operation is made of, if it is not one.
PARTS = {"all_reduce": ("reduce_scatter", "all_gather")}


def collective_rows(number):
    """As many rows of random systems, the same in every run."""
    rng = random.Random(17)
    for _ in range(number):
        yield {
            "arch": rng.choice(("wormhole_b0", "blackhole")), "topology": rng.choice(FORMS),
            "mode": rng.choice(("single", "back-to-back")), "op": rng.choice(OPS),
            "n_devices": str(rng.choice((2, 3, 4, 8))),
            "links_per_direction": str(rng.choice((1, 2, 3))), "time_us": "1",
        }  # fmt: skip


def check_collective(row):
    system = system_of(
        "wormhole" if row["arch"].startswith("worm") else "blackhole",
        form_of(row), int(row["n_devices"]), int(row["links_per_direction"]),
    )  # fmt: skip
    before = 0.0
    for size in SIZES:
        time_us = COLLECTIVES.predict(row | {"size_bytes": str(size)}, Context()).value
        parts = PARTS.get(row["op"], (row["op"],))
        link_bytes = sum(ChipCall(system, part, size).link_bytes() for part in parts)
        at_line_rate_us = link_bytes / (1e3 * system.links * system.link_gb_per_s)
        assert time_us > at_line_rate_us, (row, size)
        # One packet takes half a microsecond to the next chip.
        assert time_us > 0.5, (row, size)
        # A one-shot algorithm may be a little slower than the next size's ring.
        assert time_us > 0.98 * before, (row, size)
        before = time_us


@pytest.mark.slow
def test_collectives_of_any_system_are_in_proportion():
    for row in collective_rows(8):
        check_collective(row)


@pytest.mark.long
def test_collectives_of_many_systems_are_in_proportion():
    for row in collective_rows(150):
        check_collective(row)


@pytest.mark.parametrize("system", SYSTEMS)
@pytest.mark.parametrize("form", FORMS)
def test_neighbours_of_any_system_are_in_proportion(system, form):
    def latency_ns(payload_bytes):
        row = {
            "system": system, "topology": form, "ntype": "NOC_UNICAST_WRITE",
            "payload_bytes": str(payload_bytes), "per_hop_avg_ns": "1",
        }  # fmt: skip
        return NEIGHBOURS.predict(row, Context()).value

    small, middle, large = (latency_ns(size) for size in (16, 1024, 4096))
    assert 500 < small < 1200
    assert small < middle < large < 3 * small


# 32 chips take seven seconds of processor time, and a minute round a ring. T3000 is t3k_8.
_SLOW = [("NeighborExchangeUnicast", name) for name in ("galaxy", "6u", "bh_galaxy_32")]
_SLOW += [("FullRingUnicast", name) for name in ("galaxy", "wh_galaxy_32", "6u", "bh_galaxy_32")]
_SLOW += [("FullRingUnicast", "T3000")]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("test", "system"),
    [
        pytest.param(test, system, marks=pytest.mark.long if (test, system) in _SLOW else ())
        for test in ("NeighborExchangeUnicast", "FullRingUnicast")
        for system in SYSTEMS
    ],
)
def test_streams_of_any_system_are_below_the_line(test, system):
    def rate_gb_per_s(packet_bytes):
        row = {
            "system": system, "test_name": test, "ntype": "NOC_UNICAST_WRITE",
            "packet_size": str(packet_bytes), "max_packet_size": "4352", "bandwidth_gb_per_s": "1",
        }  # fmt: skip
        return STREAMS.predict(row, Context())

    if test == "FullRingUnicast" and system in ("n300", "p150_x2"):
        with pytest.raises(CannotSimulate, match="2 chips in a line"):
            rate_gb_per_s(1024)
        return
    small, large = (rate_gb_per_s(size).value for size in (256, 2048))
    line_gb_per_s = {"b": 25, "p": 50}.get(system[0], 12.5)
    assert 0 < small < large < line_gb_per_s
