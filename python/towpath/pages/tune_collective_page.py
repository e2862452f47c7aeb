# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""The page of `towpath tune COLLECTIVE`."""

from __future__ import annotations

from collections.abc import Callable
from itertools import groupby

from towpath.pages.text import format_time
from towpath.schedules.schedule_source import ScheduleSource
from towpath.specs.sizes import format_size
from towpath.studies.page import (
    COLORS,
    GREY,
    Axis,
    Curve,
    Finding,
    Page,
    PlainTable,
    Plot,
    Section,
)
from towpath.tuning.collective import CHUNKS_PER_CHANNEL, Timing, Tuning
from towpath.tuning.rule import RULE

_NEAREST = 5


def candidate_name(source: ScheduleSource) -> str:
    """The options that distinguish a candidate.

    >>> candidate_name(ScheduleSource(algorithm="ring_all_reduce", channels=2, both_ways=True))
    'ring_all_reduce, Simple, 2 channels both ways'
    """
    channels = f"{source.channels} channel{'s' if source.channels > 1 else ''}"
    parts = [source.algorithm or "", source.protocol,
             channels + " both ways" * source.both_ways]  # fmt: skip
    # Only the first option counts where an algorithm does not look at it.
    if source.chunks_per_channel != CHUNKS_PER_CHANNEL[0]:
        parts.append(f"{source.chunks_per_channel} chunks each")
    return ", ".join(parts)


def tune_collective_page(tuning: Tuning, command: str) -> Page:
    """The choice by size, the nearest candidates, and all candidates."""
    missing = (
        "Times are missing where a schedule cannot cut the size or hangs, and where a candidate "
        "had no chance: a part of what its times at smaller sizes lead to expect is more than the "
        "fastest needs."
        if tuning.kind == "simulated"
        else "Times are missing where a schedule cannot cut the size."
    )
    how = (
        f"{tuning.candidates} candidates, {tuning.kind}, those that take the fewest thread blocks "
        f"of a rank first. {RULE}"
    )
    plots = [
        _plot(tuning, "Time", Axis("time (us)", "log"), lambda timing: timing.time_us),
        _plot(tuning, "Bandwidth", Axis("bus bandwidth (GB/s)"), Timing.bus_gb_per_s),
    ]
    everything = Section("Every candidate", [all_table(tuning)], missing, is_folded=True,
                         in_text=False)  # fmt: skip
    candidates = Section(
        "Candidates", [*plots, nearest_table(tuning)],
        f"The choice, and the {_NEAREST} candidates that come nearest to it over all sizes; grey: "
        "the best of each other algorithm and protocol.", in_text=False,
    )  # fmt: skip
    return Page(
        f"{tuning.collective} on {tuning.where}", command, [candidates, everything],
        _findings(tuning.winners()),
        winners_table(tuning), " ".join([how, *tuning.notes]),
    )  # fmt: skip


def _findings(winners: list[Timing]) -> list[Finding]:
    """One sentence for consecutive sizes with the same choice."""
    found = []
    for source, group in groupby(winners, lambda timing: timing.source):
        own = list(group)
        sizes = " to ".join(dict.fromkeys(format_size(own[n].size_bytes) for n in (0, -1)))
        times = " to ".join(dict.fromkeys(format_time(own[n].time_us) for n in (0, -1)))
        found.append(Finding(f"Choice at {sizes}", f"{candidate_name(source)}: {times} us"))
    return found


def winners_table(tuning: Tuning) -> PlainTable:
    """A line per size: the choice of the rule, and the fastest candidate."""
    lines = [
        [
            str(chosen.size_bytes), candidate_name(chosen.source), format_time(chosen.time_us),
            f"{chosen.bus_gb_per_s():.2f}", format_time(best.time_us),
            "" if best is chosen else candidate_name(best.source),
        ]
        for chosen, best in zip(tuning.winners(), tuning.fastest(), strict=True)
    ]  # fmt: skip
    headings = ["size (B)", "choice", "time (us)", "busbw (GB/s)", "fastest (us)", "fastest"]
    return PlainTable(headings, lines)


