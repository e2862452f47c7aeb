# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Ranks of test_overlap: collectives whose arrays share memory, and calls that differ."""

import os

import numpy as np

from towpath import ConfigError, TransportError


def _values(rank, ranks, call, elements):
    """Row p of rank r in a call: a number that tells all three."""
    rows = np.arange(ranks)[:, None] * 10 + rank * 1000 + call * 100000
    return (rows + np.zeros((ranks, elements))).astype(np.float64)


def in_place(communicator, elements, calls):
    """Names of the calls in place whose result is wrong."""
    rank, ranks = communicator.rank, communicator.ranks
    wrong = []
    for call in range(calls):
        every = np.stack([_values(other, ranks, call, elements) for other in range(ranks)])
        mine = every[rank]
        forms = {
            "all_reduce": (lambda a: communicator.all_reduce(a, out=a), every.sum(0)),
            "reduce": (lambda a: communicator.reduce(a, out=a), every.sum(0)),
            "all_gather": (
                lambda a: communicator.all_gather(a[rank], out=a),
                np.stack([every[other, other] for other in range(ranks)]),
            ),
            "reduce_scatter": (
                lambda a: communicator.reduce_scatter(a, out=a[rank]), every.sum(0)[rank],
            ),
            "all_to_all": (lambda a: communicator.all_to_all(a, out=a), every[:, rank]),
        }  # fmt: skip
        for name, (form, expected) in forms.items():
            result = form(mine.copy())
            if (name != "reduce" or rank == 0) and not np.array_equal(result, expected):
                wrong.append((name, call))
    return wrong


def refused(communicator, elements):
    """What each overlap that no library allows is refused with."""
    ranks = communicator.ranks
    other = (communicator.rank + 1) % ranks
    size = ranks * elements
    forms = {
        "all_reduce": lambda a: communicator.all_reduce(a[1 : size + 1], out=a[:size]),
        "reduce": lambda a: communicator.reduce(a[:size], out=a[1 : size + 1]),
        "all_gather": lambda a: communicator.all_gather(
            a[other * elements : (other + 1) * elements], out=a[:size].reshape(ranks, elements)
        ),
        "reduce_scatter": lambda a: communicator.reduce_scatter(
            a[:size].reshape(ranks, elements), out=a[other * elements : (other + 1) * elements]
        ),
        "all_to_all": lambda a: communicator.all_to_all(
            a[:size].reshape(ranks, elements), out=a[1 : size + 1].reshape(ranks, elements)
        ),
    }
    forms["by a schedule: all_reduce"] = lambda a: communicator.all_reduce(
        a[1 : size + 1], out=a[:size], algorithm="ring_all_reduce"
    )
    said = {}
    for name, form in forms.items():
        array = np.arange(size + 1, dtype=np.float64)
        try:
            form(array)
        except ConfigError as error:
            said[name] = str(error)
        assert (array == np.arange(size + 1)).all(), name
    communicator.barrier()
    return said


DIFFERENCES = {
    "roots": lambda c, r: [c.broadcast(np.full(4, r, np.float32), root=r), c.barrier()],
    "each the other's root": lambda c, r: c.broadcast(np.full(4, r, np.float32), root=1 - r),
    "each its own root": lambda c, r: c.reduce(np.full(4, r, np.float32), root=r),
    "barrier": lambda c, r: c.barrier() if r else c.all_reduce(np.ones(4, np.float32)),
    "allocate": lambda c, r: c.allocate(100 if r else 200),
    "signals": lambda c, r: c.signals(1 + r),
    "allocate and reduce": lambda c, r: c.allocate(1) if r else c.all_reduce(np.ones(1)),
    "none": lambda c, r: c.all_reduce(np.ones(0 if r else 4, np.float32)),
    "type": lambda c, r: c.all_reduce(np.ones(4, np.int32 if r else np.float32)),
    "operation": lambda c, r: c.all_reduce(np.ones(4), "max" if r else "sum"),
    "collective": lambda c, r: c.all_gather(np.ones(4)) if r else c.all_reduce(np.ones(4)),
}


# Both ranks only send: the first one has returned before the other one begins.
OF_SENDERS = {
    "broadcast": lambda c, r: c.broadcast(np.full(4, r), root=r),
    "reduce": lambda c, r: c.reduce(np.full(4, r), root=1 - r),
}


def different(communicator, name):
    """Each rank's error where their calls differ."""
    try:
        (DIFFERENCES | OF_SENDERS)[name](communicator, communicator.rank)
    except TransportError as error:
        return error.kind, error.peer, str(error)
    return None


def kept_plan_differs(communicator, first, second):
    """Each rank's error after two reductions, if rank 1 then repeats the second one and the other
    ranks repeat the first one.
    """
    for operation in (first, second):
        communicator.all_reduce(np.ones(4), operation)
    try:
        communicator.all_reduce(np.ones(4), second if communicator.rank == 1 else first)
    except TransportError as error:
        return error.kind, error.peer, str(error)
    return None


def forked(communicator):
    """What a forked child is told, and that its parent goes on."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        said = []
        calls = (
            lambda: communicator.all_reduce(np.ones(1)), communicator.barrier,
            lambda: communicator.allocate(1), communicator.fence,
        )  # fmt: skip
        for call in calls:
            try:
                call()
            except ConfigError as error:
                said.append(str(error))
        os.write(write, "\n".join(said).encode())
        os._exit(0)
    os.close(write)
    with open(read) as pipe:
        said = pipe.read().splitlines()
    os.waitpid(child, 0)
    return said, communicator.all_reduce(np.ones(1))[0]
