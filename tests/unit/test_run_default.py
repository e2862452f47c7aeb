# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""What `towpath run` takes when neither algorithm nor protocol is named."""

import json
import re

import pytest

import towpath
from conftest import towpath_command
from towpath.api.auto import _interpolated

ROW = re.compile(r"^ +(\d+) .* (\w+) (Simple|LL|LL128) (\d+)(?:  \+-\d+/\d+%)?$", re.MULTILINE)


def rows(*words):
    """Size -> algorithm, protocol and channels of each row."""
    text = towpath_command("run", "all_reduce", "--machine", "dgx-h100", "--no-data", *words).stdout
    return {int(size): tuple(chosen) for size, *chosen in ROW.findall(text)}


def test_small_and_large_sizes_have_schedules_of_their_own():
    chosen = rows("--hosts", "1", "--sizes", "8,1M,64M")
    assert chosen[8][1] == "LL" and chosen[64 << 20][1] == "Simple"
    assert chosen[8][0] != chosen[64 << 20][0]


def test_the_largest_arrays_of_two_hosts_go_through_the_switches():
    """NVLSTree, as NCCL does; a ring is the fastest at the sizes below."""
    chosen = rows("--hosts", "2", "--sizes", "64M,1G")
    assert {size: each[0] for size, each in chosen.items()} == {
        64 << 20: "ring_all_reduce",
        1 << 30: "nvls_tree_all_reduce",
    }


def test_a_named_algorithm_or_protocol_is_kept():
    assert {each[0] for each in rows("--algorithm", "ring", "--sizes", "8,64M").values()} == {
        "ring_all_reduce"
    }
    assert {each[1] for each in rows("--protocol", "ll", "--sizes", "8,64K").values()} == {"LL"}


def test_both_named_mean_no_choice():
    line = ("--algorithm", "ring", "--protocol", "simple", "--hosts", "1", "--sizes", "8,1M")
    assert rows(*line) == {}


@pytest.mark.parametrize(("hosts", "size"), [(1, "8"), (1, "1M"), (1, "64M"), (2, "8"), (2, "4M")])
def test_what_is_chosen_is_near_the_fastest_of_all(hosts, size):
    machine = towpath.load("dgx-h100", hosts=hosts)
    chosen = machine.run(size_bytes=size, data=False)
    fastest = machine.tune(size_bytes=size, jobs=1).fastest()[0]
    assert chosen.time_us <= fastest.time_us * 1.02


def test_the_choice_at_a_size_does_not_depend_on_the_other_sizes():
    alone = rows("--hosts", "1", "--sizes", "1M")
    assert alone[1 << 20] == rows("--hosts", "1", "--sizes", "8,1M,64M")[1 << 20]


@pytest.mark.parametrize("machine", ["n300", "t3000", "carvnet"])
def test_other_machines_get_the_fastest_schedule_too(machine):
    command = ["run", "all_reduce", "--machine", machine, "--sizes", "1K,64K", "--no-data"]
    runs = json.loads(towpath_command(*command, "--json").stdout)["runs"]
    assert all(each["is_chosen"] for each in runs)
    rows = [row for each in runs for row in each["rows"]]
    times_us = {row["size_bytes"]: row["out_of_place"]["time_us"] for row in rows}
    assert sorted(times_us) == [1 << 10, 64 << 10]
    for size, time_us in times_us.items():
        named = towpath.load(machine).run(
            size_bytes=size, algorithm="ring", protocol="Simple", data=False
        )
        assert time_us <= named.time_us


def test_a_fault_of_no_link_is_named_where_a_schedule_is_chosen():
    with pytest.raises(towpath.ConfigError, match="channel 3 of chip 0, which is joined to noth"):
        towpath.load("n300").run(size_bytes=1024, link_faults=["0:3,loss=0.1"])


def test_a_time_without_a_chance_is_infinite():
    assert _interpolated([(256, 7.0)], 8192, 8192) == float("inf")
    assert _interpolated([(256, 7.0), (1024, 28.0)], 1024, 4096) == pytest.approx(112.0)
