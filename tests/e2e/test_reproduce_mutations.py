# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""A verdict turns if the mechanism that its statement rests on is removed from a description."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from conftest import ROOT
from inside.machines import shipped
from inside.reproduce import judge, perform, statements

pytestmark = pytest.mark.long


class Mutation(NamedTuple):
    """A changed value of a description, and the statement that must no longer hold."""

    machine: str
    path: str
    value: Any
    document: str
    row: int


MUTATIONS = [
    Mutation("wormhole", "ethernet.frame_overhead_bytes", 1, "000", 22),
    Mutation("wormhole", "ethernet.line_rate_gb_per_s", 6.25, "000", 18),
    Mutation("wormhole", "ethernet.path_time_ns", 100.0, "000", 83),
    Mutation("wormhole", "ethernet.delivery_rate_gb_per_s", 1000.0, "000", 78),
    Mutation("wormhole", "router.hop_cycles", 1, "000", 72),
    Mutation("blackhole-host", "core.posted_write_interval_ns", 0.1, "002", 32),
    Mutation("blackhole-host", "driver.window_time_ns", 0.0, "002", 8),
    Mutation("blackhole-host", "link.read_time_ns", 10.0, "002", 39),
    Mutation("blackhole-host", "memory.has_iommu", False, "002", 17),
    Mutation("blackhole", "pcie.writes_outstanding", 1000, "002", 37),
    Mutation("wormhole", "router.pool_flits", 1024, "001", 29),
    Mutation("blackhole", "router.credit_return_cycles", 1, "001", 36),
    Mutation("wormhole", "dram.channel_rate_bytes_per_cycle", 64.0, "001", 42),
    Mutation("dgx-h100", "gpu_cost.kernel.fence_ns", 0, "003", 45),
    Mutation("dgx-h100", "link_types.nvlink.rate_gb_per_s", 185.0, "003", 34),
    Mutation("dgx-h100", "gpu_cost.kernel.queue_pair_poll_ns", 0, "003", 44),
    Mutation("carvnet", "page_walks.probability", 0.0, "004", 30),
    Mutation("carvnet", "interruptions", [], "004", 21),
    Mutation("carvnet", "ring.hop_latency_ns", 0.0, "004", 41),
    Mutation("carvnet", "software.poll_cycles", 50, "004", 51),
]
# A pool that each VC may fill, so that no VC takes room from another.
WITH = {"router.pool_flits": {"router.pool_flits_per_vc_max": 120}}
TURNED_MIN = 19


def mutate(folder: Path, mutation: Mutation) -> None:
    """Copies the descriptions with the changed value."""
    for file in (ROOT / "machines").glob("*.yaml"):
        (folder / file.name).write_text(file.read_text(encoding="utf-8"), encoding="utf-8")
    file = folder / f"{mutation.machine}.yaml"
    data = yaml.safe_load(file.read_text(encoding="utf-8"))
    changes = {mutation.path: mutation.value, **WITH.get(mutation.path, {})}
    for path, value in changes.items():
        *parents, name = path.split(".")
        at = data
        for parent in parents:
            at = at[parent]
        at[name] = value if isinstance(value, list) else {"value": value, "source": "mutation"}
    file.write_text(yaml.safe_dump(data, sort_keys=False), encoding="utf-8")


def forget() -> None:
    """Clears all that the package has kept of descriptions."""
    for name, module in list(sys.modules.items()):
        if name.startswith("towpath"):
            for kept in vars(module).values():
                if hasattr(kept, "cache_clear"):
                    kept.cache_clear()


def verdict(mutation: Mutation):
    statement = statements(mutation.document)[mutation.row - 1]
    return judge(statement, perform(statement.run))


def test_removing_a_mechanism_turns_the_verdict_that_rests_on_it(tmp_path, monkeypatch):
    turned = []
    stayed = []
    for number, mutation in enumerate(MUTATIONS):
        assert verdict(mutation).is_good, mutation
        folder = tmp_path / str(number)
        folder.mkdir()
        mutate(folder, mutation)
        with monkeypatch.context() as patch:
            patch.setattr(shipped, "folder", lambda folder=folder: folder)
            forget()
            found = verdict(mutation)
        forget()
        (stayed if found.is_good else turned).append((mutation, found.ours, found.reason))
    assert len(MUTATIONS) == 20
    assert len(turned) >= TURNED_MIN, stayed
