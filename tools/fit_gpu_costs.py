# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Fits the costs of thread blocks to a table of NCCL's times in one host, and predicts rows that
the fit has not seen.

    tools/fit_gpu_costs.py dgx-h100 ../shared/data/nccl_fit.csv --machine h100_sxm \
        --without all_gather --errors out.csv

The table has the columns machine, nccl, op, gpus, size_bytes and time_us. Coordinate descent on the
mean of the errors starts from round values, not from those of the machine's file, so that a fit
without a collective knows nothing of it. Printed: each cost, then the errors of both parts.
"""

from __future__ import annotations

import argparse
import csv
import math
from dataclasses import dataclass
from pathlib import Path

from towpath.collectives import simulated
from towpath.collectives.call import Call
from towpath.collectives.launch import THREADS, launched
from towpath.collectives.nccl.imitation import Imitation, Library
from towpath.collectives.nccl.sends import all_to_all_source
from towpath.collectives.nccl_itself.table import nearest_release
from towpath.collectives.places import GpuPlace
from towpath.schedules.words import collective_named
from towpath.specs import catalogue
from towpath.specs.machine_spec import MachineSpec
from towpath.specs.override import with_settings

# Start and step of each cost; a step is a share.
START = {
    "gpu_cost.launch_by_threads_ns": 6000.0,
    "gpu_cost.in_switch_stage_ns": 3000.0,
    "gpu_cost.in_switch_copy_rate_gb_per_s": 30.0,
    "gpu_cost.simple.send_overhead_ns": 3000.0,
    "gpu_cost.ll.block_rate_gb_per_s": 6.0,
    "gpu_cost.ll.overlap_ns": 200.0,
    "gpu_cost.ll.receive_overhead_ns": 400.0,
    "gpu_cost.ll128.block_rate_gb_per_s": 12.0,
    "gpu_cost.ll128.receive_overhead_ns": 2000.0,
}
_STEP = 0.3
_ROUNDS = 4


@dataclass(frozen=True)
class Measured:
    """A row of the table, and the call that NCCL makes there."""

    collective: str
    gpus: int
    size_bytes: int
    time_us: float
    call: Call


def rows_of(spec: MachineSpec, table: Path, machine: str) -> list[Measured]:
    """The rows of a machine."""
    found = []
    imitations: dict[int, Imitation] = {}
    with table.open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            if row["machine"] != machine:
                continue
            gpus, size_bytes = int(row["gpus"]), int(row["size_bytes"])
            collective = collective_named(row["op"])
            if gpus not in imitations:
                library = Library("nccl", release=nearest_release(row["nccl"]))
                imitations[gpus] = Imitation(spec, library, gpus)
            library = imitations[gpus]
            if collective == "all_to_all":
                source = all_to_all_source(spec, gpus, library.channels, size_bytes)
            else:
                choice = library.launch(collective, size_bytes)
                source = library.source(collective, size_bytes, choice)
            call = Call(source.schedule())
            found.append(Measured(collective, gpus, size_bytes, float(row["time_us"]), call))
    return found


def errors_of(spec: MachineSpec, costs: dict[str, float], rows: list[Measured]) -> list[float]:
    """The logarithm of predicted over measured for each row."""
    changed = with_settings(spec, [f"{path}={value:.4g}" for path, value in costs.items()])
    core = launched(changed, THREADS).build()
    found = []
    for row in rows:
        place = GpuPlace(core, tuple(range(row.gpus)))
        found.append(math.log(simulated.time_us(place, row.call, row.size_bytes) / row.time_us))
    return found


def loss_of(errors: list[float]) -> float:
    """Outliers of a table, such as rows beside another job, count less than their square."""
    return sum(min(abs(error), 0.35) + 2 * min(error * error, 0.25) for error in errors)


def fitted(spec: MachineSpec, rows: list[Measured]) -> dict[str, float]:
    """The costs with the least loss."""
    best = dict(START)
    least = loss_of(errors_of(spec, best, rows))
    share = dict.fromkeys(best, _STEP)
    for _ in range(_ROUNDS):
        for path in best:
            is_better = True
            while is_better:
                is_better = False
                for factor in (1 + share[path], 1 / (1 + share[path])):
                    other = {**best, path: best[path] * factor}
                    loss = loss_of(errors_of(spec, other, rows))
                    if loss < least * (1 - 1e-6):
                        best, least, is_better = other, loss, True
                        break
            share[path] /= 2
    return best


def main() -> None:
    """Fits, and prints costs and errors."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name", help="the machine whose file has all other costs")
    parser.add_argument("table", type=Path)
    parser.add_argument("--machine", required=True, help="the machine's name in the table")
    parser.add_argument("--without", help="a collective that the fit leaves out")
    parser.add_argument("--errors", type=Path, help="a file for the errors of the rows left out")
    options = parser.parse_args()
    spec = catalogue.load(options.name, hosts=1)
    rows = rows_of(spec, options.table, options.machine)
    seen = [row for row in rows if row.collective != options.without]
    costs = fitted(spec, seen)
    for path, value in costs.items():
        print(f"{path} {value:.4g}")
    for words, part in (("fitted", seen), ("left out", [row for row in rows if row not in seen])):
        if not part:
            continue
        errors = errors_of(spec, costs, part)
        sizes = sorted(abs(math.expm1(error)) for error in errors)
        print(
            f"{words}: {len(part)} rows, median {sizes[len(sizes) // 2]:.1%}, "
            f"90th percentile {sizes[int(0.9 * (len(sizes) - 1))]:.1%}"
        )
        if words == "left out" and options.errors is not None:
            with options.errors.open("w", encoding="utf-8") as file:
                for row, error in zip(part, errors, strict=True):
                    name = row.call.schedule.name
                    file.write(
                        f"{options.name},1,{row.collective},{row.gpus},{name},{row.size_bytes},"
                        f"{error:.5f}\n"
                    )


if __name__ == "__main__":
    main()
