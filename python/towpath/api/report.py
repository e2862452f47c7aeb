# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""The page of runs: the answers, time and bandwidth over size, and all underlying data."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from towpath.collectives.result import LinkLoad, Measurement, RunRow, has_root, reduces
from towpath.pages.html import write_page
from towpath.pages.provenance import joined
from towpath.pages.text import format_time, kind_name
from towpath.pages.timeline import timeline_section
from towpath.specs.sizes import format_size
from towpath.studies.page import (
    COLORS,
    Axis,
    Curve,
    Finding,
    Page,
    Picture,
    PlainTable,
    Plot,
    Section,
)

if TYPE_CHECKING:
    from towpath.api.result import RunResult
    from towpath.collectives.result import Timeline

LINKS_SHOWN_MAX = 40
# Spans of thread blocks drawn in one file, all runs together: about 25 bytes each.
_DRAWN_SPANS_MAX = 20_000
_HOW = (
    "Bus bandwidth is the size over the time, times the factor of the collective, so that a "
    "perfect ring shows the speed of its links. The error to expect is that of the measured rows "
    "nearest to a prediction, median and 90th percentile. GB are 10⁹ bytes."
)


def write_report(
    results: list[RunResult], path: Path | str, *, trace_size_bytes: int | None = None
) -> None:
    """Writes the page of one or several runs; its footer names its origin.

    Args:
        results: at least one run.
        path: the file.
        trace_size_bytes: size of the call in the timeline; None: the largest up to 1 MiB.
    """
    timelines = [result.timeline(trace_size_bytes) for result in results]
    page = report_page(results, timelines)
    write_page(page, path, joined(result.provenance for result in results))


def report_page(results: list[RunResult], timelines: list[Timeline | None]) -> Page:
    """The facts about runs, and about one call of each."""
    names = run_names(results)
    drawn_max = _DRAWN_SPANS_MAX // max(sum(each is not None for each in timelines), 1)
    where = ", ".join(dict.fromkeys(result.where for result in results))
    sections = [
        Section("Over size", (
            _plot("Time over size", Axis("time (us)", "log"), results, names, lambda m: m.time_us),
            _plot("Bus bandwidth over size", Axis("bus bandwidth (GB/s)"), results, names,
                  lambda m: m.busbw_gb_per_s),
            _numbers(results, names),
        )),
        *(_run_section(*each, drawn_max) for each in zip(results, timelines, names, strict=True)),
    ]  # fmt: skip
    return Page(
        f"{results[0].collective}: {where}", results[0].command, sections,
        in_short=[
            each
            for result, name in zip(results, names, strict=True)
            for each in _findings(result, f"{name}: " if len(results) > 1 else "")
        ],
        headline=_headline(results, names), how=_HOW,
    )  # fmt: skip


def run_names(results: list[RunResult]) -> list[str]:
    """A unique short name per run, made of the differences between runs."""
    described = [_description(result) for result in results]
    differing = [
        i for i, column in enumerate(zip(*described, strict=True)) if i == 0 or len(set(column)) > 1
    ]
    names = [", ".join(parts[i] for i in differing) for parts in described]
    seen: Counter[str] = Counter()
    for index, name in enumerate(names):
        seen[name] += 1
        if seen[name] > 1:
            names[index] = f"{name} ({seen[name]})"
    return names


def _description(result: RunResult) -> tuple[str, ...]:
    schedules = dict.fromkeys(row.schedule for row in result.rows)
    is_one = len(schedules) == 1 and not result.is_chosen
    name = next(iter(schedules)) if is_one else "fastest schedule at each size"
    row = result.rows[0] if is_one else None
    channels = "" if row is None else f"{row.channels} channel{'' if row.channels == 1 else 's'}"
    return (
        name, result.collective, "" if row is None else row.protocol, channels, result.dtype,
        result.op, result.where,
    )  # fmt: skip


def _schedule(row: RunRow) -> str:
    channels = f"{row.channels} channel{'' if row.channels == 1 else 's'}"
    return f"{row.schedule}, {row.protocol}, {channels}"


# --- the answers ----------------------------------------------------------------------------------


def _findings(result: RunResult, prefix: str) -> Iterator[Finding]:
    rows = [row for row in result.rows if row.measurements]
    if rows:
        best = max(rows, key=lambda row: row.bus_bandwidth_gb_per_s)
        yield Finding(
            f"{prefix}most bandwidth",
            f"{best.bus_bandwidth_gb_per_s:.1f} GB/s at {format_size(best.size_bytes)} "
            f"({_schedule(best)})",
        )
        least = min(rows, key=lambda row: row.time_us)
        yield Finding(
            f"{prefix}least time",
            f"{format_time(least.time_us)} us at {format_size(least.size_bytes)} "
            f"({_schedule(least)})",
        )
    if result.limit is not None:
        sentence = result.limit.sentence
        yield Finding(
            f"{prefix}limit at {format_size(result.limit.size_bytes)}",
            f"{sentence[:1].upper()}{sentence[1:]}.",
        )
    yield _data_finding(result, prefix)


