# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""The buffers of the ranks of a call: what each brings, and how much of what it finds is wrong."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from towpath.collectives.call import Call
from towpath.collectives.data import count_wrong, promised


def buffers_of(
    call: Call, rank: int, elements: int, in_place: bool
) -> tuple[np.ndarray, np.ndarray]:
    """A rank's input and output, 1-D arrays of the call's type.

    Args:
        call: the call.
        rank: whose buffers.
        elements: of the whole array, as `Call.elements` gives it.
        in_place: whether input and output share memory, one as a part of the other.

    Returns:
        The input, filled with the rank's test data, and the output, filled with what is neutral
        to no operation, so that a result on top of it is wrong.
    """
    source = call.data(elements).input_of(rank)
    part = elements // call.ranks
    if not in_place:
        size = part if call.collective in ("reduce_scatter", "scatter") else elements
        return source, _uninitialised(size, source.dtype)
    if call.collective in ("all_gather", "gather"):
        output = _uninitialised(elements, source.dtype)
        own = output[rank * part : (rank + 1) * part]
        own[:] = source
        return own, output
    if call.collective in ("reduce_scatter", "scatter"):
        return source, source[rank * part : (rank + 1) * part]
    return source, source


def _uninitialised(elements: int, type_: np.dtype[Any]) -> np.ndarray:
    return np.full(elements * type_.itemsize, 0x5A, np.uint8).view(type_)


def wrong_elements(call: Call, elements: int, outputs: Sequence[tuple[int, np.ndarray]]) -> int:
    """How many elements of outputs differ from what numpy computes.

    Args:
        call: the call.
        elements: of the whole array.
        outputs: ranks, and the output of each as the call left it, 1-D, of the call's type.
    """
    data = call.data(elements)
    common = data.expected_of(0) if data.is_same_everywhere else None
    wrong = 0
    for rank, output in outputs:
        expected = data.expected_of(rank) if common is None else common
        if call.collective == "all_to_all_v" and expected is not None:
            schedule = call.schedule
            is_sent = promised(rank, call.ranks, elements, schedule.chunks, schedule.pattern)
            output, expected = output[is_sent], expected[is_sent]
        wrong += count_wrong(output, expected, call.type_name)
    return wrong
