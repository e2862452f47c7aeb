# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Traffic that waits forever ends in a DeadlockError."""

import pytest

from inside import _core
from inside.machines import shipped
from towpath import DeadlockError

LARGE = 8192  # a whole packet: longer than the buffers on its way


def ring_traffic(columns: int) -> list[_core.TrafficProgram]:
    """Every worker of a row writes half-way round to another, without an end to free its links."""
    return [
        _core.TrafficProgram(
            core=(x, 1),
            steps=[
                _core.TrafficStep("write", to=((x + 2) % columns, 1), size_bytes=LARGE, count=20),
                _core.TrafficStep("write_barrier"),
            ],
        )
        for x in range(columns)
    ]


def row_chip(has_dateline: bool) -> _core.Chip:
    """Wormhole's figures on a row of workers."""
    text = shipped.chip("wormhole").model_dump(mode="json")
    text["grid"].update(width=4, height=3)
    text["tiles"] = {
        "source": "chosen",
        "worker": ["0-1", "1-1", "2-1", "3-1"],
        "router_only": [f"{x}-{y}" for x in range(4) for y in (0, 2)],
    }
    text["harvesting"] = {"axis": "rows", "harvested": [], "source": "chosen"}
    text["router"]["has_dateline"] = has_dateline
    return type(shipped.chip("wormhole")).model_validate(text).build()


def test_traffic_round_a_ring_ends_with_a_dateline():
    result = _core.run_traffic(row_chip(has_dateline=True), ring_traffic(4))
    assert min(result.end_cycles) > 20 * LARGE // 32


def test_traffic_round_a_ring_without_a_dateline_is_a_deadlock():
    with pytest.raises(DeadlockError, match=r"4 of 4 traffic programs .*: deadlock of "):
        _core.run_traffic(row_chip(has_dateline=False), ring_traffic(4))


def test_a_deadlock_whose_links_are_sampled_is_named_too():
    with pytest.raises(DeadlockError, match="deadlock of "):
        _core.run_traffic(row_chip(has_dateline=False), ring_traffic(4), link_sample_cycles=50)


def test_too_short_a_limit_is_no_deadlock():
    with pytest.raises(RuntimeError, match="4 of 4 traffic programs have not ended") as caught:
        _core.run_traffic(row_chip(has_dateline=True), ring_traffic(4), cycles_max=100)
    assert not isinstance(caught.value, DeadlockError)
