# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""The reference is right, and sees what goes wrong."""

import numpy as np
import pytest

from towpath import _core
from towpath.collectives.data import (
    OPERATIONS,
    TYPES,
    count_wrong,
    make_expected,
    make_input,
    type_bytes,
)

COLLECTIVES = _core.COLLECTIVES


def numbers(stored, type_name):
    if type_name == "bfloat16":
        return (stored.astype(np.uint32) << 16).view(np.float32).astype(np.float64)
    return stored.astype(np.float64)


def naive(collective, rank, ranks, elements, type_name, operation, root):
    """What must come out, one element after another."""
    inputs = [
        numbers(make_input(collective, r, ranks, elements, type_name, operation), type_name)
        for r in range(ranks)
    ]
    part = elements // ranks
    if collective == "broadcast":
        return inputs[root]
    if collective == "all_gather":
        return np.concatenate(inputs)
    if collective == "all_to_all":
        return np.concatenate([each[rank * part : (rank + 1) * part] for each in inputs])
    combine = {"prod": np.multiply, "min": np.minimum, "max": np.maximum}.get(operation, np.add)
    total = inputs[0]
    for other in inputs[1:]:
        total = combine(total, other)
    if operation == "avg":
        is_float = type_name == "bfloat16" or np.issubdtype(TYPES[type_name], np.floating)
        total = total / ranks if is_float else np.trunc(total / ranks)
    return total[rank * part : (rank + 1) * part] if collective == "reduce_scatter" else total


@pytest.mark.parametrize("collective", COLLECTIVES)
@pytest.mark.parametrize("ranks", [1, 2, 3, 8, 13])
def test_the_reference_is_what_a_naive_computation_gives(collective, ranks):
    elements = 40 * ranks
    for type_name in TYPES:
        for operation in OPERATIONS:
            for rank in {0, ranks - 1}:
                expected = make_expected(
                    collective, rank, ranks, elements, type_name, operation, root=ranks - 1
                )
                if expected is None:
                    assert collective == "reduce" and rank != ranks - 1
                    continue
                found = numbers(expected, type_name) if expected.dtype != np.float64 else expected
                wanted = naive(collective, rank, ranks, elements, type_name, operation, ranks - 1)
                np.testing.assert_array_equal(found, wanted, f"{type_name} {operation}")


def test_types_have_the_size_that_plans_assume():
    schedule = _core.make_schedule("ring_all_reduce", ranks=2)
    assert list(TYPES) == list(_core.DATA_TYPES)
    for name in TYPES:
        assert _core.Plan(schedule, 10, name).input_bytes == 10 * type_bytes(name)
    assert OPERATIONS == ("sum", "prod", "min", "max", "avg")


@pytest.mark.parametrize("type_name", TYPES)
def test_every_sum_is_exact_in_every_type(type_name):
    for ranks in (2, 16, 64):
        total = make_expected("all_reduce", 0, ranks, 1000, type_name, "sum")
        assert numbers(total, type_name).max() <= 8 * 13
        product = make_expected("all_reduce", 0, ranks, 1000, type_name, "prod")
        assert numbers(product, type_name).max() <= 2**6


@pytest.mark.parametrize("ranks", [2, 4, 16, 40])
def test_a_missing_or_doubled_contribution_shows(ranks):
    elements = 5000
    expected = make_expected("all_reduce", 0, ranks, elements, "float32", "sum")
    for rank in range(ranks):
        brought = make_input("all_reduce", rank, ranks, elements, "float32", "sum")
        assert count_wrong(expected - brought, expected, "float32") > elements // (2 * ranks)
        assert count_wrong(expected + brought, expected, "float32") > elements // (2 * ranks)


def test_a_chunk_in_the_wrong_place_shows():
    expected = make_expected("all_reduce", 0, 8, 4096, "int32", "sum")
    for shift in (1, 3, 64, 96, 1024):
        assert count_wrong(np.roll(expected, shift), expected, "int32") > 2000


def test_one_wrong_element_is_counted_as_one():
    expected = make_expected("all_gather", 1, 4, 64, "bfloat16", "sum")
    spoilt = expected.copy()
    spoilt[17] ^= 1 << 7
    assert count_wrong(spoilt, expected, "bfloat16") == 1
    assert count_wrong(expected, expected, "bfloat16") == 0


def test_an_average_may_be_off_by_its_rounding_only():
    expected = make_expected("all_reduce", 0, 3, 100, "float32", "avg")
    assert count_wrong(expected.astype(np.float32), expected, "float32") == 0
    assert count_wrong((expected * 1.001).astype(np.float32), expected, "float32") > 50


def test_where_nothing_is_promised_nothing_is_wrong():
    assert count_wrong(np.ones(4, np.float32), None, "float32") == 0
