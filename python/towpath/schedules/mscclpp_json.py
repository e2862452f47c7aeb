# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""MSCCL++'s execution plans: the JSON that its DSL writes and its executor runs.

The format is that of microsoft/mscclpp, src/core/executor/execution_plan.cc; docs/schedule.md has
the mapping as a table. An operation is one step, except that `put`, `get` and similar operations
with several buffers become one step per buffer. Numbers that an operation assigns to its thread
block are resolved: a step contains ranks, buffers and chunks.
"""

from __future__ import annotations

import json
import os

from towpath import _core
from towpath._core import Schedule
from towpath.files import write_text
from towpath.schedules.msccl_xml import ScheduleFormatError
from towpath.schedules.mscclpp_reader import read_plan
from towpath.schedules.mscclpp_writer import plan_of


def load_schedule(path: str | os.PathLike[str]) -> Schedule:
    """Loads the schedule of an execution plan of MSCCL++, checked by `check_structure`.

    Args:
        path: the JSON file.

    Raises:
        ScheduleFormatError: the file cannot be read, has another format, or exceeds a limit; one
        sentence with the file and the place in it.
    """
    schedule = read_plan(path)
    try:
        _core.check_structure(schedule)
    except _core.ScheduleError as error:
        raise ScheduleFormatError(str(error), file=str(path)) from None
    return schedule


def dump_schedule(schedule: Schedule, path: str | os.PathLike[str]) -> None:
    """Writes a schedule as an execution plan of MSCCL++. Loading it gives an equal schedule.

    Args:
        schedule: the schedule.
        path: the file, which is replaced.

    Raises:
        ScheduleFormatError: MSCCL++ cannot express the schedule; no file is written. ScheduleError:
        it does not pass `check_structure`.
    """
    text = to_json(schedule)
    write_text(path, text)


def to_json(schedule: Schedule) -> str:
    """Converts a schedule to an execution plan of MSCCL++.

    Args:
        schedule: the schedule.

    Returns:
        The text of the file that `dump_schedule` writes.

    Raises:
        ScheduleFormatError: MSCCL++ cannot express the schedule. ScheduleError: it does not pass
        `check_structure`.
    """
    _core.check_structure(schedule)
    return json.dumps(plan_of(schedule), indent=1) + "\n"
