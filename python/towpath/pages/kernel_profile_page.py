# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""The profile of kernels, as text and as an HTML page."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from pathlib import Path

import numpy as np
import plotly.graph_objects as go

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
from towpath.kernels.profile_verdict import WORDS, ProfileVerdict
from towpath.pages.plain_text import table_text
from towpath.pages.plots import CURVE_COLORS, kind_name, lay_out_bars, layout
from towpath.pages.provenance import Provenance
from towpath.pages.report import write_page
from towpath.specs.sizes import format_size
from towpath.studies.plain_table import PlainTable

_PES_SHOWN_MAX = 16
_BLOCKS_SHOWN_MAX = 40
_DRAWN_SPANS_MAX = 30_000
_LINKS_SHOWN_MAX = 8
_ROWS_SHOWN_MAX = 8
COLORS = {
    "compute": "#96793d", "put": "#3b74b8", "get": "#58a6c9", "signal": "#7c66b8",
    "atomic": "#b8506c", "quiet": "#c9a227", "wait": "#d98324", "collective": "#2b9c80",
    "sync": "rgba(128,138,150,0.55)", "turn": "rgba(128,138,150,0.25)",
}  # fmt: skip


def pe_table(verdict: ProfileVerdict) -> PlainTable:
    """A line for each PE: the part of its block time for each activity, and whom it waits for."""
    activities = list(verdict.shares)
    lines = []
    for pe in verdict.pes:
        shares = [f"{pe.shares.get(name, 0.0):.1%}" for name in activities]
        waits = "-" if pe.waits_for is None else f"PE {pe.waits_for} ({pe.waits_for_share:.0%})"
        lines.append([str(pe.pe), str(pe.blocks), f"{pe.time_us:,.1f}", *shares, waits])
    return PlainTable(["PE", "blocks", "block time (us)", *activities, "most waits end by"], lines)


def cause_table(verdict: ProfileVerdict) -> PlainTable:
    """What blocks wait for in the end, greatest first."""
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
    """The calls in the source that take most."""
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
    """The time of kernels beside the least that bytes and latency allow."""
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
    """Where the time went, for a terminal."""
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
    """Write the page; it needs no other file and no network.

    Args:
        recorded: what happened.
        path: the file.
        title: of the page.
        command: what was typed, or the call.
        made_with: the page's foot; by default the version of Towpath and the date.
    """
    verdict = recorded.verdict
    timeline = _timeline(recorded)
    write_page(
        path, "kernel_profile.html.jinja", made_with=made_with, title=title, command=command,
        recorded=recorded, verdict=verdict, bounds=bounds_table(verdict),
        pes=pe_table(verdict), causes=cause_table(verdict), links=link_table(verdict),
        calls=call_table(verdict), share_figure=_share_figure(verdict), timeline=timeline,
        link_figures=_link_figures(recorded),
    )  # fmt: skip


def _share_figure(verdict: ProfileVerdict) -> go.Figure:
    """A bar for each PE, cut by what its blocks do."""
    figure = go.Figure()
    pes = [f"PE {pe.pe}" for pe in verdict.pes]
    for name in verdict.shares:
        figure.add_bar(
            orientation="h",
            name=name,
            x=[pe.shares.get(name, 0.0) for pe in verdict.pes],
            y=pes,
            marker={"color": COLORS[name], "line_width": 0},
            hovertemplate=f"%{{y}}: %{{x:.1%}} of block time they {WORDS[name]}<extra></extra>",
        )
    figure.update_layout(layout(height=110 + 26 * len(pes)), barmode="stack", bargap=0.3)
    figure.update_layout(legend_traceorder="normal")
    figure.update_xaxes(tickformat=".0%", range=[0, 1], title="of block time")
    figure.update_yaxes(autorange="reversed", showgrid=False, type="category")
    return figure


