# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Every schedule that others wrote is verified, simulated and run for real, with right data."""

import collections
import os

import pytest

from conftest import schedule_files
from inside.collectives import Call, GpuPlace, simulated
from inside.live import LiveCall, LiveOptions, measure_calls
from inside.machines import catalogue
from inside.schedules import ScheduleSource, load_schedule
from towpath import Schedule, verify

FILES = schedule_files()
SIZE_BYTES = 1 << 20

if not FILES:
    pytest.skip("needs schedules/azure made by others", allow_module_level=True)


def test_there_are_thirty_two():
    assert len(FILES) == 32


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_it_is_correct_at_its_smallest_and_largest_size(file):
    schedule = load_schedule(file)
    for size_bytes in (max(schedule.size_bytes_min, 64), min(schedule.size_bytes_max, 64 << 20)):
        result = verify(Schedule(schedule), size_bytes=size_bytes)
        assert result.is_correct, result.problems
        assert not result.not_checked
        assert result.hangs_from_bytes is None


@pytest.fixture(scope="module")
def one_host():
    return GpuPlace(catalogue.load("dgx-h100", hosts=1).build())


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_simulated_it_gives_right_data(file, one_host):
    call = Call(load_schedule(file))
    for in_place in (False, True):
        if call.schedule.in_place if in_place else call.schedule.out_of_place:
            outcome = simulated.invoke(
                one_host, call, SIZE_BYTES, in_place=in_place, with_data=True
            )
            assert outcome.wrong == 0
            assert outcome.time_us > 0


def test_live_they_give_right_data():
    """One group of processes per rank count, so that Python starts twelve times and not 240."""
    files_of = collections.defaultdict(list)
    for file in FILES:
        files_of[load_schedule(file).rank_count].append(file)
    done = 0
    for ranks, files in files_of.items():
        calls = [LiveCall(ScheduleSource(file=os.fspath(file)), (SIZE_BYTES,)) for file in files]
        for call, row in measure_calls(calls, ranks, LiveOptions(iterations=1, warmup=0)):
            columns = [column for column in (row.out_of_place, row.in_place) if column is not None]
            assert columns
            assert all(column.wrong == 0 for column in columns), call.source.file
            done += 1
    assert done == len(FILES)
