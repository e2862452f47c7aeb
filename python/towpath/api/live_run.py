# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Runs a collective for real, between processes of this host."""

from __future__ import annotations

from dataclasses import replace

from towpath.api.cluster import checked_request
from towpath.api.result import Part, RunResult, rows_of
from towpath.api.run import OnRow, collect, describe, ignore, rounding_notes
from towpath.api.schedule import Schedule
from towpath.api.sizes import Sizes, sizes_of
from towpath.collectives import live
from towpath.collectives.call import Call
from towpath.errors import ConfigError
from towpath.schedules.schedule_source import ScheduleSource


def run_live(
    collective_or_schedule: str | Schedule = "all_reduce",
    *,
    ranks: int,
    size_bytes: Sizes,
    dtype: str = "float32",
    op: str = "sum",
    root: int = 0,
    algorithm: str | None = None,
    protocol: str = "Simple",
    channels: int | None = None,
    options: live.LiveOptions | None = None,
    on_row: OnRow = ignore,
) -> RunResult:
    """Run a collective between processes of this host, and check every byte that they receive.

    Args:
        collective_or_schedule: the name of a collective, or a schedule of your own from a file.
        ranks: how many processes.
        size_bytes: the whole array: bytes, a text ("64M"), or several of them.
        dtype: the element type.
        op: the reduction.
        root: the root rank of broadcast and reduce.
        algorithm: its name; None takes the collective's first.
        protocol: "Simple", "LL" or "LL128".
        channels: parallel channels; None: 1.
        options: how often to measure, and how long to wait for a silent peer.
        on_row: called with the run and None before its first row, and with each row as it comes.

    Returns:
        A row per size.

    Raises:
        ConfigError: an option is wrong, or the schedule has another number of ranks.
        LiveError: a rank failed.
    """
    from towpath.pages.provenance import provenance

    live.check_ranks(ranks)
    measured = options or live.LiveOptions()
    is_schedule = isinstance(collective_or_schedule, Schedule)
    request = checked_request(
        collective_or_schedule, sizes_of(size_bytes), dtype=dtype, op=op, root=root,
        algorithm=algorithm, protocol="auto" if is_schedule else protocol, channels=channels,
    )  # fmt: skip
    source = _source(request.schedule) or ScheduleSource(
        None, request.collective, request.algorithm, ranks, channels or 1, request.protocol, root
    )
    call = Call(source.schedule(), request.dtype, request.op)
    if call.ranks != ranks:
        raise ConfigError(
            f"schedule '{call.schedule.name}' has {call.ranks} ranks; --live is {ranks}"
        )
    asked = live.LiveCall(source, request.sizes_bytes, request.dtype, request.op)
    notes = [*live.notes(ranks, measured.pin), *rounding_notes(call, request.sizes_bytes)]
    run = describe("live", f"{ranks} processes of this host", call, notes)
    run = replace(run, iterations=measured.iterations, warmup=measured.warmup)
    rows = (row for _, row in live.measure_calls([asked], ranks, measured))
    part = Part(collect(run, rows, on_row), None if is_schedule else source.algorithm_name())
    return RunResult(
        machine="live", collective=request.collective, kind="live", rows=tuple(rows_of(part)),
        parts=(part,), provenance=provenance((), [call.schedule]),
    )  # fmt: skip


def _source(schedule: Schedule | None) -> ScheduleSource | None:
    """Where the ranks find a schedule.

    Raises:
        ConfigError: it is in memory only.
    """
    if schedule is None:
        return None
    if schedule._source is None:
        raise ConfigError(f"schedule '{schedule.name}' is not in a file; ranks read it from one")
    return schedule._source
