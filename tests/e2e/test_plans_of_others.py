# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Every MSCCL++ plan that others wrote is verified, simulated and run for real, with right data."""

from __future__ import annotations

import collections
import os

import pytest

from conftest import plan_files
from inside.collectives import Call, GpuPlace, simulated
from inside.live import LiveCall, LiveOptions, measure_calls
from inside.machines import catalogue
from inside.schedules import ScheduleSource
from inside.schedules import dump_plan as dump_schedule
from inside.schedules import load_plan as load_schedule
from mutate import check_mutants
from towpath import Schedule, verify

FILES = plan_files()
SIZE_BYTES = 1 << 20
PLACE = (
    ":[0-9]+|: [a-z_]+(\\[[0-9]+\\])?(\\.[a-z_]+(\\[[0-9]+\\])?)*|: schedule '.*', rank [0-9]+, .*|"
)
PLACE += ": schedule '.*'|"

if not FILES:
    pytest.skip("needs schedules/mscclpp made by others", allow_module_level=True)


def test_there_are_eleven():
    assert len(FILES) == 11


def name_of(file):
    return file.stem.rsplit("test_")[-1]


@pytest.mark.parametrize("file", FILES, ids=name_of)
def test_it_survives_export_and_import(file, tmp_path):
    schedule = load_schedule(file)
    dump_schedule(schedule, tmp_path / "again.json")
    assert load_schedule(tmp_path / "again.json") == schedule


# Its thread blocks share copies of two chunks in halves, which are chunks, and then single chunks
# in halves; but each waits for the peer's thread block of its own number alone.
RACES = "test_executor-tests_execution-plans_reduce_tbg"


def test_a_plan_whose_thread_blocks_do_not_wait_for_each_other_has_races():
    file = next(file for file in FILES if file.stem == RACES)
    result = verify(Schedule(load_schedule(file)), size_bytes=1024)
    assert {problem.kind for problem in result.problems} == {"race"}
    first = result.problems[0]
    assert None not in (first.rank, first.block, first.step, first.other_step)
    assert first.block != first.other_block


@pytest.mark.parametrize("file", [each for each in FILES if each.stem != RACES], ids=name_of)
def test_it_is_correct_at_a_small_and_a_large_size(file):
    schedule = load_schedule(file)
    for size_bytes in (1024, 16 << 20):
        result = verify(Schedule(schedule), size_bytes=size_bytes)
        assert result.is_correct, result.problems
        # Relaxed signals behind stores are all that may be left open.
        assert all("relaxed" in reason for reason in result.not_checked)
        assert result.hangs_from_bytes is None


@pytest.fixture(scope="module")
def one_host():
    return GpuPlace(catalogue.load("dgx-h100", hosts=1).build())


@pytest.mark.parametrize("file", FILES, ids=name_of)
def test_simulated_it_gives_right_data(file, one_host):
    call = Call(load_schedule(file))
    in_place = call.schedule.in_place
    for size_bytes in (256, SIZE_BYTES):
        outcome = simulated.invoke(one_host, call, size_bytes, in_place=in_place, with_data=True)
        assert outcome.wrong == 0
        assert outcome.time_us > 0


def test_live_they_give_right_data():
    """One group of processes per rank count, so that Python starts a few times only.

    The plan that races gives right data or wrong, as its thread blocks happen to run.
    """
    files_of = collections.defaultdict(list)
    for file in FILES:
        if file.stem == RACES:
            continue
        files_of[load_schedule(file).rank_count].append(file)
    done = 0
    for ranks, files in files_of.items():
        calls = [LiveCall(ScheduleSource(file=os.fspath(file)), (SIZE_BYTES,)) for file in files]
        for call, row in measure_calls(calls, ranks, LiveOptions(iterations=2, warmup=1)):
            columns = [column for column in (row.out_of_place, row.in_place) if column is not None]
            assert columns
            assert all(column.wrong == 0 for column in columns), call.source.file
            done += 1
    assert done == len(FILES) - 1


def load_twice(path):
    """Loads a plan, which must survive export and import where MSCCL++ has a place for it."""
    schedule = load_schedule(path)
    again = path.with_suffix(".again")
    dump_schedule(schedule, again)
    assert load_schedule(again) == schedule


def check(seeds, folder):
    check_mutants(
        "test_plans_of_others:load_twice", FILES, seeds, folder, seconds_max=10, place=PLACE
    )


def test_100_spoilt_plans(tmp_path):
    check(range(100), tmp_path)


@pytest.mark.long
@pytest.mark.parametrize("part", range(1, 21))
def test_20_000_spoilt_plans(tmp_path, part):
    check(range(1000 * part, 1000 * (part + 1)), tmp_path)
