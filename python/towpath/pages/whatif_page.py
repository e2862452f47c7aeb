# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""The gains of `towpath whatif` as a page: a table, and bars of the best quantities."""

from __future__ import annotations

from towpath.specs.sizes import format_size
from towpath.studies.page import (
    Axis,
    Bars,
    BarSeries,
    Finding,
    Page,
    Picture,
    PlainTable,
    Section,
)
from towpath.studies.whatif import WhatIf

_BARS_MAX = 16


def whatif_page(found: WhatIf, command: str) -> Page:
    """The gains as a page.

    Args:
        found: the gains.
        command: the command line.
    """
    answers = [
        Finding(f"limit of {name} before", sentence)
        for name, sentence in found.limits.items()
        if sentence
    ]
    answers += [
        Finding(f"limit with {each.path} at {each.after:g}", each.limit)
        for each in found.gains
        if each.limit
    ]
    if found.gains:
        best = found.gains[0]
        (collective, size), speedup = max(best.speedups.items(), key=lambda item: item[1])
        gain = f"{best.path} from {best.before:g} to {best.after:g} makes {collective} of "
        answers.insert(
            0, Finding("best", f"{gain}{format_size(size)} {speedup:.2f} times as fast", mood=True)
        )
    answers += [Finding("not improved", f"{one.path}: {one.reason}") for one in found.refused]
    sections = [Section("Gain per quantity", _bars(found))]
    if found.drawing:
        sections.append(Section("Machine", [Picture(found.machine, found.drawing)], in_text=False))
    return Page(
        title=f"{found.times:g} times as good: {found.machine}",
        command=command,
        sections=sections,
        in_short=answers,
        headline=_table(found),
        how="each quantity is improved in turn with the same schedule, and less than 0.5 % is left "
        "out",
        facts=[
            (f"{name} {format_size(size)}", f"{time_us:.1f} us, {found.schedules[name, size]}")
            for (name, size), time_us in found.base_us.items()
        ],
    )


def _table(found: WhatIf) -> PlainTable:
    calls = list(found.base_us)
    headings = ["quantity", "before", "after"]
    headings += [f"{name} {format_size(size)}" for name, size in calls]
    lines = [
        [each.path, f"{each.before:g}", f"{each.after:g}",
         *(f"{100 * (each.speedups[call] - 1):+.1f}%" for call in calls)]
        for each in found.gains
    ]  # fmt: skip
    before = ["time before (us)", "", "", *(f"{found.base_us[call]:.1f}" for call in calls)]
    return PlainTable(headings, [before, *lines])


def _bars(found: WhatIf) -> list[Bars]:
    shown = found.gains[:_BARS_MAX]
    if not shown:
        return []
    series = [
        BarSeries(
            f"{call[0]} {format_size(call[1])}",
            [max(100 * (each.speedups[call] - 1), 0.0) for each in shown],
        )
        for call in found.base_us
    ]
    rows = [each.path for each in shown]
    return [Bars(f"{one.name}: faster by", Axis("percent", low=0), rows, [one]) for one in series]
