# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""What `towpath run` takes when neither algorithm nor protocol is named."""

import json
import math
import re
from random import Random
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

import towpath
from conftest import towpath_command
from inside.schedules import ScheduleSource
from inside.tuning import (
    Race,
    Timing,
    chooser,
    least_us,
    limit_on_line_us,
    limit_with_chance_us,
    line_us,
)

ROW = re.compile(r"^ +(\d+) .* (\w+) (Simple|LL|LL128) (\d+)(?:  \+-\d+/\d+%)?$", re.MULTILINE)


def rows(*words):
    """Size -> algorithm, protocol and channels of each row."""
    text = towpath_command("run", "all_reduce", "--machine", "dgx-h100", "--no-data", *words).stdout
    return {int(size): tuple(chosen) for size, *chosen in ROW.findall(text)}


@pytest.fixture(scope="module")
def chosen():
    """The rows of three sizes on one host."""
    return rows("--hosts", "1", "--sizes", "8,1M,64M")


@pytest.mark.slow
def test_small_and_large_sizes_have_schedules_of_their_own(chosen):
    assert chosen[8][1] == "LL" and chosen[64 << 20][1] == "Simple"
    assert chosen[8][0] != chosen[64 << 20][0]


@pytest.mark.slow
@pytest.mark.parametrize("size", ["64M", pytest.param("1G", marks=pytest.mark.long)])
def test_the_largest_arrays_of_two_hosts_go_through_the_switches(size):
    """NVLSTree, as NCCL does."""
    [chosen] = rows("--hosts", "2", "--sizes", size).values()
    assert chosen[0] == "nvls_tree_all_reduce"


def test_a_named_algorithm_or_protocol_is_kept():
    assert {each[0] for each in rows("--algorithm", "ring", "--sizes", "8,64M").values()} == {
        "ring_all_reduce"
    }
    assert {each[1] for each in rows("--protocol", "ll", "--sizes", "8,64K").values()} == {"LL"}


def test_both_named_mean_no_choice():
    line = ("--algorithm", "ring", "--protocol", "simple", "--hosts", "1", "--sizes", "8,1M")
    [chosen] = set(rows(*line).values())
    assert chosen[:2] == ("ring_all_reduce", "Simple")
    result = towpath.load("dgx-h100", hosts=1).run(
        size_bytes="8,1M".split(","), algorithm="ring", protocol="Simple", data=False
    )
    assert not result.is_chosen
    assert [row.choice for row in result.rows] == [None, None]


# test_api_run.py compares three sizes on one host.
@pytest.mark.slow
@pytest.mark.parametrize(
    ("hosts", "size"),
    [
        (2, "8"), (2, "4M"),
        *(pytest.param(1, size, marks=pytest.mark.long) for size in ("8", "1M", "64M")),
    ],
)  # fmt: skip
def test_what_is_chosen_is_near_the_fastest_of_all(hosts, size):
    machine = towpath.load("dgx-h100", hosts=hosts)
    chosen = machine.run(size_bytes=size, data=False)
    fastest = machine.tune(size_bytes=size, jobs=1).fastest()[0]
    assert chosen.time_us <= fastest.time_us * 1.02


@pytest.mark.slow
def test_the_choice_at_a_size_does_not_depend_on_the_other_sizes(chosen):
    assert rows("--hosts", "1", "--sizes", "1M")[1 << 20] == chosen[1 << 20]


@pytest.mark.slow
@pytest.mark.parametrize("machine", ["n300", "t3000", "carvnet"])
def test_other_machines_get_the_fastest_schedule_too(machine):
    command = ["run", "all_reduce", "--machine", machine, "--sizes", "1K,64K", "--no-data"]
    runs = json.loads(towpath_command(*command, "--json").stdout)["results"]
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
    with pytest.raises(towpath.ConfigError, match="channel 3 of chip 0, which has no link"):
        towpath.load("n300").run(size_bytes=1024, link_faults=["0:3,loss=0.1"])


