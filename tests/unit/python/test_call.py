# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Plans of one call at several sizes share what does not depend on the size, and are the same."""

import pytest

from inside import _core
from inside.collectives import Call, GpuPlace, simulated
from inside.machines import catalogue

SIZES = (1 << 20, 64, 100_000, 8 << 20, 64)


def facts(plan):
    """All that Python can know of a plan."""
    return (
        plan.input_bytes, plan.output_bytes, plan.heap_bytes, plan.signals, plan.steps,
        plan.statement,
    )  # fmt: skip


@pytest.fixture(scope="module")
def place():
    return GpuPlace(catalogue.load("dgx-h100", hosts=2).build())


@pytest.mark.parametrize("algorithm", _core.algorithm_names())
def test_a_plan_does_not_depend_on_those_before_it(algorithm, place):
    schedule = _core.make_schedule(algorithm, ranks=16, channels=2, gpus_per_host=8)
    several = Call(schedule)
    for size_bytes in SIZES:
        alone = Call(schedule)
        for slots_factor in (1, 3):
            expected = _core.Plan(schedule, alone.elements(size_bytes), slots_factor=slots_factor)
            assert facts(several.plan(size_bytes, slots_factor)) == facts(expected)
        try:
            time_us = simulated.time_us(place, alone, size_bytes)
        except ValueError:  # GPUs of another host are out of reach
            continue
        assert simulated.time_us(place, several, size_bytes) == time_us


def test_calls_are_equal_whether_they_have_plans_or_not():
    schedule = _core.make_schedule("ring_all_reduce", ranks=2)
    planned = Call(schedule)
    planned.plan(64)
    assert planned == Call(schedule)
    assert repr(planned) == repr(Call(schedule))


def test_another_size_is_refused_as_a_first_one_is():
    plan = _core.Plan(_core.make_schedule("ring_all_gather", ranks=3), 3)
    with pytest.raises(ValueError) as first:
        _core.Plan(_core.make_schedule("ring_all_gather", ranks=3), 4)
    with pytest.raises(ValueError) as other:
        plan.with_elements(4)
    assert str(other.value) == str(first.value)
