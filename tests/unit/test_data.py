# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""The reference is right, and sees what goes wrong."""

import copy
from functools import reduce

import numpy as np
import pytest

from towpath import _core
from towpath.collectives import simulated
from towpath.collectives.call import Call
from towpath.collectives.data import TYPES, CallData, count_wrong
from towpath.collectives.element_types import OPERATIONS, type_bytes
from towpath.collectives.places import GpuPlace
from towpath.specs import catalogue

COLLECTIVES = _core.COLLECTIVES


def numbers(stored, type_name):
    if type_name == "bfloat16":
        return (stored.astype(np.uint32) << 16).view(np.float32).astype(np.float64)
    return stored.astype(np.float64)


def naive(data, rank):
    """What must come out, one element after another."""
    inputs = [numbers(data.input_of(r), data.type_name) for r in range(data.ranks)]
    part = data.elements // data.ranks
    own = slice(rank * part, (rank + 1) * part)
    if data.collective == "broadcast":
        return inputs[data.root]
    if data.collective == "scatter":
        return inputs[data.root][own]
    if data.collective == "send_recv":
        return inputs[(rank + data.ranks - 1) % data.ranks]
    if data.collective in ("all_gather", "gather"):
        return np.concatenate(inputs)
    if data.collective in ("all_to_all", "all_to_all_v"):
        return np.concatenate([each[own] for each in inputs])
    functions = {"prod": np.multiply, "min": np.minimum, "max": np.maximum}
    total = reduce(functions.get(data.operation, np.add), inputs)
    if data.operation == "avg" and data.collective != "barrier":
        is_float = data.type_name == "bfloat16" or np.issubdtype(TYPES[data.type_name], np.floating)
        total = total / data.ranks if is_float else np.trunc(total / data.ranks)
    return total[own] if data.collective == "reduce_scatter" else total


@pytest.mark.parametrize("collective", COLLECTIVES)
@pytest.mark.parametrize("ranks", [1, 2, 3, 8, 13])
def test_the_reference_is_what_a_naive_computation_gives(collective, ranks):
    elements = 40 * ranks
    for type_name in TYPES:
        for operation in OPERATIONS:
            for rank in {0, ranks - 1}:
                data = CallData(
                    collective, ranks, elements, type_name, operation, root=ranks - 1,
                    pattern=(*range(1, ranks), 0),
                )  # fmt: skip
                expected = data.expected_of(rank)
                if expected is None:
                    assert collective in ("reduce", "gather") and rank != ranks - 1
                    continue
                found = numbers(expected, type_name) if expected.dtype != np.float64 else expected
                np.testing.assert_array_equal(found, naive(data, rank), f"{type_name} {operation}")


def test_types_have_the_size_that_plans_assume():
    schedule = _core.make_schedule("ring_all_reduce", ranks=2)
    assert list(TYPES) == list(_core.DATA_TYPES)
    for name in TYPES:
        assert _core.Plan(schedule, 10, name).input_bytes == 10 * type_bytes(name)
    assert OPERATIONS == ("sum", "prod", "min", "max", "avg")


@pytest.mark.parametrize("type_name", TYPES)
def test_every_sum_is_exact_in_every_type(type_name):
    for ranks in (2, 16, 64):
        total = CallData("all_reduce", ranks, 1000, type_name, "sum").expected_of(0)
        assert numbers(total, type_name).max() <= 8 * 13
        product = CallData("all_reduce", ranks, 1000, type_name, "prod").expected_of(0)
        assert numbers(product, type_name).max() <= 2**6


@pytest.mark.parametrize("ranks", [2, 4, 16, 40])
def test_a_missing_or_doubled_contribution_shows(ranks):
    elements = 5000
    data = CallData("all_reduce", ranks, elements)
    expected = data.expected_of(0)
    for rank in range(ranks):
        brought = data.input_of(rank)
        assert count_wrong(expected - brought, expected, "float32") > elements // (2 * ranks)
        assert count_wrong(expected + brought, expected, "float32") > elements // (2 * ranks)


def test_a_chunk_in_the_wrong_place_shows():
    expected = CallData("all_reduce", 8, 4096, "int32").expected_of(0)
    for shift in (1, 3, 64, 96, 1024):
        assert count_wrong(np.roll(expected, shift), expected, "int32") > 2000


def test_one_wrong_element_is_counted_as_one():
    expected = CallData("all_gather", 4, 64, "bfloat16").expected_of(1)
    spoilt = expected.copy()
    spoilt[17] ^= 1 << 7
    assert count_wrong(spoilt, expected, "bfloat16") == 1
    assert count_wrong(expected, expected, "bfloat16") == 0


def test_an_average_may_be_off_by_its_rounding_only():
    expected = CallData("all_reduce", 3, 100, "float32", "avg").expected_of(0)
    assert count_wrong(expected.astype(np.float32), expected, "float32") == 0
    assert count_wrong((expected * 1.001).astype(np.float32), expected, "float32") > 50


def test_where_nothing_is_promised_nothing_is_wrong():
    assert count_wrong(np.ones(4, np.float32), None, "float32") == 0


def test_a_sum_onto_an_output_that_was_never_written_is_wrong():
    """The output is not neutral to the operation, so that the mistake shows."""
    schedule = _core.make_schedule("all_pairs_all_gather", ranks=2)
    ranks = schedule.ranks
    blocks = ranks[0].blocks
    received = next(
        (block, place)
        for block, each in enumerate(blocks)
        for place, step in enumerate(each.steps)
        if step.type == _core.StepType.receive
    )
    steps = blocks[received[0]].steps
    step = copy.copy(steps[received[1]])
    step.type = _core.StepType.receive_reduce_copy
    steps[received[1]] = step
    blocks[received[0]].steps = steps
    ranks[0].blocks = blocks
    spoilt = copy.copy(schedule)
    spoilt.ranks = ranks
    place = GpuPlace(catalogue.load("dgx-h100", hosts=1).build())
    for made, is_wrong in ((schedule, False), (spoilt, True)):
        found = simulated.invoke(place, Call(made), 4096, in_place=False, with_data=True)
        assert (found.wrong > 0) == is_wrong
