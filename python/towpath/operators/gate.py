# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Pass marks of a machine as JSON, and the result of a check as JUnit XML."""

from __future__ import annotations

from typing import Any
from xml.sax.saxutils import escape, quoteattr

from towpath.operators.diagnosis import Compared, Diagnosis


def marks(diagnosis: Diagnosis) -> dict[str, Any]:
    """The lowest bandwidth that passes at each size, with the measured one.

    Args:
        diagnosis: the answer about files with measured times.
    """
    rows = [_mark(each) for each in diagnosis.compared]
    return {
        "machine": diagnosis.machine,
        "passed": diagnosis.is_healthy,
        "faults": [each.cause for each in diagnosis.faults],
        "marks": rows,
    }


def _mark(each: Compared) -> dict[str, Any]:
    least = each.expected.busbw_gb_per_s / each.ratio_max
    return {
        "collective": each.timed.collective, "size_bytes": each.timed.size_bytes,
        "expected_busbw_gb_per_s": round(each.expected.busbw_gb_per_s, 3),
        "min_busbw_gb_per_s": round(least, 3),
        "measured_busbw_gb_per_s": each.timed.busbw_gb_per_s, "passed": not each.is_slow,
    }  # fmt: skip


def junit(diagnosis: Diagnosis) -> str:
    """A test case per measured size and per fault, as JUnit XML."""
    cases = []
    for each in diagnosis.compared:
        name = f"{each.timed.collective} {each.timed.size_bytes} B"
        failure = ""
        if each.is_slow:
            least = each.expected.busbw_gb_per_s / each.ratio_max
            problem = f"{each.timed.busbw_gb_per_s:.2f} GB/s, at least {least:.2f} GB/s pass"
            line = escape(str(each.timed.evidence))
            failure = f"<failure message={quoteattr(problem)}>{line}</failure>"
        cases.append(_case("bandwidth", name, failure))
    for finding in diagnosis.faults:
        lines = "\n".join(map(str, finding.evidence))
        failure = f"<failure message={quoteattr(finding.sentence)}>{escape(lines)}</failure>"
        cases.append(_case("cause", finding.title, failure))
    if not cases:
        cases.append(_case("cause", "no fault found", ""))
    failed = sum("<failure" in case for case in cases)
    heading = f'<testsuite name="towpath doctor" tests="{len(cases)}" failures="{failed}">'
    return "\n".join(['<?xml version="1.0"?>', heading, *cases, "</testsuite>", ""])


def _case(kind: str, name: str, failure: str) -> str:
    return f"  <testcase classname={quoteattr(kind)} name={quoteattr(name)}>{failure}</testcase>"
