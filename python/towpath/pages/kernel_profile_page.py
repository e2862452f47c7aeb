# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""The profile of kernels, as text and as a page."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from towpath.kernels.profile import (
    ACTIVITY,
    BEGIN_PS,
    CALLS,
    END_PS,
    NAME,
    PEER,
    SIZE_BYTES,
    TRACK,
    TRACK_BLOCK,
    TRACK_IS_KERNEL,
    TRACK_PE,
    LinkUse,
    Recorded,
)
from towpath.kernels.profile_verdict import ProfileVerdict
from towpath.pages.html import write_page
from towpath.pages.provenance import Provenance
from towpath.pages.text import kind_name, table_text
from towpath.specs.sizes import format_size
from towpath.studies.page import (
    Axis,
    Bars,
    BarSeries,
    Curve,
    Finding,
    Lanes,
    Page,
    PlainTable,
    Plot,
    Section,
)

_PES_SHOWN_MAX = 16
_BLOCKS_SHOWN_MAX = 40
_DRAWN_SPANS_MAX = 20_000
_LINKS_SHOWN_MAX = 8
_ROWS_SHOWN_MAX = 8
COLORS = {
    "compute": "#96793d", "put": "#3b74b8", "get": "#58a6c9", "signal": "#7c66b8",
    "atomic": "#b8506c", "quiet": "#c9a227", "wait": "#d98324", "collective": "#2b9c80",
    "sync": "rgba(128,138,150,0.55)", "turn": "rgba(128,138,150,0.25)",
}  # fmt: skip


def pe_table(verdict: ProfileVerdict) -> PlainTable:
    """A line for each PE: the part of its block time for each activity, and the PE that it waits
    for.
    """
    activities = list(verdict.shares)
    lines = []
    for pe in verdict.pes:
        shares = [f"{pe.shares.get(name, 0.0):.1%}" for name in activities]
        waits = "-" if pe.waits_for is None else f"PE {pe.waits_for} ({pe.waits_for_share:.0%})"
        lines.append([str(pe.pe), str(pe.blocks), f"{pe.time_us:,.1f}", *shares, waits])
    return PlainTable(["PE", "blocks", "block time (us)", *activities, "most waits end by"], lines)


def cause_table(verdict: ProfileVerdict) -> PlainTable:
    """The root causes of the waits of blocks, longest first."""
    by_activity: dict[str, dict[int, float]] = {}
    for (pe, activity), part in verdict.causes.items():
        by_activity.setdefault(activity, {})[pe] = part
    lines = []
    for activity, parts in sorted(by_activity.items(), key=lambda each: -sum(each[1].values())):
        whole = sum(parts.values())
        first = max(parts, key=lambda pe: parts[pe])
        lines.append([activity, f"{whole:.1%}", f"PE {first} ({parts[first] / whole:.0%})"])
    return PlainTable(["peers do", "of all waiting", "most of it"], lines[:_ROWS_SHOWN_MAX])


def call_table(verdict: ProfileVerdict) -> PlainTable:
    """The calls in the source with the most time."""
    lines = [
        [call.activity, call.name, call.place or "-", f"{call.share:.1%}"]
        for call in verdict.calls[:_ROWS_SHOWN_MAX]
    ]
    return PlainTable(["activity", "call", "at", "of block time"], lines)


def link_table(verdict: ProfileVerdict) -> PlainTable:
    """The busiest links, with the time that their bytes need."""
    lines = [
        [link.name, kind_name(link.kind), format_size(link.size_bytes), f"{link.least_us:,.2f}",
         f"{link.share:.1%}"]
        for link in verdict.links[:_LINKS_SHOWN_MAX]
    ]  # fmt: skip
    return PlainTable(["link", "kind", "carried", "its bytes need (us)", "of its bandwidth"], lines)


