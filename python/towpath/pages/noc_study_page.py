# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""The page of the NoC study: verdicts, a plot per pattern and NoC, and all measurements."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from towpath.specs.sizes import format_size
from towpath.studies.noc_findings import Finding as Claim
from towpath.studies.noc_findings import Row
from towpath.studies.noc_study import is_reduced
from towpath.studies.page import COLORS, Axis, Curve, Finding, Page, PlainTable, Plot, Section

_PLACEMENTS = {"alone": "without data", "own_vc": "VC of its own", "data_vc": "the data's VC"}


_HOW = (
    "The verdicts on the findings of the published study, by the numbers of this run. Differences "
    "of up to 5 % are none. A page is a flit. A master sends its transactions to each of its "
    "destinations, one destination after the other; the i-th to a destination uses VC i modulo the "
    "number of VCs. Bandwidth is a master's bytes over its cycles from the first issue to the end "
    "of its barrier, as the median over masters. At 1 GHz a byte per cycle is 1 GB/s. An asterisk, "
    "or an open circle, says that a point had fewer transactions per destination than requested, "
    "to fit its budget; points that do not fit with one on each VC are left out."
)
_HOWS = {
    "orders": "Four transactions per destination. Randomized: a core at (x, y) begins 9 y + x "
    "destinations and VCs further on than the list says.",
    "flow_control": "Pairs of cores half a row apart: one streams the largest packets to the other "
    "without a pause, which sends it a small message every few thousand cycles. Latency is from "
    "issue to delivery, of the messages issued while all streams ran.",
    "classes": "Along one line of cores three send to a DRAM channel, to an Ethernet tile, or "
    "debug data to the core at its end; between them two send to L1. All on one VC, or each class "
    "on its own: the delivered bytes while every stream runs.",
    "throttle": "All to all in randomized order, every core issuing one transaction per interval. "
    "Where accepted leaves the dotted line, the buffers on the way are full. Latency, in cycles, "
    "counts from when a transaction was due.",
    "stalled_vcs": "A flow along a row shares its links with flows that hardly move: each turns "
    "down a column to a destination that the cores on the way send to on the same VC, so that "
    "little of its rate is left to it.",
}


@dataclass(frozen=True)
class Study:
    """The findings of a run.

    Attributes:
        title: title in one line.
        command: the given command.
        facts: terms and values about the chip and the run.
        parts: rows by part of the study.
        findings: verdicts.
    """

    title: str
    command: str
    facts: list[tuple[str, str]]
    parts: dict[str, list[Row]]
    findings: list[Claim]


def noc_page(study: Study) -> Page:
    """The page of `towpath bench noc-vc`."""
    parts = study.parts
    others: list[tuple[str, str, Callable[[list[Row]], list[Any]]]] = [
        ("orders", "Order of destinations", _orders),
        ("flow_control", "Small messages beside data", lambda rows: [flow_control_table(rows)]),
        ("classes", "Two classes of traffic on shared links", lambda rows: [classes_table(rows)]),
        ("throttle", "Throttled injection",
         lambda rows: [*_throttle_plots(rows), throttle_table(rows)]),
        ("stalled_vcs", "Stalled VCs", lambda rows: [stalled_vcs_table(rows)]),
    ]  # fmt: skip
    sections = [
        *_bandwidth_sections(parts.get("patterns", [])),
        *(Section(title, made(parts[part]), _HOWS[part])
          for part, title, made in others if parts.get(part)),
        *_bandwidth_sections(parts.get("loopback", [])),
    ]  # fmt: skip
    found = [
        Finding(each.claim, "; ".join(each.numbers), each.verdict, each.reason, each.shown)
        for each in study.findings
    ]
    return Page(study.title, study.command, sections, found, how=_HOW, facts=study.facts)


def _bandwidth_sections(rows: list[Row]) -> Iterator[Section]:
    """One section per pattern and order."""
    for title, own in bandwidth_sections(rows):
        most = _most(own)
        plots = [
            bandwidth_plot(f"NoC {noc}", [row for row in own if row["noc"] == noc], most)
            for noc in sorted({row["noc"] for row in own})
        ]
        yield Section(
            title, [*plots, bandwidth_table(title, own)],
            "Bandwidth over transaction size, a line per number of VCs.",
        )  # fmt: skip


