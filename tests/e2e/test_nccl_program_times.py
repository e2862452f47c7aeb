# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Simulated times of programs that use NCCL. `$TOWPATH_NCCL_SOURCE` names its repository."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import towpath
from inside.nccl import Library

pytestmark = pytest.mark.slow
RELEASE = "2.21.5"
SIZES = (8, 4096, 65536, 1 << 20)


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    source = os.environ.get("TOWPATH_NCCL_SOURCE")
    if not source:
        pytest.skip("TOWPATH_NCCL_SOURCE names no repository of NCCL")
    made = tmp_path_factory.mktemp("times") / "times"
    code = str(Path(__file__).parent / "nccl" / "times.cu")
    run("nccl", "build", source, "--release", RELEASE)
    run("nccl", "compile", code, "-o", str(made), "--release", RELEASE)
    return made


def run(*words):
    command = [sys.executable, "-m", "towpath", *words]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def measured(program, *options):
    words = ("--machine", "dgx-h100", "--hosts", "1", "--release", RELEASE, *options)
    text = run("nccl", "run", *words, "--", str(program), *map(str, SIZES))
    rows = [line.split() for line in text.splitlines() if line.endswith(("right", "wrong"))]
    assert [int(row[0]) for row in rows] == list(SIZES)
    assert all(row[3] == "right" for row in rows)
    return [(float(row[1]), float(row[2])) for row in rows]


def test_clocks_and_events_show_the_simulated_times(program):
    machine = towpath.load("dgx-h100", hosts=1)
    library = Library(release=RELEASE)
    expected = machine.expect("all_reduce", size_bytes=list(SIZES), library=library).rows
    for row, (by_clock_us, by_events_us) in zip(expected, measured(program), strict=True):
        time_us = row.out_of_place.time_us
        assert by_events_us == pytest.approx(time_us, rel=0.01)
        assert by_clock_us == pytest.approx(time_us, rel=0.01)


def test_a_variable_of_nccl_changes_the_time(program):
    ring = measured(program, "--env", "NCCL_ALGO=Ring", "--env", "NCCL_PROTO=Simple")
    assert ring[0][1] > 1.2 * measured(program)[0][1]


def test_real_time_is_another_one(program):
    simulated_us, real_us = measured(program)[-1][1], measured(program, "--real-time")[-1][1]
    assert real_us > 10 * simulated_us


def test_a_sleep_takes_simulated_time(program, tmp_path):
    sleep = str(tmp_path / "sleep")
    code = str(Path(__file__).parent / "nccl" / "sleep.cu")
    run("nccl", "compile", code, "-o", sleep, "--release", RELEASE)
    words = ("--machine", "dgx-h100", "--hosts", "1", "--release", RELEASE)
    alone_us, both_us, errors = run("nccl", "run", *words, "--", sleep).split()
    # The clock is read twice, which takes 25 ns each.
    assert float(alone_us) == pytest.approx(5000, abs=0.1)
    assert float(both_us) == pytest.approx(400_000, abs=0.1)
    assert errors == "right"
