# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Multicasts as steps of traffic."""

import pytest

from inside import _core
from inside.machines import shipped


def cycles(count: int, last_call_cycles: int) -> int:
    chip = shipped.chip("wormhole").build()
    steps = [
        _core.TrafficStep(
            "multicast", to=chip.worker(0, 0), to_last=chip.worker(2, 0), size_bytes=64,
            count=count, first_vc=4, linked=True, includes_source=True,
            last_call_cycles=last_call_cycles,
        ),
    ]  # fmt: skip
    program = _core.TrafficProgram(core=chip.worker(0, 0), steps=steps)
    return _core.run_traffic(chip, [program]).cycles


@pytest.mark.parametrize(("count", "later"), [(1, 0), (2, 50), (9, 50)])
def test_the_last_of_several_calls_takes_longer_and_a_single_one_does_not(count, later):
    assert cycles(count, last_call_cycles=50) == cycles(count, last_call_cycles=0) + later
