# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Schedules in files of any format: MSCCL's XML, or execution plans of MSCCL++."""

from __future__ import annotations

import os
from pathlib import Path

from towpath._core import Schedule
from towpath.schedules import msccl_xml, mscclpp_json
from towpath.schedules.msccl_xml import ScheduleFormatError

_OPENING_BYTES = 4096


def is_json(path: str | os.PathLike[str]) -> bool:
    """True if a file begins like JSON; False for a file that cannot be read, or only once (a pipe).

    Args:
        path: the file.
    """
    if not os.path.isfile(path):
        return False
    try:
        with open(path, "rb") as stream:
            opening = stream.read(_OPENING_BYTES)
    except (OSError, ValueError):
        return False
    return opening.removeprefix(b"\xef\xbb\xbf").lstrip()[:1] in (b"{", b"[")


def load_schedule(path: str | os.PathLike[str], result: str | None = None) -> Schedule:
    """Loads the schedule of a file, checked by `check_structure`.

    Args:
        path: an MSCCL XML file, or an execution plan of MSCCL++.
        result: the collective that an MSCCL file with coll="custom" computes.

    Raises:
        ScheduleFormatError: the file cannot be read, has neither format, or exceeds a limit; one
        sentence.
    """
    if not is_json(path):
        return msccl_xml.load_schedule(path, result)
    if result is not None:
        raise ScheduleFormatError(
            "is a plan of MSCCL++; result applies only to MSCCL files", file=str(path)
        )
    return mscclpp_json.load_schedule(path)


def dump_schedule(schedule: Schedule, path: str | os.PathLike[str]) -> None:
    """Writes a schedule: as an execution plan of MSCCL++ if the name ends in .json, otherwise as
    MSCCL XML.

    Args:
        schedule: the schedule.
        path: the file, which is replaced.

    Raises:
        ScheduleFormatError: the format cannot express the schedule; no file is written.
        ScheduleError: it does not pass `check_structure`.
    """
    if Path(path).suffix.lower() == ".json":
        mscclpp_json.dump_schedule(schedule, path)
    else:
        msccl_xml.dump_schedule(schedule, path)
