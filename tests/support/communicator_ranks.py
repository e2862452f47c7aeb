# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""What the ranks of test_communicator do. Each function runs in a process per rank, and returns."""

import numpy as np
import pytest

from inside.collectives import OPERATIONS
from numpy_data import TYPES, CallData
from towpath import ConfigError, connect

COLLECTIVES = (
    "all_reduce", "reduce", "broadcast", "all_gather", "reduce_scatter", "all_to_all",
)  # fmt: skip


def every_collective(communicator, type_names, operations):
    """Names of the calls whose result is not numpy's own."""
    rank, ranks = communicator.rank, communicator.ranks
    wrong = []
    for collective in COLLECTIVES:
        for type_name in type_names:
            for operation in operations:
                data = CallData(collective, ranks, 6 * ranks, type_name, operation)
                array = data.input_of(rank)
                if collective in ("reduce_scatter", "all_to_all"):
                    array = array.reshape(ranks, 6)
                options = {"dtype": type_name} if type_name == "bfloat16" else {}
                if collective in ("all_reduce", "reduce", "reduce_scatter"):
                    options["op"] = operation
                result = getattr(communicator, collective)(array, **options)
                expected = data.expected_of(rank)
                if expected is not None and not np.array_equal(result.reshape(-1), expected):
                    wrong.append((collective, type_name, operation))
    return wrong


def in_and_out_of_place(communicator):
    """An `out` leaves the input alone; without one all_reduce and broadcast work in place."""
    rank, ranks = communicator.rank, communicator.ranks
    mine = np.full((2, 3), float(rank))
    out = np.empty((2, 3))
    assert communicator.all_reduce(mine, "max", out=out) is out
    assert (mine == rank).all() and (out == ranks - 1).all()
    assert communicator.all_reduce(mine) is mine and (mine == sum(range(ranks))).all()
    assert communicator.broadcast(out.T.copy(), root=ranks - 1).shape == (3, 2)
    assert communicator.all_gather(mine[:, ::2]).shape == (ranks, 2, 2)  # not contiguous
    assert communicator.all_reduce(np.empty((0, 4))).shape == (0, 4)
    for algorithm in ("ring_all_reduce", "one_shot_all_reduce", "two_shot_all_reduce"):
        assert communicator.all_reduce(np.float32([rank]), algorithm=algorithm)[0] == mine[0, 0]


def neighbours(communicator):
    """Data to the next rank and back, one-sided."""
    rank, ranks = communicator.rank, communicator.ranks
    inbox = communicator.allocate((3, 4), np.int32)
    counts = communicator.allocate(2)
    arrived = communicator.signals(2)
    following, previous = (rank + 1) % ranks, (rank - 1) % ranks
    row = np.full(4, rank, np.int32)
    communicator.put_signal(inbox[1], row, following, arrived)
    assert communicator.wait_signal(arrived, peer=previous) == 1
    assert (inbox[1] == previous).all()
    communicator.put_signal(inbox[2], row, 0, arrived + 1, 5, operation="add")
    if rank == 0:
        assert communicator.wait_signal(arrived + 1, 5 * ranks, "==") == 5 * ranks
    counts[:] = rank
    communicator.put(inbox[0, 1:3], [rank, 7], rank)
    communicator.fence()
    communicator.quiet()
    communicator.barrier()
    assert communicator.get(counts, following).tolist() == [following, following]
    out = np.empty((3, 4), np.int32)
    assert communicator.get(inbox, previous, out=out) is out
    assert out[0, 1:3].tolist() == [previous, 7]
    communicator.barrier(timeout_s=20)


def many_plans(communicator):
    """More kinds of calls than are kept, on a heap that would not hold all of them."""
    total = 0
    for elements in [*range(1, 50), *range(49, 0, -1)]:
        array = np.full(elements * 1000, 1.0)
        total += communicator.all_reduce(array)[0]
    return total


def wrong_use(communicator):
    """Mistakes are errors of the rank that makes them, and the group goes on."""
    ranks = communicator.ranks
    array = communicator.allocate(4, np.float32)
    for call, sentence in [
        (lambda: communicator.put(np.zeros(4, np.float32), array, 0), "target is not on the symm"),
        (lambda: communicator.put(array, np.zeros(4), 0), "source is float64 of shape"),
        (lambda: communicator.put(array[::2], array[::2], 0), "target is not contiguous"),
        (lambda: communicator.get(array, 0, out=np.zeros(3, np.float32)), "out is float32 of sha"),
        (lambda: communicator.all_reduce(np.zeros(4, np.complex64)), "is of type 'complex64'"),
        (lambda: communicator.all_reduce(np.zeros(4), "median"), "'median' is not a reduction"),
        (lambda: communicator.all_reduce(np.zeros(4), algorithm="rings"), "algorithm is 'rings'"),
        (lambda: communicator.all_reduce(np.zeros((4, 4))[:, ::2]), "contiguous and writable"),
        (
            lambda: communicator.all_reduce(np.zeros(4), dtype="bfloat16"),
            "of float64, not bfloat16",
        ),
        (lambda: communicator.all_reduce(np.zeros(4, ">f4")), "another byte order than this host"),
        (
            lambda: communicator.all_gather([1.0, 2.0]),
            "the array is a list; it must be a numpy array",
        ),
        (lambda: communicator.all_to_all(None), "the array is a NoneType"),
        (lambda: communicator.reduce_scatter(np.zeros(ranks + 1)), "a row per rank"),
        (lambda: communicator.all_gather(np.zeros(2), out=np.zeros(2)), "it must be float64 of"),
    ]:
        with pytest.raises(ConfigError, match=sentence):
            call()
    with pytest.raises(IndexError, match="outside the range"):
        communicator.put(array, array, ranks)
    with pytest.raises(ValueError, match="choose 'set' or 'add'"):
        communicator.put_signal(array, array, 0, communicator.signals(), 1, operation="or")
    with pytest.raises(RuntimeError) as caught:
        communicator.wait_signal(communicator.signals(), timeout_s=0.05)
    assert (caught.value.kind, caught.value.peer) == ("timeout", None)
    communicator.barrier()
    again = connect("another", 0, 1, heap_bytes=1 << 20)
    again.close()
    again.close()
    with pytest.raises(ValueError, match="the communicator is closed"):
        again.barrier()
    return repr(communicator)


def differ(communicator):
    """One rank calls something else."""
    array = np.zeros(8 if communicator.rank == 1 else 4)
    with pytest.raises(RuntimeError, match="rank 1 wants|rank 0 wants") as caught:
        communicator.all_reduce(array)
    return caught.value.kind


ALL_TYPES = tuple(TYPES)
ALL_OPERATIONS = OPERATIONS


LONG_REASON = "; ".join(f"part {number} is missing" for number in range(30))


def fail_at_length(communicator):
    """Rank 1 fails with a reason of 700 bytes, while the other one waits."""
    if communicator.rank == 1:
        raise ValueError(LONG_REASON)
    communicator.barrier()