def _data_finding(result: RunResult, prefix: str) -> Finding:
    checked = [each for each in result.measurements if each.wrong is not None]
    if result.wrong is None:
        return Finding(f"{prefix}data", "not checked")
    if result.wrong:
        return Finding(f"{prefix}data", f"{result.wrong:,} wrong", mood=False)
    if len(checked) < len(result.measurements):
        words = f"correct ({len(checked)} of {len(result.measurements)} checked)"
        return Finding(f"{prefix}data", words, mood=True)
    return Finding(f"{prefix}data", "correct", mood=True)


def _headline(results: list[RunResult], names: list[str]) -> PlainTable:
    """Size, time, bandwidth, schedule and error of every row."""
    is_one = len(results) == 1
    has_errors = any(row.error_pct is not None for result in results for row in result.rows)
    headings = ["size", "time (us)", "bus bandwidth (GB/s)", "schedule"]
    lines = []
    for result, name in zip(results, names, strict=True):
        for row in result.rows:
            figures = (
                [format_time(row.time_us), f"{row.bus_bandwidth_gb_per_s:.2f}"]
                if row.measurements
                else ["N/A", "N/A"]
            )
            line = [format_size(row.size_bytes), *figures, _schedule(row)]
            if has_errors:
                line.append(_error(row))
            lines.append(line if is_one else [name, *line])
    headings += ["error to expect"] * has_errors
    return PlainTable(headings if is_one else ["run", *headings], lines)


def _error(row: RunRow) -> str:
    if row.error_pct is None:
        return "not validated"
    return "{:.0f} %, 90th percentile {:.0f} %".format(*row.error_pct)


# --- over size ------------------------------------------------------------------------------------


def _plot(
    title: str, y: Axis, results: list[RunResult], names: list[str],
    value_of: Callable[[Measurement], float],
) -> Plot:  # fmt: skip
    """A plot with one curve per run, and a dotted curve for the time in place if it differs."""
    curves = []
    for place, (result, name) in enumerate(zip(results, names, strict=True)):
        out = _points(result, "out_of_place")
        inside = _points(result, "in_place")
        color = COLORS[place % len(COLORS)]
        if out:
            curves.append(_curve(name, result, out, value_of, color, is_first=True))
        if inside and (not out or not _is_same(result)):
            in_place = f"{name}, in place"
            curves.append(
                _curve(in_place, result, inside, value_of, color, is_first=not out, style="open")
            )
    return Plot(title, Axis("size", "size"), y, curves)


def _curve(
    name: str, result: RunResult, points: list[tuple[RunRow, Measurement]],
    value_of: Callable[[Measurement], float], color: str, *, is_first: bool, style: str = "line",
) -> Curve:  # fmt: skip
    labels: list[str] = []
    if is_first and result.is_chosen:
        before = None
        for row, _ in points:
            label = f"{row.schedule.removesuffix(f'_{result.collective}')} {row.protocol}"
            labels.append(label if label != before else "")
            before = label
    return Curve(
        name,
        [row.size_bytes for row, _ in points],
        [value_of(measurement) for _, measurement in points],
        [
            f"{format_size(row.size_bytes)}: {format_time(each.time_us)} us, "
            f"{each.busbw_gb_per_s:.2f} GB/s, {_schedule(row)}"
            for row, each in points
        ],
        labels, style, color,  # type: ignore[arg-type]
    )  # fmt: skip


def _points(result: RunResult, way: str) -> list[tuple[RunRow, Measurement]]:
    """Rows above 0 bytes with their measurements out_of_place or in_place."""
    return [
        (row, measurement)
        for row in result.rows
        if (measurement := getattr(row, way)) is not None and row.size_bytes > 0
    ]


def _is_same(result: RunResult) -> bool:
    """True if each size takes the same time in place and out of place."""
    return all(
        row.out_of_place is None or row.in_place is None or row.out_of_place == row.in_place
        for row in result.rows
    )


def _numbers(results: list[RunResult], names: list[str]) -> PlainTable:
    """The rows in the columns of nccl-tests; the columns of in-place runs appear only if they
    differ.
    """
    has_in_place = not all(map(_is_same, results)) or any(
        row.out_of_place is None for result in results for row in result.rows
    )
    columns = ["time (us)", "algbw (GB/s)", "busbw (GB/s)", "wrong"]
    headings = ["run", "size (B)", "count", "type", "redop", "root", *columns]
    headings += [f"in place: {column}" for column in columns] * has_in_place
    lines = []
    for result, name in zip(results, names, strict=True):
        operation = result.op if reduces(result.collective) else "none"
        root = str(result.root if has_root(result.collective) else -1)
        for row in result.rows:
            ways = [row.out_of_place, row.in_place] if has_in_place else [row.out_of_place]
            lines.append([
                name, str(row.size_bytes), str(row.count), result.dtype, operation, root,
                *(cell for way in ways for cell in _cells(way)),
            ])  # fmt: skip
    if len(results) == 1:
        headings, lines = headings[1:], [line[1:] for line in lines]
    title = "Table: the columns of nccl-tests" + (
        "" if has_in_place else "; times in place are the same"
    )
    return PlainTable(headings, lines, title, is_folded=True)


