# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Joins measured times with expected times, and ranks the causes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from statistics import median
from typing import Any

from towpath.operators.finding import Finding
from towpath.operators.judgments import (
    ERROR_MAX_PCT,
    FAST_SLACK,
    SLACK,
    SOCKET_SHARE,
    SPREAD_PCT,
)
from towpath.operators.observed import Observed, Timed
from towpath.specs.sizes import format_size

_SIZES_MAX = 48


@dataclass(frozen=True)
class Expectation:
    """A predicted time.

    Attributes:
        time_us: time of one call in microseconds.
        busbw_gb_per_s: bus bandwidth in 1e9 bytes per second.
        error_pct: 90th percentile of the model's error, in percent: on measured rows near this one,
            or on all measured rows if there are none.
        is_validated: True if the error comes from measurements of this kind of machine.
        algorithm: algorithm and protocol.
    """

    time_us: float
    busbw_gb_per_s: float
    error_pct: float
    is_validated: bool
    algorithm: str


@dataclass(frozen=True)
class Compared:
    """A measured time and its prediction.

    Attributes:
        timed: the measurement.
        expected: the prediction.
    """

    timed: Timed
    expected: Expectation

    @property
    def ratio(self) -> float:
        """Measured time divided by expected time."""
        return self.timed.time_us / self.expected.time_us

    @property
    def ratio_max(self) -> float:
        """The ratio above which the time is slow."""
        slack = next(factor for least, factor in SLACK if self.timed.size_bytes >= least)
        # The error is the deviation of the prediction from the measurement, in parts of the latter.
        error_pct = min(max(self.expected.error_pct, SPREAD_PCT), ERROR_MAX_PCT)
        return slack / (1 - error_pct / 100)

    @property
    def is_slow(self) -> bool:
        """True if the time is longer than the errors explain."""
        return self.ratio > self.ratio_max

    def to_dict(self) -> dict[str, Any]:
        """Returns it as plain data for JSON."""
        return {
            "collective": self.timed.collective, "size_bytes": self.timed.size_bytes,
            "measured_us": self.timed.time_us, "expected_us": self.expected.time_us,
            "measured_busbw_gb_per_s": self.timed.busbw_gb_per_s,
            "expected_busbw_gb_per_s": self.expected.busbw_gb_per_s,
            "error_pct": self.expected.error_pct, "is_validated": self.expected.is_validated,
            "ratio": self.ratio, "is_slow": self.is_slow,
        }  # fmt: skip


@dataclass
class Diagnosis:
    """The answer about a set of files.

    Attributes:
        files: their names.
        observed: their content.
        machine: name and size of the machine of the expectations. Empty if there is none.
        compared: measured and expected times.
        findings: faults by falling confidence, and then unusual facts.
        possibilities: causes that would explain slow times, if no line states one. None of them is
            an accusation.
        notes: sentences about the comparison.
        hosts: number of hosts of the expectations.
        ranks_per_host: number of ranks on each of them.
        drawing: the machine as SVG, or an empty string.
    """

    files: list[str]
    observed: Observed
    machine: str = ""
    compared: list[Compared] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    possibilities: list[Finding] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    hosts: int = 1
    ranks_per_host: int | None = None
    drawing: str = ""

    @property
    def faults(self) -> list[Finding]:
        """The accusations."""
        return [each for each in self.findings if each.is_fault]

    @property
    def is_healthy(self) -> bool:
        """True if nothing is accused."""
        return not self.faults

    def to_dict(self) -> dict[str, Any]:
        """Returns it as plain data for JSON."""
        return {
            "files": self.files, "formats": self.observed.formats, "facts": self.observed.facts,
            "machine": self.machine, "is_healthy": self.is_healthy, "notes": self.notes,
            "findings": [each.to_dict() for each in self.findings],
            "possibilities": [each.to_dict() for each in self.possibilities],
            "rows": [each.to_dict() for each in self.compared],
        }  # fmt: skip