SOURCES = [
    ScheduleSource(collective="all_reduce", algorithm=algorithm, ranks=8, channels=channels,
                   protocol=protocol)
    for channels in (1, 2, 4)
    for algorithm in ("ring", "tree", "two_shot")
    for protocol in ("Simple", "LL")
]  # fmt: skip


def chooser_of(ranks, bytes_max, monkeypatch):
    """Between the sources, as if they were all candidates of so many ranks."""
    monkeypatch.setattr(chooser, "candidates", lambda *_: (SOURCES, []))
    monkeypatch.setattr(chooser, "affordable", lambda *_, **__: (SOURCES, []))
    return chooser.Chooser(
        "all_reduce", SimpleNamespace(ranks=ranks), lambda schedule, source: None,
        bytes_max=bytes_max,
    )  # fmt: skip


def time_of(random_state, call, size_bytes):
    """A latency and a bandwidth for each schedule, not quite; some hang."""
    schedule = call.schedule
    numbers = Random(f"{random_state} {schedule.name} {schedule.channels} {schedule.protocol}")
    latency_us, gb_per_s = numbers.uniform(5, 50), numbers.choice([1, 4, 16, 20])
    if numbers.random() < 0.1:
        raise towpath.DeadlockError("it hangs")
    uneven = Random(f"{random_state} {schedule.name} {size_bytes}").uniform(0.8, 1.2)
    return latency_us * uneven + size_bytes / gb_per_s / 1e3


@pytest.mark.parametrize(
    ("ranks", "bytes_max"), [(8, None), (64, None), (8, 4 << 20), (64, 64 << 10)]
)
@pytest.mark.parametrize("seed", range(12))
def test_what_is_given_up_would_not_have_been_chosen(seed, ranks, bytes_max, monkeypatch):
    """In whichever order sizes are asked for."""
    given_up = []

    def within(_place, call, size_bytes, limit_us):
        time_us = time_of(seed, call, size_bytes)
        given_up.append(time_us > limit_us)
        return time_us if time_us <= limit_us else None

    def chosen(sizes):
        found = chooser_of(ranks, bytes_max, monkeypatch)
        return {size: found.choose(size)[0] for size in sizes}

    monkeypatch.setattr(chooser, "time_within_us", within)
    sizes = [8, 1 << 10, 64 << 10, 1 << 20, 3 << 20, 64 << 20, 1 << 30]
    rising, falling = chosen(sizes), chosen(sizes[::-1])
    assert any(given_up)
    monkeypatch.setattr(Race, "limit_us", lambda race, source: math.inf)
    assert rising == falling == chosen(sizes)


def test_of_equal_times_the_first_candidate_is_chosen(monkeypatch):
    """Whichever was simulated first."""
    monkeypatch.setattr(chooser, "time_within_us", lambda *_: 7.0)
    for size in (1 << 10, 1 << 20, 3 << 20, 64 << 20):
        assert chooser_of(8, 4 << 20, monkeypatch).choose(size)[0] == SOURCES[0]


@given(
    own=st.lists(st.floats(1, 1e6), max_size=3),
    fastest_us=st.floats(1, 1e6),
    ratio=st.integers(2, 64),
)
def test_the_limits_of_times_are_those_of_the_rules(own, fastest_us, ratio):
    """A time just within is one by which a candidate is kept, and one beyond is not."""
    source = ScheduleSource(collective="all_reduce", algorithm="ring", ranks=8)
    before = [Timing(source, 4**i, time_us) for i, time_us in enumerate(own)]
    step = 4 ** len(own)
    longest_us = fastest_us * ratio
    for share, keeps in ((1 - 1e-6, True), (1 + 1e-6, False)):
        limit_us = limit_on_line_us(before, step, step * ratio, longest_us)
        line = line_us([*before, Timing(source, step, limit_us * share)], step * ratio)
        assert (line <= longest_us) == keeps
        limit_us = limit_with_chance_us(before, step, step * ratio, fastest_us)
        least = least_us([*before, Timing(source, step, limit_us * share)], step * ratio)
        assert (least <= longest_us) == keeps