def bandwidth_table(title: str, rows: Iterable[Row]) -> PlainTable:
    """One line per size, and one column per NoC and VC count; an asterisk marks reduced points."""
    at = {(row["noc"], row["vcs"], row["size_bytes"]): row for row in rows}
    columns = sorted({key[:2] for key in at})
    lines = [
        [str(size), *(_rate(at.get((*column, size))) for column in columns)]
        for size in sorted({key[2] for key in at})
    ]
    headings = ["size (B)", *(f"NoC {noc} VCs {vcs} " for noc, vcs in columns)]
    title = f"{title}: bandwidth per master (B/cycle), median over masters"
    return PlainTable(headings, lines, title, is_folded=True)


def _rate(row: Row | None) -> str:
    if row is None:
        return ""
    return f"{row['bandwidth_bytes_per_cycle']:.2f}" + ("*" if is_reduced(row) else " ")


def flow_control_table(rows: Iterable[Row]) -> PlainTable:
    """Latency of small messages by their VC."""
    headings = [
        "NoC", "message", "travels on", "median (cycles)", "p95", "max",
        "messages", "data (B/cycle per sender)",
    ]  # fmt: skip
    lines = [
        [
            str(row["noc"]), row["message"].replace("_", " "), _PLACEMENTS[row["placement"]],
            f"{row['latency_median_cycles']:,}", f"{row['latency_p95_cycles']:,}",
            f"{row['latency_max_cycles']:,}", f"{row['messages']:,}",
            f"{row['data_bandwidth_bytes_per_cycle']:.2f}",
        ]
        for row in rows
    ]  # fmt: skip
    return PlainTable(headings, lines)


def classes_table(rows: Iterable[Row]) -> PlainTable:
    """Bandwidth of two classes of traffic, on a shared VC and on separate VCs."""
    headings = ["NoC", "beside L1", "VCs", "both (B/cycle)", "to L1", "the other"]
    lines = [
        [
            str(row["noc"]), row["other"], "2" if row["placement"] == "own_vc" else "1",
            f"{row['bandwidth_bytes_per_cycle']:.2f}",
            f"{row['l1_bandwidth_bytes_per_cycle']:.2f}",
            f"{row['other_bandwidth_bytes_per_cycle']:.2f}",
        ]
        for row in rows
    ]  # fmt: skip
    return PlainTable(headings, lines)


def throttle_table(rows: Iterable[Row]) -> PlainTable:
    """Accepted bandwidth over offered bandwidth."""
    headings = ["NoC", "VCs", "offered (B/cycle)", "accepted (B/cycle)", "latency since due"]
    lines = [
        [
            str(row["noc"]), str(row["vcs"]), f"{row['offered_bytes_per_cycle']:.2f}",
            f"{row['bandwidth_bytes_per_cycle']:.2f}", f"{row['latency_median_cycles']:,}",
        ]
        for row in rows
    ]  # fmt: skip
    return PlainTable(headings, lines)


def stalled_vcs_table(rows: Iterable[Row]) -> PlainTable:
    """The bandwidth that a flow keeps next to stalled VCs."""
    rows = list(rows)
    free = next((row["bandwidth_bytes_per_cycle"] for row in rows if row["stalled"] == 0), None)
    headings = [
        "stalled VCs",
        "rows down",
        "another VC (B/cycle)",
        "of its rate with none",
        "stalled throughout",
    ]
    lines = [
        [
            str(row["stalled"]), str(row["rows"]), f"{row['bandwidth_bytes_per_cycle']:.2f}",
            f"{row['bandwidth_bytes_per_cycle'] / free:.1%}" if free else "",
            "yes" if row["stalled_to_the_end"] else "no",
        ]
        for row in rows
    ]  # fmt: skip
    return PlainTable(headings, lines)


def bandwidth_sections(rows: Iterable[Row]) -> Iterator[tuple[str, list[Row]]]:
    """Rows of bandwidth over size, grouped by table, with a title."""
    tables: dict[tuple[str, bool], list[Row]] = {}
    for row in rows:
        tables.setdefault((row["pattern"], row["turned"]), []).append(row)
    for own in tables.values():
        yield section_title(own), own


def section_title(rows: list[Row]) -> str:
    """The settings that all rows of a table share."""
    row = rows[0]
    count = row["asked_per_destination"]
    order = ", order randomised" if row["turned"] else ""
    words = row["pattern"].replace("_", "-").capitalize()
    return f"{words}, {count} transaction{'s' if count > 1 else ''} per destination{order}"


