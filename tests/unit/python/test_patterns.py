# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Who sends what to whom in all_to_all_v and send_recv, and the collectives that came with them."""

import pytest

import towpath
from conftest import refusal
from inside import _core
from inside.collectives import Call
from inside.live import live
from inside.schedules import ROOTED, ScheduleSource
from numpy_data import promised

pytestmark = pytest.mark.slow  # starts processes

NEW = ("gather", "scatter", "all_to_all_v", "send_recv", "barrier")


@pytest.fixture(scope="module")
def machine():
    return towpath.load("fully-connected", ranks=5)


def test_send_recv_follows_its_pattern(machine):
    schedule = towpath.Schedule.generate("send_recv", ranks=5, pattern=[2, 0, 1, 4, 3])
    peers = {step.rank: step.send_peer for step in schedule.steps() if step.type == "send"}
    assert peers == {0: 2, 1: 0, 2: 1, 3: 4, 4: 3}
    assert machine.run(schedule, size_bytes="100K").wrong == 0
    assert towpath.verify(schedule, size_bytes="100K").is_correct


def test_all_to_all_v_sends_what_its_pattern_says_and_promises_no_more(machine):
    pattern = [(3 * s + d) % 5 for s in range(5) for d in range(5)]
    schedule = towpath.Schedule.generate("all_to_all_v", ranks=5, pattern=pattern)
    sent = sum(step.count for step in schedule.steps() if step.type == "send")
    assert sent == sum(pattern) - sum(pattern[::6])
    assert machine.run(schedule, size_bytes="100K").wrong == 0
    assert towpath.verify(schedule, size_bytes="100K").is_correct


def test_what_all_to_all_v_does_not_send_is_not_promised():
    # Parts of 10 elements in 4 chunks of 3, the last of them ragged.
    found = promised(1, 2, 20, 8, [0, 4, 2, 1])
    assert found.tolist() == [True] * 10 + [True] * 3 + [False] * 7


def test_a_pattern_survives_export_and_import():
    for collective, pattern in (("send_recv", [1, 2, 0]), ("all_to_all_v", [0, 1, 2, 3, 4, 0] * 2)):
        ranks = 3 if collective == "send_recv" else 2
        schedule = towpath.Schedule.generate(collective, ranks=ranks, pattern=pattern[: ranks**2]
                                             if ranks == 2 else pattern)  # fmt: skip
        assert towpath.Schedule.load(schedule.to_xml().encode()) == schedule


@pytest.mark.parametrize(
    ("collective", "pattern", "sentence"),
    [
        ("send_recv", [0, 0], "rank 1 sends to rank 0; the pattern must list each of 2 ranks once"),
        ("send_recv", [1, 2], "rank 1 sends to rank 2"),
        ("send_recv", [1], "its pattern has 1 numbers; send_recv of 2 ranks has 2"),
        ("all_to_all_v", [1, 2, 3, 5], "rank 1 sends rank 1 5 chunks; a part has 4"),
    ],
)
def test_an_impossible_pattern_is_refused(collective, pattern, sentence):
    generate = towpath.Schedule.generate
    assert sentence in refusal(generate, collective, ranks=2, pattern=pattern)


def test_a_pattern_of_a_file_is_checked():
    text = towpath.Schedule.generate("send_recv", ranks=2).to_xml()
    for wrong, sentence in (
        ('pattern="1 x"', "has 'x' in pattern; it must have numbers"),
        ('pattern="1 1"', "rank 1 sends to rank 1; the pattern must list each of 2 ranks once"),
        ('pattern="1"', "its pattern has 1 numbers"),
        ("", "its pattern has 0 numbers"),
    ):
        changed = text.replace('pattern="1 0"', wrong)
        assert sentence in refusal(towpath.Schedule.load, changed.encode())


@pytest.mark.parametrize("ranks", [3, 4])
def test_every_algorithm_gives_the_right_data_between_processes(ranks):
    calls = [
        live.LiveCall(
            ScheduleSource(
                collective=_core.name_of(algorithm.collective), algorithm=algorithm.name,
                ranks=ranks, root=ranks - 1 if algorithm.collective.name in ROOTED else 0,
                hosts=2 if ranks == 4 else 1,
            ),
            (100, 300_000),
        )
        for algorithm in _core.algorithms()
    ]  # fmt: skip
    options = live.LiveOptions(iterations=2, warmup=1)
    rows = list(live.measure_calls(calls, ranks, options))
    assert len(rows) == 2 * len(calls)
    for call, row in rows:
        ways = [way for way in (row.out_of_place, row.in_place) if way is not None]
        assert ways and all(way.wrong == 0 for way in ways), call.source.algorithm


# A run is refused with another one than the sum; what is below runs with any.
@pytest.mark.parametrize("operation", ["sum", "avg", "max"])
def test_a_barrier_counts_every_rank_whatever_the_operation(machine, operation):
    source = ScheduleSource(collective="barrier", ranks=3)
    call = live.LiveCall(source, (4,), operation=operation)
    ((_, row),) = live.measure_calls([call], 3, live.LiveOptions(iterations=1, warmup=0))
    ways = [way for way in (row.out_of_place, row.in_place) if way is not None]
    assert ways and all(way.wrong == 0 for way in ways)
    if operation == "sum":
        assert machine.run("barrier", size_bytes=4).wrong == 0
    else:
        assert "barrier has no reduction" in refusal(
            machine.run, "barrier", size_bytes=4, op=operation
        )


@pytest.mark.parametrize("collective", NEW)
def test_new_collectives_run_by_the_fastest_algorithm(machine, collective):
    result = machine.run(collective, size_bytes="4K", root=2 if "atter" in collective else 0)
    assert result.wrong == 0


def test_gather_leaves_nothing_to_the_others(machine):
    call = Call(_core.make_schedule("binomial_gather", ranks=5, root=3))
    assert call.collective == "gather"
    assert machine.run("gather", size_bytes="40K", root=3).wrong == 0


def test_collnet_is_refused_by_name(machine):
    for name in ("CollNetDirect", "collnet_chain", "collnet"):
        sentence = refusal(machine.run, "all_reduce", size_bytes=8, algorithm=name)
        assert "CollNet needs switches that sum data between hosts" in sentence