def _timeline(recorded: Recorded) -> dict | None:
    """A lane for each block of one PE, a bar for each span, and what it leaves out."""
    spans, tracks = recorded.spans, recorded.tracks
    blocks = tracks[:, TRACK_BLOCK]
    is_kernel = tracks[:, TRACK_IS_KERNEL] == 1
    shown = is_kernel & (blocks < _BLOCKS_SHOWN_MAX) & (tracks[:, TRACK_PE] < _PES_SHOWN_MAX)
    total = int(is_kernel[spans[:, TRACK]].sum()) + recorded.dropped[0]
    spans = spans[shown[spans[:, TRACK]]]
    if len(spans) == 0:
        return None
    spans = spans[np.argsort(spans[:, BEGIN_PS], kind="stable")]
    # One cut for all, so that PEs can be compared.
    drawn = spans[:_DRAWN_SPANS_MAX]
    end_ps = int(drawn[:, END_PS].max())
    begin_ps = int(drawn[:, BEGIN_PS].min())
    pes = np.unique(tracks[drawn[:, TRACK], TRACK_PE]).tolist()
    figure = go.Figure()
    owners: list[int] = []
    for pe in pes:
        own = drawn[tracks[drawn[:, TRACK], TRACK_PE] == pe]
        for number in np.unique(own[:, ACTIVITY]).tolist():
            same = own[own[:, ACTIVITY] == number]
            _add_bars(figure, recorded, same, is_shown=pe == pes[0])
            owners.append(pe)
    buttons = [
        {"label": f"PE {pe}", "method": "update",
         "args": [{"visible": [owner == pe for owner in owners]}]}
        for pe in pes
    ]  # fmt: skip
    count = len(np.unique(blocks[drawn[:, TRACK]]))
    lay_out_bars(figure, 160 + min(26 * count, 900), buttons, (begin_ps, end_ps))
    figure.update_yaxes(title="block", autorange="reversed", showgrid=False, dtick=1)
    return {
        "figure": figure, "drawn": len(drawn), "spans": total, "blocks": count, "pes": len(pes),
        "from_us": begin_ps / 1e6, "until_us": end_ps / 1e6,
    }  # fmt: skip


def _add_bars(figure: go.Figure, recorded: Recorded, spans: np.ndarray, *, is_shown: bool) -> None:
    name = recorded.activities[spans[0, ACTIVITY]]
    figure.add_bar(
        orientation="h",
        name=name,
        base=spans[:, BEGIN_PS] / 1e6,
        x=(spans[:, END_PS] - spans[:, BEGIN_PS]) / 1e6,
        y=recorded.tracks[spans[:, TRACK], TRACK_BLOCK],
        customdata=[_label(recorded, row) for row in spans.tolist()],
        width=0.84,
        marker={"color": COLORS[name], "line_width": 0},
        visible=is_shown,
        hovertemplate=f"{name}: %{{customdata}}<br>block %{{y}}<br>"
        "from %{base:,.3f} us to %{x:,.3f} us<extra></extra>",
    )


def _label(recorded: Recorded, row: list[int]) -> str:
    text, place = recorded.names[row[NAME]]
    words = [escape(text), escape(place)]
    if row[PEER] >= 0:
        words.append(f"peer {row[PEER]}")
    if row[SIZE_BYTES]:
        words.append(format_size(row[SIZE_BYTES]))
    if row[CALLS] > 1:
        words.append(f"{row[CALLS]} calls")
    return ", ".join(word for word in words if word)


def _link_figures(recorded: Recorded) -> list[tuple[str, str, go.Figure]]:
    """For each kind of link in use: its name, a sentence, and the rates of its busiest links."""
    figures = []
    for kind in dict.fromkeys(link.kind for link in recorded.links):
        own = sorted((link for link in recorded.links if link.kind == kind),
                     key=lambda link: -link.size_bytes)  # fmt: skip
        shown = own[:_LINKS_SHOWN_MAX]
        rate = max(link.rate_bytes_per_s for link in shown) / 1e9
        sentence = f"A link of this kind carries {rate:,.1f} GB/s at most."
        if len(shown) < len(own):
            sentence += f" The {len(shown)} that carried most of {len(own)} are shown."
        figures.append((kind_name(kind), sentence, _rate_figure(shown, recorded)))
    return figures


def _rate_figure(links: list[LinkUse], recorded: Recorded) -> go.Figure:
    figure = go.Figure()
    last = max(int(np.flatnonzero(link.carried_bytes)[-1]) for link in links) + 2
    times_us = np.arange(last) * recorded.interval_ps / 1e6
    for place, link in enumerate(links):
        carried = np.append(link.carried_bytes, 0)[:last]
        figure.add_scatter(
            x=times_us,
            y=carried * 1000 / recorded.interval_ps,
            name=escape(link.name),
            mode="lines",
            line={"color": CURVE_COLORS[place % len(CURVE_COLORS)], "width": 1.4, "shape": "hv"},
            hovertemplate=f"{escape(link.name)}: %{{y:,.1f}} GB/s at %{{x:,.2f}} us<extra></extra>",
        )
    figure.update_layout(layout(height=260 + 10 * len(links)))
    figure.update_xaxes(title="time (us)")
    figure.update_yaxes(title="GB/s", rangemode="tozero")
    return figure
