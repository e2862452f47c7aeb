# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Stands in for the chip and its simulator where a test is about what goes in and comes out.

Its network is not one: every transaction is back LATENCY cycles after its issue, whoever else is
under way.
"""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np

LATENCY = 1000
CALL = 20
CALLS = (
    "write", "read", "write_with_state", "read_with_state", "multicast", "inline_write", "atomic",
)  # fmt: skip
POLL = 8
WAITS = ("x", "y", "noc", "to_x", "to_y", "issued", "started", "sent", "received", "completed")


class TrafficStep:
    def __init__(self, kind, **fields):
        self.kind = kind
        self.fields = fields

    def __getattr__(self, name):
        defaults = {"count": 1, "size_bytes": 0, "cycle": 0}
        return self.fields.get(name, defaults[name]) if name in defaults else self.fields[name]

    def __repr__(self):
        return f"{self.kind} {self.fields}"

    def __eq__(self, other):
        return (self.kind, self.fields) == (other.kind, other.fields)


class TrafficProgram:
    def __init__(self, *, core, noc=0, start_cycle=0, steps=()):
        self.core, self.noc, self.start_cycle, self.steps = core, noc, start_cycle, list(steps)


def run_traffic(chip, programs, *, seed=1, records_requests=False, link_sample_cycles=0):
    step_begins, step_ends, waits, flit_hops = [], [], [], 0
    for program in programs:
        now, done = program.start_cycle, 0
        begins, ends = [], []
        for step in program.steps:
            begins.append(now)
            if step.kind == "work":
                now += step.cycle
            elif step.kind == "wait_until":
                now = max(now, step.cycle)
            elif step.kind.endswith("_barrier"):
                now = max(now + POLL, done)
            else:
                now += CALL * step.count
                done = now + LATENCY
                place = (*program.core, program.noc, *step.to)
                waits.append((*place, now - CALL, now - 1, now, now + LATENCY // 2, done))
                flit_hops += step.count * -(-step.size_bytes // 32)
            ends.append(now)
        step_begins.append(begins)
        step_ends.append(ends)
    begin_cycles = [program.start_cycle for program in programs]
    end_cycles = [ends[-1] for ends in step_ends]
    cycles = max(end_cycles)
    waits.sort(key=lambda wait: wait[WAITS.index("issued")])
    columns = np.array(waits if records_requests else [], dtype=np.int64).reshape(-1, len(WAITS))
    samples = -(-cycles // link_sample_cycles) if link_sample_cycles else 0
    # Half of the time a flit a cycle on tile 1's second port of NoC 0; counts never go down.
    link_samples = np.zeros((samples, 2, chip.width * chip.height * 4), dtype=np.int64)
    link_samples[:, 0, 5] = np.arange(1, samples + 1) * (link_sample_cycles // 2)
    return SimpleNamespace(
        begin_cycles=begin_cycles,
        end_cycles=end_cycles,
        step_begin_cycles=step_begins,
        step_end_cycles=step_ends,
        flit_hops=flit_hops,
        cycles=cycles,
        link_samples=link_samples,
        waits={name: columns[:, place] for place, name in enumerate(WAITS)},
    )


def install(monkeypatch, *modules):
    """Puts the stand-ins where the modules look for the simulator."""

    stand_in = SimpleNamespace(
        TrafficStep=TrafficStep, TrafficProgram=TrafficProgram, run_traffic=run_traffic,
        call_cycles=lambda chip: dict.fromkeys(CALLS, CALL),
    )  # fmt: skip
    for module in modules:
        monkeypatch.setattr(module, "_core", stand_in)
    return stand_in


def chip(**changes):
    """A Wormhole: columns 1 to 4 and 6 to 9, rows 1 to 5 and 7 to 9 hold workers."""
    columns, rows = (1, 2, 3, 4, 6, 7, 8, 9), (1, 2, 3, 4, 5, 7, 8, 9)
    figures = {
        "name": "example", "architecture": "wormhole_b0",
        "width": 10, "height": 12, "clock_mhz": 1000.0,
        "workers": [(x, y) for y in rows for x in columns],
        "worker_columns": len(columns), "worker_rows": len(rows),
        "worker": lambda x, y: (columns[x], rows[y]),
        "tiles": [SimpleNamespace(name="worker")] * 120,
        "dram_groups": [
            [(0, 0), (0, 1), (0, 11)], [(0, 5), (0, 6), (0, 7)], [(5, 0), (5, 1), (5, 11)],
            [(5, 2), (5, 9), (5, 10)], [(5, 3), (5, 4), (5, 8)], [(5, 5), (5, 6), (5, 7)],
        ],
        "dram": {"channels_per_group": 2},
        "router": {"flit_bytes": 32, "packet_data_flits_max": 256},
    }  # fmt: skip
    return SimpleNamespace(**(figures | changes))


class Spec:
    """The part of a chip's spec that replaying asks for."""

    name = "example"
    grid = SimpleNamespace(width=10, height=12)

    def __init__(self, harvested=(5, 11)):
        self.harvesting = SimpleNamespace(axis="rows", harvested=tuple(harvested))

    def with_harvested(self, lines):
        return Spec(lines)

    def build(self):
        return chip(harvested=self.harvesting.harvested)
