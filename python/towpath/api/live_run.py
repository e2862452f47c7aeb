# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Live collectives between processes of this host: run, and tuned."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from towpath.api.request import LIVE, Request
from towpath.api.run import OnRow, described, ignore, rounding_notes
from towpath.collectives import live
from towpath.collectives.call import Call
from towpath.errors import ConfigError
from towpath.schedules.schedule_source import ScheduleSource
from towpath.schedules.words import collective_named, protocol_named
from towpath.specs.sizes import Sizes, sizes_of

if TYPE_CHECKING:
    from towpath.api.result import RunResult
    from towpath.api.schedule import Schedule
    from towpath.studies.progress import Progress
    from towpath.tuning.collective import Tuning

_DIRECT_NOTE = (
    "direct: no schedule, each rank reads what the others show; --algorithm NAME runs a schedule"
)
_CHANNELS = (1, 2, 4)  # of candidates


def run_live(
    collective_or_schedule: str | Schedule = "all_reduce",
    *,
    ranks: int,
    size_bytes: Sizes,
    on_row: OnRow = ignore,
    **options: Any,
) -> RunResult:
    """Runs a collective between processes of this host, and checks every received byte.

    Args:
        collective_or_schedule: the name of a collective, or your own schedule from a file.
        ranks: number of processes.
        size_bytes: size of the whole array: bytes, a text ("64M"), several of them, or a range.
        on_row: called with the result without rows and None before the first row, and then with the
            result and each new row.
        options: further fields of `Request`, such as dtype="float16", iterations=100. Without
            algorithm, protocol and channels no schedule is used: each rank reads the data of its
            peers ("direct"), if the collective supports this.

    Returns:
        A row per size.

    Raises:
        ConfigError: an option is wrong, or the schedule has another number of ranks. LiveError: a
        rank failed.
    """
    from towpath.pages.provenance import provenance

    live.check_ranks(ranks)
    request = Request(collective_or_schedule, size_bytes, **options).checked(LIVE)
    is_direct = (
        request.schedule is None
        and request.collective in live.DIRECT_COLLECTIVES
        and request.algorithm in ("auto", None)
        and (request.protocol, request.channels) == ("auto", None)
    )
    source = _source(request, ranks)
    call = Call(source.schedule(), request.dtype, request.op)
    if call.ranks != ranks:
        raise ConfigError(
            f"schedule '{call.schedule.name}' has {call.ranks} ranks; --live is {ranks}"
        )
    measured = _options(request)
    asked = live.LiveCall(source, request.sizes_bytes, request.dtype, request.op, is_direct)
    notes = [*live.notes(ranks, request.pin), *rounding_notes(call, request.sizes_bytes)]
    result = replace(
        described(f"{ranks} processes of this host", "live", request, ranks,
                  [_DIRECT_NOTE, *notes] if is_direct else notes),
        is_chosen=False, iterations=request.iterations, warmup=request.warmup,
        provenance=provenance((), [] if is_direct else [call.schedule]),
    )  # fmt: skip
    on_row(result, None)
    rows = []
    for _, row in live.measure_calls([asked], ranks, measured):
        rows.append(row)
        on_row(result, row)
    return replace(result, rows=tuple(rows))


def tune_live(
    collective: str = "all_reduce",
    *,
    ranks: int,
    size_bytes: Sizes = "1K:16M",
    channels: Iterable[int] | None = None,
    protocols: Iterable[str] | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> Tuning:
    """Times every available schedule of a collective between processes of this host.

    Args:
        collective: name of the collective.
        ranks: number of processes.
        size_bytes: size of the whole array: bytes, a text ("64M"), several of them, or a range.
        channels: numbers of channels to try; None: 1, 2 and 4.
        protocols: protocols to try; None: Simple.
        progress: a display for long work; see `towpath.studies.progress`.
        options: the fields of `Request` for live runs, such as iterations=100.

    Returns:
        All timings, the fastest at each size, and the choice by the rule of docs/tune.md.

    Raises:
        ConfigError: an option is wrong, or no schedule can divide an array of one of the sizes.
        LiveError: a rank failed.
    """
    from towpath.studies.progress import silent
    from towpath.tuning.collective import Options, Tuning, candidates, live_timings

    live.check_ranks(ranks)
    name = collective_named(collective)
    words = ("Simple",) if protocols is None else tuple(map(protocol_named, protocols))
    numbers = _CHANNELS if channels is None else tuple(sorted(set(channels)))
    sources, notes = candidates(name, Options(ranks, numbers, words))
    sizes = sorted(set(sizes_of(size_bytes)))
    measured = _options(Request(name, sizes, **options).checked(LIVE))
    timings = []
    with (progress or silent)("live", len(sources) * len(sizes)) as update:
        for timing in live_timings(sources, sizes, measured):
            timings.append(timing)
            update(len(timings))
    where = f"{ranks} processes of this host"
    return Tuning(name, where, "live", len(sources), timings, notes)


def _options(request: Request) -> live.LiveOptions:
    return live.LiveOptions(
        iterations=request.iterations, warmup=request.warmup, timeout_s=request.timeout_s,
        pin=request.pin, transport=request.transport,
    )  # fmt: skip


def _source(request: Request, ranks: int) -> ScheduleSource:
    """The source from which the ranks read the schedule.

    Raises:
        ConfigError: the user's own schedule is only in memory.
    """
    schedule = request.schedule
    if schedule is not None:
        if schedule._source is None:
            raise ConfigError(
                f"schedule '{schedule.name}' is only in memory; save it, because ranks read it "
                "from a file"
            )
        return schedule._source
    algorithm = None if request.algorithm == "auto" else request.algorithm
    protocol = "Simple" if request.protocol == "auto" else request.protocol
    return ScheduleSource(
        None, request.collective, algorithm, ranks, request.channels or 1, protocol, request.root
    )
