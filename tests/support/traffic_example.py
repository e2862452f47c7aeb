# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Shapes of chips and a simulator of traffic that knows no network, for tests of the NoC study."""

from types import SimpleNamespace
from typing import NamedTuple

import numpy as np

from inside import _core
from inside.noc import ChipShape, Coordinate, noc_study, noc_traffic

WORMHOLE = ChipShape(
    name="wormhole", width=10, height=12, columns=8,
    workers=tuple(
        Coordinate(x, y) for y in (1, 2, 3, 4, 7, 8, 9, 10) for x in (1, 2, 3, 4, 6, 7, 8, 9)
    ),
    flit_bytes=32, packet_data_flits_max=256, pool_flits=48, pool_flits_per_vc_max=15,
    dram=(Coordinate(0, 1), Coordinate(5, 1)), ethernet=(Coordinate(9, 0), Coordinate(1, 6)),
)  # fmt: skip

ISSUE_CYCLES = 20
LATENCY_CYCLES = 100


class _Step(NamedTuple):
    kind: str
    fields: dict


def transactions(steps):
    """(kind, to, VC, size) of every transaction of some steps, as the simulator reads them."""
    return [
        (step.kind, step.fields["to"], step.fields["first_vc"] + i % step.fields.get("vcs", 1),
         step.fields["size_bytes"])
        for step in steps
        if "to" in step.fields
        for i in range(step.fields.get("count", 1))
    ]  # fmt: skip


def run_traffic(chip, programs, *, seed=1, records_requests=False):
    """Every program by itself: a cycle per flit after the issue, then a fixed latency."""
    ends, waits = [], []
    for program in programs:
        now = 0
        for step in program.steps:
            if step.kind == "wait_until":
                now = max(now, step.fields["cycle"])
            for _, _, _, size_bytes in transactions([step]):
                waits.append((*program.core, now, now + LATENCY_CYCLES))
                now += ISSUE_CYCLES + -(-size_bytes // chip.flit_bytes)
            if step.kind.endswith("_barrier"):
                now += LATENCY_CYCLES
        ends.append(now)
    columns = np.array(waits if records_requests else [], dtype=np.int64).reshape(-1, 4).T
    return SimpleNamespace(
        begin_cycles=[0] * len(programs), end_cycles=ends, cycles=max(ends), flit_hops=seed,
        waits=dict(zip(("x", "y", "issued", "received"), columns, strict=True)),
    )  # fmt: skip


def install(monkeypatch, shape=WORMHOLE):
    """Lets the product run on that simulator, in this process, with `shape` as its only chip."""
    traffic = {
        "TrafficProgram": SimpleNamespace,
        "TrafficStep": lambda kind, **fields: _Step(kind, fields),
        "run_traffic": run_traffic,
    }
    for name, value in traffic.items():
        monkeypatch.setattr(_core, name, value, raising=False)
    monkeypatch.setattr(noc_traffic, "shape_of", lambda spec: shape)
    monkeypatch.setattr(noc_study, "_chip_of", lambda spec_json: (shape, shape))