def nearest_table(tuning: Tuning) -> PlainTable:
    """The fastest candidates at each size, relative to the time of the fastest."""
    lines = []
    for best in tuning.fastest():
        own = sorted(
            (timing for timing in tuning.timings if timing.size_bytes == best.size_bytes),
            key=lambda timing: timing.time_us,
        )
        lines += [
            [format_size(best.size_bytes), candidate_name(timing.source),
             format_time(timing.time_us), f"{timing.time_us / best.time_us:.2f}"]
            for timing in own[: 1 + _NEAREST]
        ]  # fmt: skip
    title = f"Best and the {_NEAREST} nearest at each size"
    return PlainTable(["size", "candidate", "time (us)", "over the fastest"], lines, title)


def all_table(tuning: Tuning) -> PlainTable:
    """Every candidate's time at every size."""
    sizes = tuning.sizes_bytes
    lines = [
        [candidate_name(source),
         *(format_time(own[size].time_us) if size in own else "" for size in sizes)]
        for source, own in _by_source(tuning).items()
    ]  # fmt: skip
    return PlainTable(["time (us)", *map(format_size, sizes)], lines)


def _by_source(tuning: Tuning) -> dict[ScheduleSource, dict[int, Timing]]:
    found: dict[ScheduleSource, dict[int, Timing]] = {}
    for timing in tuning.timings:
        found.setdefault(timing.source, {})[timing.size_bytes] = timing
    return found


def _plot(tuning: Tuning, title: str, y: Axis, value: Callable[[Timing], float]) -> Plot:
    """Gray: the best of each algorithm and protocol. In color: the nearest candidates, and the
    choice.
    """
    best: dict[tuple[str, str], dict[int, Timing]] = {}
    for timing in tuning.timings:
        own = best.setdefault((timing.source.algorithm or "", timing.source.protocol), {})
        if timing.size_bytes not in own or timing.time_us < own[timing.size_bytes].time_us:
            own[timing.size_bytes] = timing
    curves = [
        _curve(f"{algorithm}, {protocol}", list(own.values()), value, GREY)
        for (algorithm, protocol), own in sorted(best.items())
    ]
    curves += [
        _curve(candidate_name(source), timings, value, COLORS[1 + place % 7], in_legend=True)
        for place, (source, timings) in enumerate(_nearest(tuning))
    ]
    winners = tuning.winners()
    names = [timing.source.algorithm or "" for timing in winners]
    labels = [name if n == 0 or name != names[n - 1] else "" for n, name in enumerate(names)]
    curves.append(
        _curve("choice", winners, value, COLORS[0], in_legend=True, labels=labels, width=2.6)
    )
    return Plot(title, Axis("size", "size"), y, curves, height=380)


def _nearest(tuning: Tuning) -> list[tuple[ScheduleSource, list[Timing]]]:
    """The candidates with times closest to the fastest over all sizes."""
    fastest = {timing.size_bytes: timing.time_us for timing in tuning.fastest()}
    whole = [own for own in _by_source(tuning).items() if len(own[1]) == len(fastest)]
    whole.sort(key=lambda own: sum(t.time_us / fastest[t.size_bytes] for t in own[1].values()))
    return [(source, list(own.values())) for source, own in whole[:_NEAREST]]


def _curve(
    name: str, timings: list[Timing], value: Callable[[Timing], float], color: str, *,
    in_legend: bool = False, labels: list[str] | None = None, width: float = 1.6,
) -> Curve:  # fmt: skip
    texts = [
        f"{format_size(each.size_bytes)}, {candidate_name(each.source)}: {value(each):.4g}"
        for each in timings
    ]
    return Curve(
        name, [timing.size_bytes for timing in timings], [value(timing) for timing in timings],
        texts, labels or [], "line" if in_legend else "plain", color, width, in_legend=in_legend,
    )  # fmt: skip
