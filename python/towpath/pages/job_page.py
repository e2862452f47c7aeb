# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""The times of `towpath job` as a page: a table of machines, and a table of collectives."""

from __future__ import annotations

from collections.abc import Sequence

from towpath.operators.job import EXTRAPOLATION_ERROR_PCT, JobTime
from towpath.operators.job_trace import Job
from towpath.specs.sizes import format_size
from towpath.studies.page import Axis, Bars, BarSeries, Finding, Page, PlainTable, Section

_GROUPS_MAX = 24


def job_page(job: Job, times: Sequence[JobTime], command: str) -> Page:
    """The times of a job as a page.

    Args:
        job: the calls of one rank.
        times: the traced times, and times on machines.
        command: the command line.
    """
    answers = [Finding(each.where, _sentence(each)) for each in times]
    answers += _caveats(job, times)
    sections = [Section("Collectives of one rank", [_groups(times)])]
    if times:
        rows = [each.where for each in times]
        hidden = [
            each.communication_us - (each.exposed_us or 0.0) if each.exposed_us is not None else 0.0
            for each in times
        ]
        shown = [
            each.communication_us if each.exposed_us is None else each.exposed_us for each in times
        ]
        series = [
            BarSeries("exposed", [one / 1e3 for one in shown]),
            BarSeries("hidden behind computation", [one / 1e3 for one in hidden]),
        ]
        bars = Bars("Communication per trace", Axis("ms", low=0), rows, series)
        sections.append(Section("Exposed and hidden communication", [bars], in_text=False))
    return Page(
        title=f"Communication of a job: {job.form}",
        command=command,
        sections=sections,
        in_short=answers,
        headline=_machines(times),
        facts=[
            ("trace", job.form), ("GPUs", str(job.ranks)),
            ("collectives", str(len(job.collectives))),
        ],
    )  # fmt: skip


def _caveats(job: Job, times: Sequence[JobTime]) -> list[Finding]:
    """Calls without a prediction, and predictions without a simulation."""
    missing = [
        Finding("missing", f"{count} calls on {each.where} keep their traced time ({why})")
        for each in times
        for why, count in each.missing.items()
    ]
    left_out = [
        Finding("left out", f"{count} {why}, which are not predicted")
        for why, count in job.left_out.items()
    ]
    found = [Finding("extrapolated", _extrapolated(each)) for each in times if each.extrapolated]
    return [*missing, *found, *left_out]


def _extrapolated(each: JobTime) -> str:
    return (
        f"{each.extrapolated} kinds of calls on {each.where} follow from fewer hosts; such times "
        f"differ from simulations by up to {EXTRAPOLATION_ERROR_PCT:g} %"
    )


def _sentence(each: JobTime) -> str:
    parts = [f"{each.communication_us / 1e3:.2f} ms of communication"]
    if each.exposed_us is not None:
        parts.append(f"{each.exposed_us / 1e3:.2f} ms of it exposed")
    if each.step_us is not None:
        parts.append(f"the trace takes {each.step_us / 1e3:.2f} ms")
    return ", ".join(parts)


def _ms(value: float | None) -> str:
    return "-" if value is None else f"{value / 1e3:.2f}"


def _machines(times: Sequence[JobTime]) -> PlainTable:
    lines = [
        [each.where, _ms(each.communication_us), _ms(each.exposed_us), _ms(each.step_us)]
        for each in times
    ]
    headings = ["machine", "communication (ms)", "exposed (ms)", "step (ms)"]
    return PlainTable(headings, lines)


def _groups(times: Sequence[JobTime]) -> PlainTable:
    """The longest groups of equal calls: a column of mean times per machine."""
    first = times[0] if times else None
    keys = [(g.collective, g.size_bytes, g.ranks) for g in (first.groups if first else ())]
    headings = ["collective", "size", "ranks", "calls"]
    names = [each.where.split(",")[0] for each in times]
    headings += [f"{name} (us)" for name in names] + [f"{name} exposed (us)" for name in names]
    lines = []
    for key in keys[:_GROUPS_MAX]:
        own = [
            next(g for g in each.groups if (g.collective, g.size_bytes, g.ranks) == key)
            for each in times
        ]
        cells = [key[0], format_size(key[1]), str(key[2] or "all"), str(own[0].count)]
        cells += [f"{g.total_us / g.count:.1f}" for g in own]
        cells += ["-" if g.exposed_us is None else f"{g.exposed_us / g.count:.1f}" for g in own]
        lines.append(cells)
    return PlainTable(headings, lines, "mean time of one call")