def bounds_table(verdict: ProfileVerdict) -> PlainTable:
    """The time of kernels compared with the minimum for bytes and latency."""
    lines = [["kernels ran for", f"{verdict.time_us:,.2f}", "-"]]
    bounds = [
        ("bytes over the busiest link", verdict.bytes_bound_us),
        (f"latency of {verdict.rounds} transfers in a row", verdict.latency_bound_us),
    ]
    if verdict.proxy is not None:
        proxy = verdict.proxy
        words = f"{proxy.transfers:,} transfers through the proxy of PE {proxy.pe}"
        bounds.append((words, proxy.least_us))
    for name, bound_us in bounds:
        if bound_us is not None:
            ratio = f"{verdict.time_us / bound_us:,.1f}" if bound_us > 0 else "-"
            lines.append([name, f"{bound_us:,.2f}", ratio])
    return PlainTable(["", "us", "time over it"], lines)


def profile_text(recorded: Recorded) -> Iterator[str]:
    """The breakdown of time, for a terminal."""
    verdict = recorded.verdict
    yield "# Where the time goes"
    yield from verdict.sentences
    for table in (bounds_table, pe_table, call_table, cause_table, link_table):
        rows = table(verdict)
        if rows.lines:
            yield ""
            yield from table_text(rows)
    if recorded.dropped_sentence:
        yield ""
        yield recorded.dropped_sentence


def write_profile_page(
    recorded: Recorded,
    path: Path | str,
    *,
    title: str,
    command: str,
    made_with: Provenance | None = None,
) -> None:
    """Writes the page, which needs no other file and no network.

    Args:
        recorded: the records of the run.
        path: the file.
        title: title of the page.
        command: the given command, or the call.
        made_with: the page's footer; by default the version of Towpath and the date.
    """
    write_page(profile_page(recorded, title, command), path, made_with)


def profile_page(recorded: Recorded, title: str, command: str) -> Page:
    """The limits of kernels, the breakdown of their time, and a timeline of each block."""
    verdict = recorded.verdict
    causes = _titled(cause_table(verdict), "What blocks wait for")
    bounds = _titled(bounds_table(verdict), "Beside the least time")
    limits = Section("What limits this run?", [bounds, *([causes] * bool(causes.lines))])
    time = Section(
        "Where the time goes",
        [_share_bars(verdict), pe_table(verdict), _titled(call_table(verdict), "In which calls")],
        "The time of all blocks of a PE, from their start to their end, by what they do.",
    )
    sections = [limits, time]
    lanes, notes = _lanes(recorded)
    if lanes is not None:
        sections.append(Section(lanes.title, [lanes], notes=notes))
    plots = _link_plots(recorded)
    if plots:
        sections.append(Section("Links", [link_table(verdict), *plots]))
    *reasons, last = verdict.sentences
    found = [Finding("What limits this run?", " ".join(reasons) or last)]
    if reasons:
        advice = last.removeprefix("Try this: ")
        found.append(Finding("Try this", advice[:1].upper() + advice[1:]))
    if recorded.dropped_sentence:
        found.append(Finding("Left out", recorded.dropped_sentence))
    return Page(title, command, sections, found)


def _titled(table: PlainTable, title: str) -> PlainTable:
    return PlainTable(table.headings, table.lines, title)


def _share_bars(verdict: ProfileVerdict) -> Bars:
    """A bar for each PE, divided by the activities of its blocks."""
    series = [
        BarSeries(name, [pe.shares.get(name, 0.0) for pe in verdict.pes], color=COLORS[name])
        for name in verdict.shares
    ]
    rows = [f"PE {pe.pe}" for pe in verdict.pes]
    return Bars("By PE", Axis("of block time", "share", low=0, high=1), rows, series)


