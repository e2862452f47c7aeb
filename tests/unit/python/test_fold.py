# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Ranks that do the same at the same time are simulated once, and what ends that."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

import pytest

import towpath
from inside import _core
from inside.collectives import Call, Fold, GpuPlace, places, simulated
from inside.machines import catalogue
from inside.schedules import ScheduleSource
from towpath import ConfigError

HOSTS = 4
RANKS = 8 * HOSTS


@pytest.fixture(scope="module")
def place() -> GpuPlace:
    """Four hosts that are alike."""
    return GpuPlace(catalogue.load("dgx-h100", hosts=HOSTS).build())


def call_of(algorithm: str, channels: int = 2) -> Call:
    source = ScheduleSource(None, "all_reduce", algorithm, RANKS, channels, "Simple", hosts=HOSTS)
    return Call(source.schedule())


def fold_of(place: GpuPlace, call: Call, size_bytes: int = 1 << 20, **options: object) -> Fold:
    arguments = {"in_place": False, "with_data": False} | options
    return simulated.invoke(place, call, size_bytes, **arguments).fold


@pytest.mark.parametrize("algorithm", ["ring", "hierarchical"])
@pytest.mark.parametrize("size_bytes", [1 << 16, 1 << 22])
def test_a_folded_run_is_the_run_of_all_ranks(
    place: GpuPlace, algorithm: str, size_bytes: int
) -> None:
    call = call_of(algorithm)
    folded = simulated.invoke(place, call, size_bytes, in_place=False, with_data=False)
    every = simulated.invoke(
        place.changed(folds=False), call, size_bytes, in_place=False, with_data=False
    )
    assert folded.fold.is_folded
    assert not every.fold.is_folded
    assert folded.time_us == every.time_us
    assert folded.links == every.links
    assert folded.events_of_all == every.events
    assert folded.busiest == every.busiest
    assert folded.busiest == max(every.links, key=lambda link: link.busy_fraction)


def test_it_says_how_many_ranks_stand_for_all(place: GpuPlace) -> None:
    fold = fold_of(place, call_of("hierarchical"))
    assert (fold.ranks, fold.ranks_simulated, fold.note) == (RANKS, 8, "")
    assert fold.sentence.startswith(f"8 of {RANKS} ranks are simulated, the others do what these")


@pytest.mark.parametrize(
    ("change", "options", "note"),
    [
        ({}, {"with_data": True}, "each has data of its own"),
        ({}, {"trace": True}, "what each does is traced"),
        ({"jitter_ns": 5.0}, {}, "each is late by a time of its own"),
        ({"folds": False}, {}, "as asked for"),
        ({"places": (1, 0, *range(2, RANKS))}, {}, "the ways between its ranks differ"),
    ],
)
def test_what_makes_ranks_differ_ends_it(
    place: GpuPlace, change: dict[str, object], options: dict[str, object], note: str
) -> None:
    if options.get("trace"):
        options = {"trace": _core.Trace()}
    fold = fold_of(replace(place, **change), call_of("ring"), 1 << 14, **options)
    assert fold.note == note
    assert fold.is_folded == (not note)


NOT_EQUAL = "its 1001 elements are not cut into equal chunks, as a multiple of 64 is"


def test_ragged_chunks_end_it(place: GpuPlace) -> None:
    call = call_of("ring")
    assert fold_of(place, call, 4 * 1001).note == NOT_EQUAL


def test_what_is_too_much_to_simulate_says_why_all_ranks_are(
    place: GpuPlace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(places, "_STEPS_MAX", 100)
    call = call_of("ring")
    assert fold_of(place, call).is_folded
    with pytest.raises(
        ConfigError, match=rf"^4,032 steps exceed the maximum of 100; .* {NOT_EQUAL}$"
    ):
        fold_of(place, call, 4 * 1001)


def test_a_schedule_without_symmetry_ends_it(place: GpuPlace) -> None:
    assert fold_of(place, call_of("tree")).note == "no two of its ranks do the same"


def test_one_host_that_differs_ends_it() -> None:
    spec = catalogue.load("dgx-h100", hosts=HOSTS, without=["host1/nic3"])
    call = call_of("ring", channels=1)
    assert fold_of(GpuPlace(spec.build()), call).note == "the ways between its ranks differ"


def test_a_deadlock_names_the_ranks_that_wait(place: GpuPlace) -> None:
    schedule = call_of("ring", channels=1).schedule
    programs = schedule.ranks
    for program in programs:
        blocks = program.blocks
        for block in blocks:
            block.steps = [block.steps[-1], *block.steps[:-1]]  # all receive before they send
        program.blocks = blocks
    schedule.ranks = programs
    plan = Call(schedule).plan(1 << 20)
    said = []
    for each in (place, place.changed(folds=False)):
        run = each.run_of(plan, with_data=False)
        with pytest.raises(towpath.DeadlockError) as error:
            run.invoke(plan)
        said.append((str(error.value), error.value.cycle))
    assert said[0] == said[1]


def test_options_turn_it_off() -> None:
    machine = towpath.load("dgx-h100", hosts=HOSTS)
    options = {"size_bytes": "1M", "algorithm": "hierarchical", "protocol": "Simple", "data": False}
    folded = machine.run("all_reduce", **options)
    every = machine.run("all_reduce", fold=False, **options)
    assert folded.row.fold.ranks_simulated == 8
    assert every.row.fold.ranks_simulated == RANKS
    assert folded.time_us == every.time_us
    assert folded.row.to_dict()["fold"] == {"ranks": RANKS, "ranks_simulated": 8, "note": ""}


MANY = """
import towpath
machine = towpath.load("dgx-h100", ranks=int("{ranks}"))
result = machine.run("all_reduce", size_bytes={size_bytes}, algorithm="{algorithm}", channels=1,
                     protocol="Simple", data=False)
print(result.row.fold.ranks_simulated, result.limit.sentence)
# Of this program alone: what the system says of a process may be of the one that started it.
(peak,) = [line for line in open("/proc/self/status") if line.startswith("VmHWM")]
print(peak.split()[1])
"""


@pytest.mark.long
@pytest.mark.parametrize(
    ("algorithm", "ranks", "size_bytes", "period", "most_mb"),
    [("ring", 100_000, 1_600_000_000, 16, 200), ("hierarchical", 131_072, 1 << 30, 8, 300)],
)
def test_more_than_a_hundred_thousand_ranks_fit(
    algorithm: str, ranks: int, size_bytes: int, period: int, most_mb: int
) -> None:
    text = MANY.format(ranks=ranks, size_bytes=size_bytes, algorithm=algorithm)
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True)
    first, memory_kib = done.stdout.splitlines()
    assert first.startswith(f"{period} at ")
    assert int(memory_kib) * 1024 < most_mb * 1e6
