# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Study of virtual channels on a chip: checks the options, and returns rows and findings."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from towpath.errors import ConfigError
from towpath.names import unknown
from towpath.studies import noc_traffic
from towpath.studies.noc_findings import Finding, findings
from towpath.studies.noc_study import (
    PAGES_MAX,
    PATTERNS,
    VCS_MAX,
    StudyRequest,
    digest_of,
    flit_hops,
    measure_point,
    study_parts,
)
from towpath.studies.noc_traffic import ChipShape
from towpath.studies.sweep import Point, SweepOptions, run_sweep

if TYPE_CHECKING:
    from towpath.specs.chip_spec import ChipSpec

TRANSACTIONS_MAX = 1_000_000


@dataclass(frozen=True)
class StudyPlan:
    """Options of a study. The arguments of `Chip.study` describe the fields."""

    sizes_bytes: tuple[int, ...]
    patterns: Sequence[str] | None = None
    nocs: tuple[int, ...] = (0, 1)
    vcs: tuple[int, ...] = (1, 2, 3, 4)
    transactions: int = 256
    workers: tuple[int, int] | None = None
    follow_ups: bool = True
    seed: int = 1
    has_study: bool = True


@dataclass(frozen=True)
class StudyWork:
    """Amount of work that a study simulates.

    Attributes:
        points: number of measured points.
        flit_hops: flits times the links that they cross, over all points.
        reduced: points with fewer transactions per destination than requested, to fit the budget.
    """

    points: int
    flit_hops: int
    reduced: int


@dataclass(frozen=True, repr=False)
class NocStudy:
    """Result of a study of virtual channels.

    Attributes:
        chip: name of the chip.
        parts: the measured points by part of the study; each row has the point and its result.
        findings: verdicts, each with the rows that support it.
    """

    chip: str
    parts: dict[str, list[dict[str, Any]]]
    findings: list[Finding]

    def to_dict(self) -> dict[str, Any]:
        """Returns it as plain data for JSON.

        Returns:
            The attributes.
        """
        return asdict(self)

    def __repr__(self) -> str:
        rows = sum(map(len, self.parts.values()))
        return f"NocStudy({self.chip!r}, {rows} rows, {len(self.findings)} findings)"


def work_of(spec: ChipSpec, plan: StudyPlan) -> StudyWork:
    """Computes the amount of work of a study.

    Raises:
        ConfigError: an option is not possible on the chip.
    """
    shape, parts = _parts(spec, plan)
    points = [point for part in parts.values() for point in part]
    unique = list({json.dumps(point): point for point in points}.values())
    reduced = sum(
        point.get("per_destination", 0) < point.get("asked_per_destination", 0) for point in unique
    )
    return StudyWork(len(unique), sum(flit_hops(shape, point) for point in unique), reduced)


def run_study(
    spec: ChipSpec,
    plan: StudyPlan,
    file: str | os.PathLike[str] | None = None,
    options: SweepOptions | None = None,
) -> NocStudy:
    """Measures all points of a study.

    Args:
        spec: the chip.
        plan: the points to measure.
        file: file for the measurements, one line of JSON per point; a later call continues from it.
        options: where the simulations run.

    Raises:
        ConfigError: an option is not possible on the chip.
    """
    shape, asked = _parts(spec, plan)
    points = [point for part in asked.values() for point in part]
    spec_json = spec.model_dump_json()
    with tempfile.TemporaryDirectory(prefix="towpath-") as folder:
        results = iter(
            run_sweep(
                partial(measure_point, spec_json),
                points,
                Path(folder, "points.jsonl") if file is None else Path(file),
                digest=digest_of(spec_json),
                cost=partial(flit_hops, shape),
                options=options,
            )
        )
    parts = {part: [{**point, **next(results)} for point in own] for part, own in asked.items()}
    return NocStudy(spec.name, parts, findings(parts, shape))


def _parts(spec: ChipSpec, plan: StudyPlan) -> tuple[ChipShape, dict[str, list[Point]]]:
    shape = _cropped(noc_traffic.shape_of(spec), plan.workers)
    return shape, study_parts(shape, _request(shape, plan))


def _request(shape: ChipShape, plan: StudyPlan) -> StudyRequest:
    patterns = PATTERNS if plan.patterns is None else tuple(plan.patterns)
    for pattern in patterns:
        if pattern not in PATTERNS:
            raise unknown("patterns names", pattern, PATTERNS)
    flit_bytes, most_bytes = shape.flit_bytes, PAGES_MAX * shape.flit_bytes
    for size_bytes in plan.sizes_bytes:
        if size_bytes % flit_bytes or size_bytes > most_bytes:
            raise ConfigError(
                f"size_bytes names {size_bytes} bytes; it must be whole flits of {flit_bytes} "
                f"bytes, up to {most_bytes}"
            )
    _check_numbers("nocs", plan.nocs, 0, 1)
    _check_numbers("vcs", plan.vcs, 1, VCS_MAX)
    _check_numbers("transactions", (plan.transactions,), 1, TRANSACTIONS_MAX)
    return StudyRequest(
        patterns=patterns,
        sizes_bytes=tuple(sorted(set(plan.sizes_bytes))),
        nocs=plan.nocs,
        vcs=plan.vcs,
        transactions=plan.transactions,
        has_study=plan.has_study,
        has_follow_ups=plan.follow_ups,
        seed=plan.seed,
    )


def _check_numbers(name: str, numbers: Sequence[int], least: int, most: int) -> None:
    for number in numbers:
        if not least <= number <= most:
            raise ConfigError(f"{name} has {number}; it must be {least} to {most}")
    if not numbers:
        raise ConfigError(f"{name} is empty; it must have at least one of {least} to {most}")


def _cropped(shape: ChipShape, workers: tuple[int, int] | None) -> ChipShape:
    if workers is None:
        return shape
    columns, rows = workers
    fits = 1 <= columns <= shape.columns and 1 <= rows <= shape.rows
    if not fits or columns * rows < 2:
        raise ConfigError(
            f"workers is {columns} x {rows}; it must be two workers or more, up to the "
            f"{shape.columns} x {shape.rows} of {shape.name}"
        )
    return shape.cropped(columns, rows)