def _lanes(recorded: Recorded) -> tuple[Lanes | None, list[str]]:
    """A lane for each block of one PE, a bar for each span, and a note about omitted data."""
    spans, tracks = recorded.spans, recorded.tracks
    blocks = tracks[:, TRACK_BLOCK]
    is_kernel = tracks[:, TRACK_IS_KERNEL] == 1
    shown = is_kernel & (blocks < _BLOCKS_SHOWN_MAX) & (tracks[:, TRACK_PE] < _PES_SHOWN_MAX)
    total = int(is_kernel[spans[:, TRACK]].sum()) + recorded.dropped[0]
    spans = spans[shown[spans[:, TRACK]]]
    if len(spans) == 0:
        return None, []
    spans = spans[np.argsort(spans[:, BEGIN_PS], kind="stable")]
    # One cut for all, so that PEs can be compared.
    drawn = spans[:_DRAWN_SPANS_MAX]
    begin_us, end_us = int(drawn[:, BEGIN_PS].min()) / 1e6, int(drawn[:, END_PS].max()) / 1e6
    pes = np.unique(tracks[drawn[:, TRACK], TRACK_PE]).tolist()
    texts: dict[str, int] = {}
    kinds = np.unique(drawn[:, ACTIVITY]).tolist()
    groups = {}
    for pe in pes:
        own = drawn[tracks[drawn[:, TRACK], TRACK_PE] == pe]
        groups[f"PE {pe}"] = [
            (int(blocks[row[TRACK]]), row[BEGIN_PS] / 1e6, row[END_PS] / 1e6,
             kinds.index(row[ACTIVITY]), texts.setdefault(_label(recorded, row), len(texts)))
            for row in own.tolist()
        ]  # fmt: skip
    names = [recorded.activities[number] for number in kinds]
    notes = []
    if len(drawn) < total:
        count = len(np.unique(blocks[drawn[:, TRACK]]))
        notes.append(
            f"{len(drawn):,} of {total:,} spans are here: {len(pes)} PEs, {count} blocks, from "
            f"{begin_us:,.1f} us to {end_us:,.1f} us."
        )
    how = (
        "A lane for each block of the PE chosen in the menu. Point at a bar for its call; drag to "
        "zoom, double-click to see all. The Perfetto trace (--trace) has arrows from each "
        "transfer to its arrival."
    )
    return Lanes(
        "What each block does when", groups, [(name, COLORS[name]) for name in names], list(texts),
        "block", "us", (begin_us, end_us), how,
    ), notes  # fmt: skip


def _label(recorded: Recorded, row: list[int]) -> str:
    text, place = recorded.names[row[NAME]]
    words = [text, place]
    if row[PEER] >= 0:
        words.append(f"peer {row[PEER]}")
    if row[SIZE_BYTES]:
        words.append(format_size(row[SIZE_BYTES]))
    if row[CALLS] > 1:
        words.append(f"{row[CALLS]} calls")
    return ", ".join(word for word in words if word)


def _link_plots(recorded: Recorded) -> list[Plot]:
    """For each kind of link in use, the rates of its busiest links."""
    plots = []
    for kind in dict.fromkeys(link.kind for link in recorded.links):
        own = sorted((link for link in recorded.links if link.kind == kind),
                     key=lambda link: -link.size_bytes)  # fmt: skip
        shown = own[:_LINKS_SHOWN_MAX]
        rate = max(link.rate_bytes_per_s for link in shown) / 1e9
        how = f"A link of this kind carries {rate:,.1f} GB/s at most."
        if len(shown) < len(own):
            how += f" The {len(shown)} that carried most of {len(own)} are shown."
        plots.append(_rate_plot(kind_name(kind), how, shown, recorded))
    return plots


def _rate_plot(title: str, how: str, links: list[LinkUse], recorded: Recorded) -> Plot:
    last = max(int(np.flatnonzero(link.carried_bytes)[-1]) for link in links) + 2
    times_us = (np.arange(last) * recorded.interval_ps / 1e6).tolist()
    curves = []
    for link in links:
        carried = np.append(link.carried_bytes, 0)[:last]
        rates = (carried * 1000 / recorded.interval_ps).tolist()
        texts = [f"{link.name}: {rate:,.1f} GB/s at {time_us:,.2f} us"
                 for time_us, rate in zip(times_us, rates, strict=True)]  # fmt: skip
        curves.append(Curve(link.name, times_us[: len(rates)], rates, texts, style="step",
                            width=1.4))  # fmt: skip
    return Plot(title, Axis("time (us)"), Axis("GB/s"), curves, how, height=260)
