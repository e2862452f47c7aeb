# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Runs a collective for real, between processes of this host."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from towpath.api.cluster import checked_request
from towpath.api.result import Part, RunResult, rows_of
from towpath.api.run import OnRow, collect, describe, ignore, rounding_notes
from towpath.api.schedule import Schedule
from towpath.api.sizes import Sizes, sizes_of
from towpath.collectives import live
from towpath.collectives.call import Call
from towpath.errors import ConfigError
from towpath.schedules.schedule_source import ScheduleSource

if TYPE_CHECKING:
    from collections.abc import Sequence

    from towpath.collectives.result import Run

_DIRECT = "direct"
_DIRECT_NOTE = (
    "direct: no schedule, each rank reads what the others show; --algorithm NAME runs a schedule"
)


def run_live(
    collective_or_schedule: str | Schedule = "all_reduce",
    *,
    ranks: int,
    size_bytes: Sizes,
    dtype: str = "float32",
    op: str = "sum",
    root: int = 0,
    algorithm: str | None = None,
    protocol: str | None = None,
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
        algorithm: the name of an algorithm, whose schedule then runs. None, with None for protocol
            and channels too: no schedule, each rank reads what the others show ("direct"), where
            the collective can be run so; else the collective's first algorithm.
        protocol: of a schedule: "Simple", "LL" or "LL128"; None: "Simple".
        channels: of a schedule, parallel; None: 1.
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
        algorithm=algorithm, protocol=protocol or ("auto" if is_schedule else "Simple"),
        channels=channels,
    )  # fmt: skip
    is_direct = (
        not is_schedule
        and request.collective in live.DIRECT_COLLECTIVES
        and (algorithm, protocol, channels) == (None, None, None)
    )
    source = _source(request.schedule) or ScheduleSource(
        None, request.collective, request.algorithm, ranks, channels or 1, request.protocol, root
    )
    call = Call(source.schedule(), request.dtype, request.op)
    if call.ranks != ranks:
        raise ConfigError(
            f"schedule '{call.schedule.name}' has {call.ranks} ranks; --live is {ranks}"
        )
    asked = live.LiveCall(source, request.sizes_bytes, request.dtype, request.op, is_direct)
    run = _described(call, request.sizes_bytes, measured, is_direct)
    rows = (row for _, row in live.measure_calls([asked], ranks, measured))
    algorithm_ran = _DIRECT if is_direct else source.algorithm_name()
    part = Part(collect(run, rows, on_row), None if is_schedule else algorithm_ran)
    return RunResult(
        machine="live", collective=request.collective, kind="live", rows=tuple(rows_of(part)),
        parts=(part,), provenance=provenance((), [] if is_direct else [call.schedule]),
    )  # fmt: skip


def _described(
    call: Call, sizes_bytes: Sequence[int], options: live.LiveOptions, is_direct: bool
) -> Run:
    """The run without its rows."""
    notes = [*live.notes(call.ranks, options.pin), *rounding_notes(call, sizes_bytes)]
    run = describe("live", f"{call.ranks} processes of this host", call, notes)
    run = replace(run, iterations=options.iterations, warmup=options.warmup)
    if not is_direct:
        return run
    return replace(run, schedule=_DIRECT, protocol="none", channels=1, notes=[_DIRECT_NOTE, *notes])


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
