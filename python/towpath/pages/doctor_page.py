# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""The answer of `towpath doctor` as text, and as a page with a plot."""

from __future__ import annotations

from collections.abc import Iterator

from towpath.operators.diagnosis import Compared, Diagnosis
from towpath.operators.finding import Finding
from towpath.operators.judgments import SPREAD_PCT
from towpath.pages.text import table_text
from towpath.specs.sizes import format_size
from towpath.studies.page import Axis, Curve, Page, Picture, PlainTable, Plot, Section
from towpath.studies.page import Finding as Answer

_IN_SHORT_MAX = 3
_SURE = ((0.9, "almost certain"), (0.7, "likely"), (0.45, "possible"), (0.0, "one of several"))


def doctor_text(diagnosis: Diagnosis) -> str:
    """The answer as text: facts, expected and measured times, faults, and unusual facts."""
    return "\n".join(_lines(diagnosis))


def _lines(diagnosis: Diagnosis) -> Iterator[str]:
    yield f"read: {', '.join(diagnosis.observed.formats)}"
    for name, value in diagnosis.observed.facts.items():
        yield f"  {name}: {value}"
    if diagnosis.compared:
        yield ""
        yield from table_text(_table(diagnosis))
        yield _how_sure(diagnosis.compared)
    for note in diagnosis.notes:
        yield f"note: {note}"
    yield ""
    faults = diagnosis.faults
    if not faults:
        yield verdict(diagnosis)
    for number, finding in enumerate(faults, 1):
        yield f"{number}. {finding.title} ({sureness(finding)}): {finding.sentence}"
        yield from _details(finding)
    if diagnosis.possibilities:
        yield "possible causes, for which no line is evidence:"
    for finding in diagnosis.possibilities:
        yield f"- {finding.title} ({sureness(finding)}): {finding.sentence}"
        yield f"     next: {finding.next_check}"
    unusual = [each for each in diagnosis.findings if not each.is_fault]
    if unusual:
        yield "unusual, but not a fault:"
    for finding in unusual:
        yield f"- {finding.title}: {finding.sentence}"
        yield from (f"     {each}" for each in finding.evidence[:1])


def verdict(diagnosis: Diagnosis) -> str:
    """The answer in one sentence."""
    if not diagnosis.is_healthy:
        first = diagnosis.faults[0]
        return f"{first.title} ({sureness(first)}): {first.sentence}"
    if diagnosis.compared:
        return "healthy: the times are as expected, and no fault was found"
    return "no fault was found"


def sureness(finding: Finding) -> str:
    """The confidence of a finding as a phrase and in percent."""
    words = next(words for least, words in _SURE if finding.confidence >= least)
    return f"{words}, {finding.confidence:.0%}"


def _details(finding: Finding) -> Iterator[str]:
    yield from (f"     {each}" for each in finding.evidence)
    yield f"     next: {finding.next_check}"


def _how_sure(compared: list[Compared]) -> str:
    errors = sorted({round(each.expected.error_pct) for each in compared})
    span = f"{errors[0]} %" if len(errors) == 1 else f"{errors[0]} to {errors[-1]} %"
    floor = f"; a time is slow from {SPREAD_PCT:.0f} % on at the earliest"
    if all(each.expected.is_validated for each in compared):
        return f"how sure: 9 of 10 predictions on such machines are off by less than {span}{floor}"
    return (
        f"how sure: {span} is the error of 9 of 10 predictions over all machines with measurements "
        f"(this row of machine and collective has none){floor}"
    )


def _table(diagnosis: Diagnosis) -> PlainTable:
    headings = [
        "collective", "size", "measured (us)", "expected (us)", "measured (GB/s)",
        "expected (GB/s)", "ratio", "verdict",
    ]  # fmt: skip
    lines = [
        [
            each.timed.collective, format_size(each.timed.size_bytes), f"{each.timed.time_us:.1f}",
            f"{each.expected.time_us:.1f}", f"{each.timed.busbw_gb_per_s:.2f}",
            f"{each.expected.busbw_gb_per_s:.2f}", f"{each.ratio:.2f}",
            f"slow (above {each.ratio_max:.1f})" if each.is_slow else "as expected",
        ]
        for each in diagnosis.compared
    ]  # fmt: skip
    return PlainTable(headings, lines, f"bus bandwidth on {diagnosis.machine}")


def doctor_page(diagnosis: Diagnosis, command: str) -> Page:
    """The answer as a page.

    Args:
        diagnosis: the answer.
        command: the command line.
    """
    parts: list[PlainTable | Plot | Picture] = []
    if diagnosis.compared:
        parts += [*_plots(diagnosis), _table(diagnosis)]
    sections = [Section("Expected and measured", parts)] if parts else []
    causes = [
        [
            each.title, sureness(each), each.sentence,
            str(each.evidence[0]) if each.evidence else "none", each.next_check,
        ]
        for each in [*diagnosis.findings, *diagnosis.possibilities]
    ]  # fmt: skip
    if causes:
        headings = ["cause", "how sure", "finding", "evidence", "next check"]
        sections.append(Section("Findings", [PlainTable(headings, causes)]))
    if diagnosis.drawing:
        sections.append(Section("Machine", [Picture(diagnosis.machine, diagnosis.drawing)]))
    return Page(
        title="Diagnosis of a job",
        command=command,
        sections=sections,
        in_short=_in_short(diagnosis),
        facts=[("files", ", ".join(diagnosis.files)), *diagnosis.observed.facts.items()],
    )


def _in_short(diagnosis: Diagnosis) -> list[Answer]:
    """The first causes, or the verdict if nothing is accused."""
    if diagnosis.is_healthy:
        return [Answer("verdict", verdict(diagnosis), mood=True)]
    return [
        Answer(f"{each.title} ({sureness(each)})", each.sentence, mood=False)
        for each in diagnosis.faults[:_IN_SHORT_MAX]
    ]


def _plots(diagnosis: Diagnosis) -> Iterator[Plot]:
    for collective in dict.fromkeys(each.timed.collective for each in diagnosis.compared):
        rows = [each for each in diagnosis.compared if each.timed.collective == collective]
        sizes = [float(each.timed.size_bytes) for each in rows]
        slow = [number for number, each in enumerate(rows) if each.is_slow]
        yield Plot(
            f"{collective}: bus bandwidth",
            Axis("size", scale="size"),
            Axis("GB/s", low=0),
            [
                Curve("measured", sizes, [each.timed.busbw_gb_per_s for each in rows], hollow=slow),
                Curve(
                    "expected", sizes, [each.expected.busbw_gb_per_s for each in rows], style="dash"
                ),
                Curve(
                    "pass mark", sizes,
                    [each.expected.busbw_gb_per_s / each.ratio_max for each in rows], style="dot",
                ),
            ],
            how="hollow points are below the pass mark",
        )  # fmt: skip