def typical(times: Sequence[Timed]) -> list[Timed]:
    """One time for each collective and size: the median, of up to 48 sizes.

    Args:
        times: measured times.
    """
    groups: dict[tuple[str, int, int | None], list[Timed]] = defaultdict(list)
    for each in times:
        groups[each.collective, each.size_bytes, each.ranks].append(each)
    found = []
    for group in groups.values():
        middle = sorted(group, key=lambda each: each.time_us)[len(group) // 2]
        found.append(replace(middle, time_us=median(each.time_us for each in group)))
    largest = sorted(found, key=lambda each: -each.size_bytes)[:_SIZES_MAX]
    return sorted(largest, key=lambda each: (each.collective, each.size_bytes))


def compare(
    diagnosis: Diagnosis, expect: Callable[[Timed], Expectation | None], times: Sequence[Timed]
) -> None:
    """Adds the comparison of times with their predictions.

    Args:
        diagnosis: gets the rows.
        expect: predicts the time of one row. None if it cannot.
        times: measured times.
    """
    for timed in times:
        expected = expect(timed)
        if expected is not None:
            diagnosis.compared.append(Compared(timed, expected))


def conclude(diagnosis: Diagnosis) -> None:
    """Finds slow sizes, adds the causes that would explain them, and ranks all findings."""
    findings = list(diagnosis.observed.findings)
    slow = _slow(diagnosis.compared)
    stated = [each for each in findings if each.is_fault]
    if slow:
        findings += slow
        if not stated:
            diagnosis.possibilities = _guesses(diagnosis)
    elif diagnosis.compared:
        # Times as expected outweigh a cause that no line states.
        findings = [
            replace(each, is_fault=each.is_fault and each.confidence >= 0.9) for each in findings
        ]
    findings += _too_fast(diagnosis.compared)
    unique = {(each.cause, each.sentence): each for each in findings}
    diagnosis.findings = sorted(
        unique.values(), key=lambda each: (not each.is_fault, -each.confidence)
    )


def _slow(compared: Sequence[Compared]) -> list[Finding]:
    """A finding per collective that is slow from a size on, or at some sizes."""
    findings = []
    by_collective: dict[str, list[Compared]] = defaultdict(list)
    for each in compared:
        by_collective[each.timed.collective].append(each)
    for collective, rows in by_collective.items():
        rows.sort(key=lambda each: each.timed.size_bytes)
        slow = [each for each in rows if each.is_slow]
        # One slow size among fast ones is noise.
        if not slow or (len(slow) == 1 and len(rows) > 2 and not rows[-1].is_slow):
            continue
        worst = max(slow, key=lambda each: each.ratio / each.ratio_max)
        first = _first_of_all_slow(rows)
        where = _some_sizes(slow, rows) if first is None else f"from {_size(first)} on"
        first = first or slow[0]
        sentence = (
            f"{collective} is slow {where}: at {_size(worst)} "
            f"{worst.timed.busbw_gb_per_s:.1f} GB/s, "
            f"expected {worst.expected.busbw_gb_per_s:.1f} GB/s"
        )
        sureness = 0.95 if worst.ratio > 2 * worst.ratio_max else 0.8
        if not worst.expected.is_validated:
            sureness -= 0.1
        lines = (first.timed.evidence, worst.timed.evidence)
        findings.append(
            Finding("slow", sentence, lines if first is not worst else lines[:1], sureness)
        )
    return findings


def _size(row: Compared) -> str:
    return format_size(row.timed.size_bytes)


def _some_sizes(slow: Sequence[Compared], rows: Sequence[Compared]) -> str:
    return f"at {len(slow)} of {len(rows)} sizes ({_size(slow[0])} to {_size(slow[-1])})"


def _too_fast(compared: Sequence[Compared]) -> list[Finding]:
    """An unusual fact if the job is faster than the machine can be."""
    fast = [
        each for each in compared
        if each.ratio * (1 + each.expected.error_pct / 100) * FAST_SLACK < 1
    ]  # fmt: skip
    if not fast:
        return []
    most = min(fast, key=lambda each: each.ratio)
    sentence = (
        f"{most.timed.collective} of {format_size(most.timed.size_bytes)} is {1 / most.ratio:.1f} "
        "times as fast as expected: check that the machine is the right one"
    )
    return [Finding("unusual", sentence, (most.timed.evidence,), 0.5, False)]


def _first_of_all_slow(rows: Sequence[Compared]) -> Compared | None:
    """The smallest size from which all sizes are slow. None if the largest is not."""
    first = None
    for each in reversed(rows):
        if not each.is_slow:
            break
        first = each
    return first


def _guesses(diagnosis: Diagnosis) -> list[Finding]:
    """Causes that fit the share of the expected bandwidth. No line states any of them."""
    share = 1 / max(each.ratio for each in diagnosis.compared if each.is_slow)
    if diagnosis.hosts == 1:
        where, guesses = "within one host", _IN_A_HOST
    elif share < SOCKET_SHARE:
        where, guesses = "between hosts", _FAR_BELOW
    else:
        where, guesses = "between hosts", _BELOW
    sentence = f"at {share:.0%} of the expected bandwidth {where}"
    return [
        Finding(cause, f"{sentence}, {why}", (), confidence, False)
        for cause, why, confidence in guesses
    ]


_IN_A_HOST = (
    ("p2p_off", "data may go through host memory", 0.4),
    ("pcie_link", "a PCIe link may be narrow", 0.3),
    ("slow_rank", "one GPU may be slow", 0.2),
)
_FAR_BELOW = (
    ("sockets", "which TCP sockets would give", 0.5),
    ("gdr_off", "data may go through host memory", 0.3),
    ("adapter_missing", "most adapters may be unused", 0.3),
)
_BELOW = (
    ("gdr_off", "data may go through host memory", 0.4),
    ("adapter_missing", "adapters may be unused", 0.4),
    ("wrong_rail", "rails may be crossed", 0.2),
)