# --- plots ----------------------------------------------------------------------------------------


def _orders(rows: list[Row]) -> list[Any]:
    """Plots of both orders of one pattern on one NoC, and their tables."""
    parts: list[Any] = []
    for pattern, noc in dict.fromkeys((row["pattern"], row["noc"]) for row in rows):
        own = [row for row in rows if (row["pattern"], row["noc"]) == (pattern, noc)]
        own.sort(key=lambda row: row["size_bytes"])
        curves = [
            _curve(name, int(turned), [row for row in own if row["turned"] == turned])
            for turned, name in ((False, "same order for all"), (True, "randomized order"))
        ]
        most = _most([row for row in rows if row["pattern"] == pattern])
        words = pattern.replace("_", "-").capitalize()
        parts.append(_bandwidth_plot(f"{words}, NoC {noc}", curves, most))
    return parts + [bandwidth_table(title, own) for title, own in bandwidth_sections(rows)]


def bandwidth_plot(title: str, rows: Iterable[Row], most: float) -> Plot:
    """Bandwidth over size on one NoC, one line per VC count; the axis extends to `most`."""
    rows = sorted(rows, key=lambda row: row["size_bytes"])
    curves = [
        _curve(_vcs(vcs), vcs - 1, [row for row in rows if row["vcs"] == vcs])
        for vcs in sorted({row["vcs"] for row in rows})
    ]
    return _bandwidth_plot(title, curves, most)


def _bandwidth_plot(title: str, curves: list[Curve], most: float) -> Plot:
    y = Axis("bandwidth (B/cycle per master)", low=0, high=1.07 * most)
    return Plot(title, Axis("transaction size", "size"), y, curves, height=280)


def _curve(name: str, place: int, rows: list[Row]) -> Curve:
    """A curve. Later curves are thinner, so that the curves that they cover are visible."""
    texts = [
        f"{format_size(row['size_bytes'])}: {row['bandwidth_bytes_per_cycle']:.2f} B/cycle, {name}"
        for row in rows
    ]
    return Curve(
        name, [row["size_bytes"] for row in rows],
        [row["bandwidth_bytes_per_cycle"] for row in rows], texts,
        color=COLORS[place % len(COLORS)], width=max(4.8 - 1.1 * place, 1.4),
        hollow=[number for number, row in enumerate(rows) if is_reduced(row)],
    )  # fmt: skip


def _vcs(count: int) -> str:
    return f"{count} VC{'s' if count > 1 else ''}"


def _throttle_plots(rows: list[Row]) -> list[Plot]:
    """Accepted bandwidth and latency over offered bandwidth, on each NoC."""
    plots = []
    for noc in sorted({row["noc"] for row in rows}):
        own = [row for row in rows if row["noc"] == noc]
        offered = max(row["offered_bytes_per_cycle"] for row in own)
        accepted = Axis("accepted (B/cycle per core)", low=0, high=1.6 * _most(own))
        line = Curve("offered", [0, offered], [0, offered], None, style="dot", color=COLORS[7])
        x = Axis("offered (B/cycle per core)", low=0)
        latency = Axis("median latency since due (cycles)", "log")
        plots += [
            Plot(f"Accepted over offered, NoC {noc}", x, accepted,
                 [line, *_load_curves(own, "bandwidth_bytes_per_cycle")], height=280),
            Plot(f"Latency over offered, NoC {noc}", x, latency,
                 _load_curves(own, "latency_median_cycles"), height=280),
        ]  # fmt: skip
    return plots


def _load_curves(rows: Iterable[Row], field: str) -> list[Curve]:
    rows = sorted(rows, key=lambda row: row["offered_bytes_per_cycle"])
    curves = []
    for vcs in sorted({row["vcs"] for row in rows}):
        own = [row for row in rows if row["vcs"] == vcs]
        curves.append(Curve(
            _vcs(vcs), [row["offered_bytes_per_cycle"] for row in own],
            [row[field] for row in own], color=COLORS[(vcs - 1) % len(COLORS)],
        ))  # fmt: skip
    return curves


def _most(rows: Iterable[Row]) -> float:
    return max(row["bandwidth_bytes_per_cycle"] for row in rows)
