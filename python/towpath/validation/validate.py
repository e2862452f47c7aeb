# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""`towpath validate`: holds a table of measurements against the model, row by row.

A kind of table is known by its columns. It says how to name a row's group, what was measured, and
which simulation answers the same question. A row that cannot be simulated stays in the result and
says why. Kinds of tables about chips are in validate_noc, validate_ethernet, validate_fabric and
validate_pcie.
"""

from __future__ import annotations

import csv
import io
import re
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from towpath.collectives import simulated
from towpath.collectives.call import Call
from towpath.collectives.gpus import channels_to_fill
from towpath.collectives.places import GpuPlace
from towpath.errors import ConfigError, quoted
from towpath.schedules.schedule_source import ScheduleSource
from towpath.specs import catalogue
from towpath.specs.input_file import read_text
from towpath.specs.machine_spec import GPUS_PER_HOST_MAX, HOSTS_MAX
from towpath.specs.sizes import SIZE_BYTES_MAX
from towpath.studies.parallel import map_in_order, processors
from towpath.validation.ethernet import ETHERNET_KINDS
from towpath.validation.fabric import FABRIC_KINDS
from towpath.validation.noc import NOC_KINDS
from towpath.validation.pcie import PCIE_KINDS
from towpath.validation.table_kind import (
    CannotSimulate,
    Context,
    Half,
    Prediction,
    Row,
    TableKind,
    half_of,
    real,
    whole,
)


@dataclass(frozen=True)
class Validation:
    """Rows as in the table with group, predicted, measured, error_pct; statistics per group."""

    kind: str
    unit: str
    rows: list[dict[str, Any]] = field(default_factory=list)
    groups: list[dict[str, Any]] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        return {"kind": self.kind, "unit": self.unit, "rows": self.rows, "groups": self.groups}

    def text(self) -> str:
        """A table per group, and the summary below."""
        lines = []
        width = max((len(row["label"]) for row in self.rows), default=0)
        width = min(max(width, 14), 60)
        for group in self.groups:
            lines += [
                "",
                group["group"],
                f"{'':>{width}} {'predicted':>12} {'measured':>12}   error",
            ]
            lines += [_row_text(row, width) for row in self.rows if row["group"] == group["group"]]
        lines += ["", "absolute error         rows   median      p90    worst   not simulated"]
        for group in self.groups:
            numbers = [group[name] for name in ("median_pct", "p90_pct", "worst_pct")]
            shown = "".join(f"{'-' if n is None else f'{n:.1f}%':>9}" for n in numbers)
            skipped = group["rows"] - group["predicted"]
            lines.append(f"  {group['group'][:60]}")
            lines.append(f"{'':>20} {group['rows']:>6}{shown} {skipped:>15}")
        return "\n".join(lines)


def _row_text(row: dict[str, Any], width: int) -> str:
    label = f"{row['label'][:width]:>{width}}"
    measured = f"{'-' if row['measured'] is None else format(row['measured'], '.2f'):>12}"
    if row["predicted"] is None:
        return f"{label} {'-':>12} {measured}   {row['error']}"
    error = f"{row['error_pct']:+7.1f}%" if row["error_pct"] is not None else "      -"
    return f"{label} {row['predicted']:>12.2f} {measured} {error}"


def validate_table(
    path: Path,
    machine: str | None = None,
    *,
    half: Half | None = None,
    group: str | None = None,
    processes: int | None = None,
) -> Validation:
    """Simulates every row of a table and compares.

    Args:
        path: a CSV file with a header line.
        machine: simulate on this one instead of what the rows say.
        half: only the rows of this half of the table, see `half_of`.
        group: only the rows in whose group this regular expression is found.
        processes: how many to use for tables that take long; None: one per processor.

    Raises:
        ConfigError: the file is no table of a known kind, there is no such machine, or no row is
            left.
    """
    rows, columns = _read(path)
    kind = next((kind for kind in KINDS if kind.columns <= columns), None)
    if kind is None:
        known = "; ".join(f"{kind.name}: {', '.join(sorted(kind.columns))}" for kind in KINDS)
        problem = f"its columns fit no known table; known are {known}"
        raise ConfigError(problem, file=str(path), line=1)
    if machine is not None:
        kind.check_machine(machine)
    rows = _chosen(kind, rows, half, group, path)
    jobs = [_Job(kind.name, row, Context(machine, path.parent)) for row in rows]
    if not kind.is_slow:
        processes = 1
    done = map_in_order(_validate_row, jobs, "validating", processes or processors())
    return Validation(kind.name, kind.unit, done, _groups(done))


def _chosen(
    kind: TableKind, rows: list[Row], half: Half | None, group: str | None, path: Path
) -> list[Row]:
    if half not in (None, "fit", "check"):
        raise ConfigError(f"--half is {quoted(half)}; allowed are fit and check")
    try:
        pattern = re.compile(group or "")
    except (re.error, RecursionError, OverflowError) as error:
        problem = f"--group is {quoted(group)}, which is no regular expression: {error}"
        raise ConfigError(problem) from None
    chosen = [
        row
        for row in rows
        if (half is None or half_of(kind, row) == half) and pattern.search(kind.group(row))
    ]
    if rows and not chosen:
        raise ConfigError("none of its rows is chosen by --half and --group", file=str(path))
    return chosen


def _read(path: Path) -> tuple[list[Row], set[str]]:
    reader = csv.DictReader(io.StringIO(read_text(path), newline=""), strict=True)
    rows: list[Row] = []
    try:
        for row in reader:
            if None in row or None in row.values():
                problem = f"a row has not the {len(reader.fieldnames or [])} fields of the header"
                raise ConfigError(problem, file=str(path), line=reader.line_num)
            rows.append(row)
    except csv.Error as error:
        raise ConfigError(str(error), file=str(path), line=max(reader.line_num, 1)) from None
    return rows, set(reader.fieldnames or [])


@dataclass(frozen=True)
class _Job:
    """A row for whichever process takes it; kinds hold functions, which do not travel."""

    kind: str
    row: Row
    context: Context


def _validate_row(job: _Job) -> dict[str, Any]:
    kind = next(kind for kind in KINDS if kind.name == job.kind)
    row = job.row
    result: dict[str, Any] = dict(row)
    result |= {"group": kind.group(row), "label": kind.label(row)}
    result |= {"predicted": None, "measured": None, "error_pct": None}
    try:
        result["measured"] = kind.measured(row)
        prediction = kind.predict(row, job.context)
        result["predicted"] = prediction.value
        result["error_pct"] = 100 * (prediction.value / result["measured"] - 1)
        result |= prediction.details
    except (ValueError, RuntimeError) as error:  # it cannot be run, or it hangs
        result["error"] = str(error)
    return result


def _groups(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    groups = []
    for name in dict.fromkeys(row["group"] for row in rows):
        of_group = [row for row in rows if row["group"] == name]
        errors = [abs(row["error_pct"]) for row in of_group if row["error_pct"] is not None]
        groups.append({
            "group": name,
            "rows": len(of_group),
            "predicted": len(errors),
            "median_pct": float(np.median(errors)) if errors else None,
            "p90_pct": float(np.percentile(errors, 90)) if errors else None,
            "worst_pct": max(errors) if errors else None,
        })  # fmt: skip
    return groups


# --- all-reduce on clusters of H100 servers, as nccl-tests prints it -----------------------------


@lru_cache(maxsize=8)
def _place(machine: str, hosts: int) -> tuple[GpuPlace, int]:
    spec = catalogue.load(machine, hosts=hosts)
    return GpuPlace(spec.build()), channels_to_fill(spec)


@lru_cache(maxsize=64)
def _call(algorithm: str, protocol: str, ranks: int, channels: int, hosts: int) -> Call:
    source = ScheduleSource(None, "all_reduce", algorithm, ranks, channels, protocol, 0, hosts)
    return Call(source.schedule())


_CTAS = re.compile(r"[0-9]{1,4}")  # NCCL's word for thread blocks, one per channel


def _settings(config: str) -> tuple[list[str], int | None]:
    """Which algorithms a configuration leaves to choose from, and a least number of channels."""
    algorithms = ["ring_all_reduce", "tree_all_reduce"]
    channels = None
    for word in config.split():
        name, _, value = word.removeprefix("NCCL_").partition("=")
        if name == "ALGO" and value.lower() in ("ring", "tree"):
            algorithms = [f"{value.lower()}_all_reduce"]
        elif name == "ALGO":
            raise CannotSimulate(f"NCCL_ALGO is {quoted(value)}; schedules are for Ring, Tree")
        elif name == "MIN_CTAS" and _CTAS.fullmatch(value):
            channels = int(value)
        elif name == "QPS":
            continue  # queue pairs per connection do not limit the model's adapters
        elif word != "default":
            known = "default, NCCL_ALGO, MIN_CTAS, QPS"
            raise CannotSimulate(f"config has {quoted(word)}; known are {known}")
    return algorithms, channels


# What NCCL was seen to choose on H100 servers: LL for small messages, Simple for large ones, LL128
# for none (nccl-tests#309, where these measurements are from too).
_PROTOCOLS = ("Simple", "LL")
# LL puts twice the bytes on the wire; beyond this it is never the fastest, only slow to simulate.
_LL_BYTES_MAX = 16 << 20


def _predict_all_reduce(row: Row, context: Context) -> Prediction:
    """The fastest of what NCCL may choose from: algorithms x protocols, out of place."""
    hosts = whole(row, "nodes", HOSTS_MAX)
    gpus = whole(row, "gpus", HOSTS_MAX * GPUS_PER_HOST_MAX)
    size_bytes = whole(row, "size_bytes", SIZE_BYTES_MAX)
    algorithms, least_channels = _settings(row["config"])
    place, channels = _place(context.machine or "dgx-h100", hosts)
    if gpus != place.machine.ranks:
        raise CannotSimulate(
            f"{gpus} GPUs on {hosts} nodes; the machine has {place.machine.ranks} on {hosts}"
        )
    times_us = []
    for algorithm in algorithms:
        for protocol in _PROTOCOLS:
            if protocol == "LL" and size_bytes > _LL_BYTES_MAX:
                continue
            call = _call(algorithm, protocol, gpus, max(channels, least_channels or 0), hosts)
            outcome = simulated.invoke(place, call, size_bytes, in_place=False, with_data=False)
            times_us.append(outcome.time_us)
    return Prediction(min(times_us))


KINDS = [
    TableKind(
        name="all_reduce on GPU clusters",
        columns=frozenset({"nodes", "gpus", "config", "size_bytes", "time_us_out_of_place"}),
        unit="us",
        identity=("nodes", "gpus", "config", "size_bytes"),
        group=lambda row: f"{row['nodes']} nodes, {row['gpus']} GPUs, {row['config']}",
        measured=lambda row: real(row, "time_us_out_of_place"),
        predict=_predict_all_reduce,
        label=lambda row: row["size_bytes"],
        check_machine=catalogue.load,
    ),
    *NOC_KINDS,
    *ETHERNET_KINDS,
    *FABRIC_KINDS,
    *PCIE_KINDS,
]
