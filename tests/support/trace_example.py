# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Small NoC traces for tests, one event per line as tools write them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

BEGIN = 4_000_000_000


def zone(core, processor, cycle, name=None, phase="begin") -> dict[str, Any]:
    return {
        "proc": processor, "zone": name or f"{processor}-KERNEL", "zone_phase": phase,
        "sx": core[0], "sy": core[1], "timestamp": BEGIN + cycle,
    }  # fmt: skip


def flush(core, cycle) -> dict[str, Any]:
    return zone(core, "", cycle, "PROFILER-NOC-QUICK-SEND")


def event(
    core, processor, cycle, kind, to=(-1, -1), *, size_bytes=0, noc=0, **fields
) -> dict[str, Any]:
    return {
        "proc": processor, "noc": f"NOC_{noc}", "vc": -1, "sx": core[0], "sy": core[1],
        "dx": to[0], "dy": to[1], "num_bytes": size_bytes, "type": kind,
        "timestamp": BEGIN + cycle,
    } | fields  # fmt: skip


def write(path: Path, events: list[dict[str, Any]]) -> Path:
    """The list with one event per line, the first on line 2."""
    path.write_text("[\n" + ",\n".join(map(json.dumps, events)) + "\n]\n")
    return path


def every_kind() -> list[dict[str, Any]]:
    """Two cores, and an event of every kind that a trace may hold."""
    core, other = (1, 1), (2, 3)
    corner = {"mcast_start_x": 4, "mcast_start_y": 3, "mcast_end_x": 1, "mcast_end_y": 2}
    return [
        zone(core, "BRISC", 0),
        event(core, "BRISC", 100, "WRITE_", other, size_bytes=2048, noc=1, vc=1),
        event(core, "BRISC", 200, "WRITE_WITH_TRID", other, size_bytes=64, noc=1),
        event(core, "BRISC", 300, "WRITE_SET_STATE", other, size_bytes=512, noc=1),
        event(core, "BRISC", 400, "WRITE_WITH_STATE", (0, 0), size_bytes=0, noc=1),
        event(core, "BRISC", 450, "WRITE_WITH_TRID_SET_STATE", other, size_bytes=0, noc=1),
        event(core, "BRISC", 500, "WRITE_WITH_TRID_WITH_STATE", (0, 0), size_bytes=96, noc=1),
        event(core, "BRISC", 600, "WRITE_INLINE", other, size_bytes=4, noc=1),
        event(core, "BRISC", 700, "WRITE_MULTICAST", size_bytes=1024, noc=1, vc=4, **corner),
        event(core, "BRISC", 800, "WRITE_FLUSH", noc=1),
        event(core, "BRISC", 900, "WRITE_BARRIER_START", noc=1),
        event(core, "BRISC", 1500, "WRITE_BARRIER_END", noc=1),
        event(core, "BRISC", 1600, "SEMAPHORE_INC", other, noc=1),
        event(core, "BRISC", 1700, "ATOMIC_BARRIER", noc=1),
        zone(core, "BRISC", 1900, phase="end"),
        zone(core, "NCRISC", 50),
        event(core, "NCRISC", 150, "READ", other, size_bytes=4096),
        event(core, "NCRISC", 300, "READ_SET_STATE", other, size_bytes=256),
        event(core, "NCRISC", 400, "READ_WITH_STATE", (0, 0), size_bytes=0),
        flush(core, 500),
        zone(core, "NCRISC", 50),
        event(core, "NCRISC", 650, "READ_DRAM_SHARDED_SET_STATE", (0, 1), size_bytes=32),
        event(core, "NCRISC", 700, "READ_SET_TRID"),
        event(core, "NCRISC", 800, "READ_DRAM_SHARDED_WITH_STATE", (0, 0), size_bytes=64),
        event(core, "NCRISC", 900, "READ_BARRIER_WITH_TRID"),
        event(core, "NCRISC", 1000, "READ_BARRIER_START"),
        event(core, "NCRISC", 1080, "READ_BARRIER_END"),
        event(core, "NCRISC", 1090, "SEMAPHORE_SET"),
        event(core, "NCRISC", 1100, "FULL_BARRIER"),
        zone(other, "BRISC", 30),
        event(other, "BRISC", 140, "SEMAPHORE_WAIT"),
    ]