def _cells(measurement: Measurement | None) -> list[str]:
    if measurement is None:
        return ["N/A"] * 4
    return [
        format_time(measurement.time_us), f"{measurement.algbw_gb_per_s:.2f}",
        f"{measurement.busbw_gb_per_s:.2f}",
        "N/A" if measurement.wrong is None else str(measurement.wrong),
    ]  # fmt: skip


# --- a run ----------------------------------------------------------------------------------------


def _run_section(
    result: RunResult, timeline: Timeline | None, name: str, drawn_spans_max: int
) -> Section:
    """Facts, failing links, loads and timeline of one run."""
    parts: list[PlainTable | Section] = []
    faults = _faults_table(result)
    if faults is not None:
        parts.append(faults)
    if result.links:
        parts.append(_links_section(result))
    if timeline is not None and (drawn := timeline_section(timeline, drawn_spans_max)) is not None:
        parts.append(drawn)
    return Section(
        f"{name[:1].upper()}{name[1:]}, {result.kind}", parts, facts=_facts(result),
        notes=list(result.notes), is_folded=not parts,
    )  # fmt: skip


def _facts(result: RunResult) -> list[tuple[str, str]]:
    facts = [
        ("Where", result.where),
        ("Collective", result.collective),
        ("Ranks", str(result.ranks)),
        ("Type", result.dtype),
    ]
    if reduces(result.collective):
        facts.append(("Operation", result.op))
    if has_root(result.collective):
        facts.append(("Root", str(result.root)))
    facts.append(("Iterations", f"{result.iterations} after {result.warmup} warm-up"))
    return facts


def _faults_table(result: RunResult) -> PlainTable | None:
    """The failures of each link, and the time of the call without failures."""
    lines = [
        [
            str(row.size_bytes), format_time(cost.time_us), format_time(cost.time_without_us),
            format_time(cost.time_us - cost.time_without_us), link.link, link.fault,
            str(link.drops), format_time(link.down_us) + ("" if link.is_up else ", still"),
            str(link.frames_lost), str(link.resent_bytes),
        ]
        for row in result.rows
        if (cost := row.fault_cost) is not None
        for link in cost.links
    ]  # fmt: skip
    headings = ["size (B)", "time (us)", "without (us)", "longer by (us)", "link", "fault", "drops",
                "down (us)", "frames lost", "sent again (B)"]  # fmt: skip
    return PlainTable(headings, lines, "Links that fail") if lines else None


def _links_section(result: RunResult) -> Section:
    """Loads of links at the largest size: one line per kind, with the rest in an expandable
    section.
    """
    links = result.links
    lines = []
    for kind in dict.fromkeys(link.kind for link in links):
        own = [link for link in links if link.kind == kind]
        busy = [link.busy_fraction for link in own]
        lines.append([
            kind_name(kind), str(len(own)), str(sum(link.size_bytes > 0 for link in own)),
            format_size(sum(link.size_bytes for link in own)),
            *(f"{100 * value:.1f} %" for value in (min(busy), median(busy), max(busy))),
        ])  # fmt: skip
    headings = ["links by kind", "directions", "in use", "carried", "least busy", "median",
                "most busy"]  # fmt: skip
    parts: list[PlainTable | Section] = [PlainTable(headings, lines)]
    if result.topology_svg is not None:
        how = "Every device and link, each link by its part of the time in which it carried data."
        picture = Picture("The machine under load", result.topology_svg, how)
        parts.append(Section(picture.title, [picture], is_folded=True))
    parts.append(_busiest_table(links))
    how = (
        "The part of the time in which a direction of a link carried data, at the largest size. A "
        "kind near 100 % limits the run. If all stay far below, latency or thread blocks do."
    )
    return Section("Links", parts, how)


def _busiest_table(links: list[LinkLoad]) -> PlainTable:
    used = [link for link in links if link.size_bytes]
    shown = sorted(used, key=lambda link: -link.busy_fraction)[:LINKS_SHOWN_MAX]
    lines = [
        [link.from_name, link.to_name, kind_name(link.kind), str(link.size_bytes),
         f"{100 * link.busy_fraction:.1f} %"]
        for link in shown
    ]  # fmt: skip
    title = f"The {len(shown)} busiest of {len(links)} links"
    return PlainTable(["from", "to", "kind", "carried (B)", "busy"], lines, title, is_folded=True)
