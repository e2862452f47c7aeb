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
from inside.reproduce import execute, judge, perform, statements

pytestmark = pytest.mark.long


class Mutation(NamedTuple):
    """A changed value of a description, and the statement whose verdict must change."""

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
    Mutation("wormhole", "router.pool_flits", 1024, "001", 3),
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
# What else has to change: a pool that each VC may fill, so that no VC takes room from another, and
# large pages, which a host without an IOMMU needs.
WITH = {
    "router.pool_flits": {"router.pool_flits_per_vc_max": 120},
    "memory.has_iommu": {"memory.has_hugepages": True},
}
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


def verdict(mutation: Mutation, *, is_kept: bool):
    """The verdict on the row of a mutation, of a kept result or of a new run."""
    statement = statements(mutation.document)[mutation.row - 1]
    name = statement.run
    return judge(statement, execute([name]).results[name] if is_kept else perform(name))


def test_removing_a_mechanism_turns_the_verdict_that_rests_on_it(tmp_path, monkeypatch):
    turned = []
    stayed = []
    for number, mutation in enumerate(MUTATIONS):
        before = verdict(mutation, is_kept=True)
        assert before.verdict in ("same", "within", "off, in DEVIATIONS"), (mutation, before)
        folder = tmp_path / str(number)
        folder.mkdir()
        mutate(folder, mutation)
        with monkeypatch.context() as patch:
            patch.setattr(shipped, "folder", lambda folder=folder: folder)
            forget()
            found = verdict(mutation, is_kept=False)
        forget()
        assert found.ours is not None, f"{mutation} ends the run: {found.reason}"
        has_turned = found.verdict != before.verdict
        (turned if has_turned else stayed).append((mutation, before.ours, found.ours))
        where = f"{mutation.document}#{mutation.row} {mutation.machine} {mutation.path}"
        change = f"{before.verdict} {before.ours} -> {found.verdict} {found.ours}"
        print(f"{where}: {change}", flush=True)
    assert len(MUTATIONS) == 20
    assert len(turned) >= TURNED_MIN, stayed
