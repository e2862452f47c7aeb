# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""`towpath validate`: holds a table of measurements against the model, row by row.

A kind of table is known by its columns. It says how to name a row's group, what was measured, and
which simulation answers the same question. A row that cannot be simulated stays in the result and
says why.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.console import Console
from rich.progress import track

from towpath import _core, machines, simulated
from towpath.errors import ConfigError, quoted
from towpath.input_file import read_text
from towpath.machine_spec import GPUS_PER_HOST_MAX, HOSTS_MAX
from towpath.run_command import channels_to_fill
from towpath.schedule_source import ScheduleSource
from towpath.simulated import Call, Place
from towpath.sizes import SIZE_BYTES_MAX

if TYPE_CHECKING:
    from pathlib import Path


class CannotSimulate(ValueError):
    """Why a row has no prediction, in one sentence."""


@dataclass(frozen=True)
class TableKind:
    """One kind of table: how it is recognised and what answers its rows."""

    name: str
    columns: frozenset[str]
    unit: str
    group: Callable[[dict[str, str]], str]
    measured: Callable[[dict[str, str]], float]
    predict: Callable[[dict[str, str], str | None], float]


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
        for group in self.groups:
            lines += ["", group["group"], f"{'':>14} predicted   measured   error"]
            lines += [_row_text(row) for row in self.rows if row["group"] == group["group"]]
        lines += ["", "absolute error         rows   median      p90    worst   not simulated"]
        for group in self.groups:
            numbers = [group[name] for name in ("median_pct", "p90_pct", "worst_pct")]
            shown = "".join(f"{'-' if n is None else f'{n:.1f}%':>9}" for n in numbers)
            skipped = group["rows"] - group["predicted"]
            lines.append(f"  {group['group'][:60]}")
            lines.append(f"{'':>20} {group['rows']:>6}{shown} {skipped:>15}")
        return "\n".join(lines)


def _row_text(row: dict[str, Any]) -> str:
    label = row.get("size_bytes", "")
    measured = f"{row['measured']:>10.2f}" if row["measured"] is not None else f"{'-':>10}"
    if row["predicted"] is None:
        return f"{label:>14} {'-':>9} {measured}   {row['error']}"
    error = f"{row['error_pct']:+7.1f}%" if row["error_pct"] is not None else "      -"
    return f"{label:>14} {row['predicted']:>9.2f} {measured} {error}"


def validate_table(path: Path, machine: str | None = None) -> Validation:
    """Simulates every row of a table and compares.

    Args:
        path: a CSV file with a header line.
        machine: simulate on this one instead of what the rows say.

    Raises:
        ConfigError: the file is no table of a known kind, or there is no such machine.
    """
    if machine is not None:
        machines.load(machine)
    rows, columns = _read(path)
    kind = next((kind for kind in KINDS if kind.columns <= columns), None)
    if kind is None:
        known = "; ".join(f"{kind.name}: {', '.join(sorted(kind.columns))}" for kind in KINDS)
        problem = f"its columns fit no known table; known are {known}"
        raise ConfigError(problem, file=str(path), line=1)
    console = Console(stderr=True)
    shown = track(
        rows, "validating", console=console, transient=True, disable=not console.is_terminal
    )
    done = [_validate_row(kind, row, machine) for row in shown]
    return Validation(kind.name, kind.unit, done, _groups(done))


def _read(path: Path) -> tuple[list[dict[str, str]], set[str]]:
    reader = csv.DictReader(io.StringIO(read_text(path), newline=""), strict=True)
    rows: list[dict[str, str]] = []
    try:
        for row in reader:
            if None in row or None in row.values():
                problem = f"a row has not the {len(reader.fieldnames or [])} fields of the header"
                raise ConfigError(problem, file=str(path), line=reader.line_num)
            rows.append(row)
    except csv.Error as error:
        raise ConfigError(str(error), file=str(path), line=max(reader.line_num, 1)) from None
    return rows, set(reader.fieldnames or [])


def _validate_row(kind: TableKind, row: dict[str, str], machine: str | None) -> dict[str, Any]:
    result: dict[str, Any] = dict(row)
    result |= {"group": kind.group(row), "predicted": None, "measured": None, "error_pct": None}
    try:
        result["measured"] = kind.measured(row)
        result["predicted"] = kind.predict(row, machine)
        result["error_pct"] = 100 * (result["predicted"] / result["measured"] - 1)
    except (ValueError, _core.TransportError) as error:
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


_WHOLE = re.compile(r"[0-9]{1,15}")
_REAL = re.compile(r"[0-9]{1,15}(\.[0-9]{0,15})?([eE][-+]?[0-9]{1,2})?")


def _whole(row: dict[str, str], column: str, most: int) -> int:
    text = row[column].strip()
    if _WHOLE.fullmatch(text) is None or not 1 <= int(text) <= most:
        raise CannotSimulate(f"{column} is {quoted(text)}; allowed are whole numbers 1 to {most}")
    return int(text)


def _time_us(row: dict[str, str], column: str) -> float:
    text = row[column].strip()
    if _REAL.fullmatch(text) is None or float(text) <= 0:
        raise CannotSimulate(f"{column} is {quoted(text)}; it must be a number above 0")
    return float(text)


@lru_cache(maxsize=8)
def _place(machine: str, hosts: int) -> tuple[Place, int]:
    spec = machines.load(machine, hosts=hosts)
    return Place(spec.build()), channels_to_fill(spec)


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


def _predict_all_reduce(row: dict[str, str], machine: str | None) -> float:
    """The fastest of what NCCL may choose from: algorithms x protocols, out of place."""
    hosts = _whole(row, "nodes", HOSTS_MAX)
    gpus = _whole(row, "gpus", HOSTS_MAX * GPUS_PER_HOST_MAX)
    size_bytes = _whole(row, "size_bytes", SIZE_BYTES_MAX)
    algorithms, least_channels = _settings(row["config"])
    place, channels = _place(machine or "dgx-h100", hosts)
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
    return min(times_us)


KINDS = [
    TableKind(
        name="all_reduce on GPU clusters",
        columns=frozenset({"nodes", "gpus", "config", "size_bytes", "time_us_out_of_place"}),
        unit="us",
        group=lambda row: f"{row['nodes']} nodes, {row['gpus']} GPUs, {row['config']}",
        measured=lambda row: _time_us(row, "time_us_out_of_place"),
        predict=_predict_all_reduce,
    ),
]
