# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""The ways of launching a collective: processes, threads, one process, a graph."""

import pytest

from conftest import refusal, towpath_command
from towpath import load


@pytest.fixture(scope="module")
def times_us():
    machine = load("dgx-h100", hosts=1)
    return {
        way: machine.run(size_bytes=[8, "64M"], library="nccl", data=False, launch=way)
        for way in ("processes", "threads", "one-process", "graph")
    }


def test_small_messages_depend_on_the_launch_and_large_ones_do_not(times_us):
    small = {way: result.rows[0].time_us for way, result in times_us.items()}
    large = [result.rows[1].time_us for result in times_us.values()]
    assert small["graph"] < small["processes"] < small["threads"] < small["one-process"]
    assert max(large) < min(large) + small["threads"]


def test_one_process_cannot_launch_faster_than_its_thread(times_us):
    row = times_us["one-process"].rows[0]
    assert row.time_us == pytest.approx(8 * 3.3)
    assert row.out_of_place.algbw_gb_per_s == pytest.approx(8 / row.time_us / 1e3)


def test_the_answer_names_its_launch():
    line = ("expect", "all_reduce", "--machine", "dgx-h100:1", "--sizes", "8", "--launch", "graph")
    assert "launched as a node of a CUDA graph (--launch)" in towpath_command(*line).stdout


@pytest.mark.parametrize(
    ("machine", "way", "words"),
    [
        ("dgx-h100", "mpi", "choose one of processes, threads, one-process, graph"),
        ("fully-connected", "graph", "has no launch_in_graph_ns"),
        ("t3000", "graph", "launch applies to clusters of GPUs"),
    ],
)
def test_a_launch_that_is_unknown_or_has_no_cost_is_refused(machine, way, words):
    assert words in refusal(load(machine).run, size_bytes="1K", launch=way)
