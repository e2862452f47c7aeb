# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Simulated times of programs that use NCCL. `$TOWPATH_NCCL_SOURCE` names its repository."""

import pytest

import towpath
from conftest import run_with_nccl
from inside.nccl import Library

pytestmark = pytest.mark.slow
RELEASE = "2.21.5"
SIZES = (8, 4096, 65536, 1 << 20)


@pytest.fixture(scope="module")
def program(compiled):
    return compiled("times", RELEASE)


def printed(program, *words, options=()):
    done = run_with_nccl(program, *words, release=RELEASE, options=options)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def measured(program, *options, way="wait"):
    text = printed(program, way, *map(str, SIZES), options=options)
    rows = [line.split() for line in text.splitlines() if line.endswith(("right", "wrong"))]
    assert [int(row[0]) for row in rows] == list(SIZES)
    assert all(row[3] == "right" for row in rows)
    return [(float(row[1]), float(row[2])) for row in rows]


@pytest.mark.parametrize("way", ["wait", "poll"])
def test_clocks_and_events_show_the_simulated_times(program, way):
    machine = towpath.load("dgx-h100", hosts=1)
    library = Library(release=RELEASE)
    expected = machine.expect("all_reduce", size_bytes=list(SIZES), library=library).rows
    for row, (by_clock_us, by_events_us) in zip(expected, measured(program, way=way), strict=True):
        time_us = row.out_of_place.time_us
        assert by_events_us == pytest.approx(time_us, rel=0.01)
        assert by_clock_us == pytest.approx(time_us, rel=0.01)


def test_a_variable_of_nccl_changes_the_time(program):
    ring = measured(program, "--env", "NCCL_ALGO=Ring", "--env", "NCCL_PROTO=Simple")
    assert ring[0][1] > 1.2 * measured(program)[0][1]


def test_real_time_is_another_one(program):
    simulated_us, real_us = measured(program)[-1][1], measured(program, "--real-time")[-1][1]
    assert real_us > 10 * simulated_us


def test_messages_take_the_time_of_the_same_exchange(compiled):
    text = printed(compiled("messages", RELEASE), *map(str, SIZES))
    rows = [line.split() for line in text.splitlines() if line.endswith(("right", "wrong"))]
    assert [int(row[0]) for row in rows] == list(SIZES)
    assert all(row[3] == "right" for row in rows)
    library = Library(release=RELEASE)

    def expected_us(ranks, size_bytes):
        machine = towpath.load("dgx-h100", hosts=1, ranks_per_host=ranks)
        row = machine.expect("all_to_all", size_bytes=ranks * size_bytes, library=library).rows[0]
        return (row.out_of_place or row.in_place).time_us

    for size_bytes, row in zip(SIZES, rows, strict=True):
        to_next_us, to_all_us = float(row[1]), float(row[2])
        assert to_all_us == pytest.approx(expected_us(8, size_bytes), rel=0.01)
        # A message to one rank has fewer bytes on its links.
        assert to_next_us <= to_all_us * 1.01
    assert float(rows[-1][1]) < 0.8 * float(rows[-1][2])


def test_a_sleep_takes_simulated_time(compiled):
    alone_us, both_us, errors = printed(compiled("sleep", RELEASE)).split()
    # The clock is read twice, which takes 25 ns each.
    assert float(alone_us) == pytest.approx(5000, abs=0.1)
    assert float(both_us) == pytest.approx(400_000, abs=0.1)
    assert errors == "right"
