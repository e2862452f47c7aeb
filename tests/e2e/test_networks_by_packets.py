# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Collectives on chips whose networks are simulated packet by packet, beside flit by flit."""

from __future__ import annotations

import statistics
from functools import cache

import pytest

import towpath

# The bounds that docs/fabric.md names.
WORST = 0.15
MEDIAN = 0.02

CASES = [
    ("t3000", "all_gather", "ring", "64K"),
    ("t3000", "all_gather", "ring", "2M"),
    ("t3000", "all_gather", "all_pairs", "256K"),
    ("t3000", "all_reduce", "ring", "256K"),
    ("t3000", "all_reduce", "two_shot", "64K"),
    ("t3000", "all_reduce", "tree", "64K"),
    ("t3000", "all_reduce", "grid", "256K"),
    ("t3000", "reduce_scatter", "ring", "512K"),
    ("t3000", "all_to_all", "all_pairs", "256K"),
    ("t3000", "broadcast", "ring", "128K"),
    ("n300", "all_gather", "ring", "2M"),
    ("n300", "all_to_all", "bruck", "1M"),
    ("n300", "reduce", "ring", "256K"),
    ("blackhole-line", "all_gather", "line", "256K"),
    ("blackhole-line", "reduce_scatter", "ring", "128K"),
    ("galaxy", "all_gather", "grid", "32K"),
]


@cache
def machine(name):
    return towpath.load(name)


def time_us(name, collective, algorithm, size, **more):
    result = machine(name).run(
        collective,
        size_bytes=size,
        algorithm=algorithm,
        protocol="Simple",
        channels=2,
        **more,
    )
    return result.time_us


@pytest.fixture(scope="module")
def errors():
    """Case -> how much longer it takes packet by packet."""
    found = {}
    for case in CASES:
        by_flits = time_us(*case, data=False)
        found[case] = time_us(*case, data=False, network="packets") / by_flits - 1
    return found


def test_every_collective_takes_about_as_long(errors):
    assert {case: error for case, error in errors.items() if abs(error) > WORST} == {}


def test_half_of_them_are_within_the_bound(errors):
    assert statistics.median(map(abs, errors.values())) < MEDIAN


def test_it_is_another_model(errors):
    assert any(errors.values())


@pytest.mark.parametrize("collective", ["all_reduce", "all_to_all", "broadcast"])
def test_every_byte_arrives(collective):
    result = machine("t3000").run(
        collective, size_bytes="96K", algorithm=None, protocol="Simple", network="packets"
    )
    assert result.wrong == 0
    assert any("packet by packet" in note for note in result.notes)


def test_the_number_of_threads_changes_nothing():
    times = {
        time_us("t3000", "all_reduce", "ring", "64K", network="packets", threads=threads)
        for threads in (1, 2, 4)
    }
    assert len(times) == 1


def test_candidates_are_timed_by_packets_too():
    tuned = {
        network: machine("t3000").tune(
            "all_reduce", size_bytes="16K", channels=[2], jobs=1, network=network
        )
        for network in ("flits", "packets")
    }
    by_flits, by_packets = (
        {timing.source: timing.time_us for timing in each.timings} for each in tuned.values()
    )
    assert by_flits.keys() == by_packets.keys() and len(by_flits) > 2
    assert by_flits != by_packets
    for source, time in by_packets.items():
        assert time == pytest.approx(by_flits[source], rel=WORST)
    assert tuned["packets"].where.endswith("networks on chips packet by packet")


def test_a_machine_without_networks_on_chips_refuses():
    with pytest.raises(towpath.ConfigError, match="'dgx-h100' has no networks on chips"):
        towpath.load("dgx-h100").tune("all_reduce", size_bytes="64K", network="packets")
    with pytest.raises(towpath.ConfigError, match="'dgx-h100' has no networks on chips"):
        towpath.load("dgx-h100").run("all_reduce", size_bytes="64K", network="packets")
    with pytest.raises(towpath.ConfigError, match="network is 'trains'; choose flits or pac"):
        machine("t3000").run("all_reduce", size_bytes="64K", network="trains")
