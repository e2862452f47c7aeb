# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""The reference is right and sees what goes wrong, and the core brings and sees the same."""

import copy
from functools import reduce

import numpy as np
import pytest

from inside import _core
from inside.collectives import OPERATIONS, Call, GpuPlace, simulated, type_bytes
from inside.machines import catalogue
from numpy_data import TYPES, CallData, count_wrong, promised

COLLECTIVES = _core.COLLECTIVES
_CHUNKS_PER_PART = 4


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


# --- the core, beside numpy -----------------------------------------------------------------------


def call_of(collective, ranks, elements, type_name="float32", operation="sum"):
    """The same call for the core and for numpy; chunks and pattern are those of all_to_all_v."""
    pattern = (*range(1, ranks), 0)
    if collective == "all_to_all_v":
        pairs = [(sender, receiver) for sender in range(ranks) for receiver in range(ranks)]
        pattern = tuple((2 * sender + receiver) % 5 for sender, receiver in pairs)
    schedule = _core.Schedule(
        "call", getattr(_core.Collective, collective), chunks=_CHUNKS_PER_PART * ranks,
        root=ranks - 1, pattern=pattern, ranks=[_core.RankProgram() for _ in range(ranks)],
    )  # fmt: skip
    core = _core.CallData(schedule, elements, type_name, operation)
    return core, CallData(collective, ranks, elements, type_name, operation, ranks - 1, pattern)


def with_output(core, rank, output):
    """Buffers of a rank, whose output is as if a call had left it so."""
    buffers = _core.RankBuffers(core, rank)
    buffers.output[:] = output.view(np.uint8)
    return buffers


def of_type(expected, type_name):
    """What is expected as a rank would store it: averages are rounded."""
    if expected.dtype == TYPES[type_name]:
        return expected.copy()
    if type_name != "bfloat16":
        return expected.astype(TYPES[type_name])
    bits = expected.astype(np.float32).view(np.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)


def spoilt(right, random):
    """The same with neighbouring bits here and there, then with any bits, then with zeros of both
    signs and numbers that are none."""
    kind = np.dtype(f"uint{8 * right.dtype.itemsize}")
    bits = right.view(kind).copy()
    near, far, zero = (random.random(len(bits)) < share for share in (0.3, 0.1, 0.2))
    bits[near] += random.integers(-3, 4, near.sum()).astype(kind)
    bits[far] = random.integers(0, 1 << 8 * min(kind.itemsize, 4), far.sum()).astype(kind)
    bits[zero] = kind.type(1 << (8 * kind.itemsize - 1))
    bits[-1] = kind.type(-1 % (1 << 8 * kind.itemsize))
    return bits.view(right.dtype)


def wrong_by_numpy(data, rank, output):
    expected = data.expected_of(rank)
    if data.collective == "all_to_all_v":
        chunks = _CHUNKS_PER_PART * data.ranks
        sent = promised(rank, data.ranks, data.elements, chunks, data.pattern)
        output, expected = output[sent], expected[sent]
    return count_wrong(output, expected, data.type_name)


def check_core(core, data, rank):
    """What a rank brings, and how much of its output is wrong where it is right and where not."""
    untouched = _core.RankBuffers(core, rank)
    np.testing.assert_array_equal(untouched.input, data.input_of(rank).view(np.uint8))
    expected = data.expected_of(rank)
    if expected is None:
        assert core.count_wrong([untouched]) == 0
        return
    right = of_type(expected, data.type_name)
    assert core.count_wrong([with_output(core, rank, right)]) == 0
    wrong = spoilt(right, np.random.default_rng(rank + data.elements))
    counted = core.count_wrong([with_output(core, rank, wrong)])
    assert counted == wrong_by_numpy(data, rank, wrong)


@pytest.mark.parametrize("collective", COLLECTIVES)
@pytest.mark.parametrize("ranks", [1, 2, 3, 8, 13])
def test_the_core_brings_and_finds_the_bits_that_numpy_does(collective, ranks):
    for type_name in TYPES:
        for operation in OPERATIONS:
            for rank in {0, ranks - 1}:
                check_core(*call_of(collective, ranks, 40 * ranks, type_name, operation), rank)


@pytest.mark.parametrize("collective", COLLECTIVES)
def test_the_core_agrees_with_numpy_where_the_numbers_repeat(collective):
    for type_name, operation in (("float32", "sum"), ("float16", "avg"), ("int64", "min")):
        check_core(*call_of(collective, 3, 3 * 30_000, type_name, operation), 1)


def test_all_ranks_are_counted_together():
    core, data = call_of("reduce_scatter", 4, 400)
    outputs = [data.expected_of(rank).copy() for rank in range(4)]
    outputs[2][7] += 1
    outputs[3][8:10] = -1
    ranks = [with_output(core, rank, output) for rank, output in enumerate(outputs)]
    assert core.count_wrong(ranks) == core.count_wrong(ranks[::-1]) == 3
    exchanged = [with_output(core, rank, outputs[3 - rank]) for rank in range(4)]
    assert core.count_wrong(exchanged) > 300


def test_a_cleared_input_is_zero_also_where_it_is_part_of_the_output():
    core, _ = call_of("all_gather", 4, 400)
    buffers = _core.RankBuffers(core, 2, in_place=True)
    assert bytes(buffers.output[800:1200]) == bytes(buffers.input)
    buffers.clear_input()
    assert set(bytes(buffers.output[800:1200])) == {0}
    assert set(bytes(buffers.output[:800])) == {0x5A}


def test_buffers_keep_their_memory_as_long_as_it_is_seen():
    output = _core.RankBuffers(call_of("all_reduce", 2, 1 << 20)[0], 0).output
    assert bytes(output[:4]) == b"ZZZZ"


def test_buffers_of_another_size_are_refused():
    core, _ = call_of("all_reduce", 2, 100)
    other = _core.RankBuffers(call_of("all_reduce", 2, 50)[0], 0)
    with pytest.raises(ValueError, match="an output has 200 bytes; the call needs 400"):
        core.count_wrong([other])


# --- what the reference sees ----------------------------------------------------------------------


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
