# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""The search of `towpath tune` and `run` over candidates, with times made up for it."""

import itertools
import math
import random

import pytest

from inside.schedules import ScheduleSource
from inside.tuning import Climb

MIB = 1 << 20
STEPS = [MIB >> 4, MIB, 16 * MIB]
ALGORITHMS = ("ring", "tree")
PROTOCOLS = ("LL", "LL128", "Simple")
CHANNELS = (1, 2, 4, 8, 16)
CHUNKS = (1, 4)
# Candidates within this factor of the fastest one may be chosen for their fewer thread blocks.
SAME_SHARE = 1.005


def sources():
    """All candidates, by rising number of thread blocks."""
    return [
        ScheduleSource(
            algorithm=algorithm, protocol=protocol, channels=channels, chunks_per_channel=chunks
        )
        for channels, algorithm, protocol, chunks in itertools.product(
            CHANNELS, ALGORITHMS, PROTOCOLS, CHUNKS
        )
    ]


def options(source):
    return source.algorithm, source.protocol, source.channels, source.chunks_per_channel


def climb_over(time_us, asked=None):
    """A search over candidates whose time is a function of candidate and size."""

    def times_of(candidates, size_bytes, race):
        if asked is not None:
            asked.append((size_bytes, [options(each) for each in candidates]))
        return [time_us(each, size_bytes) for each in candidates]

    return Climb(sources(), STEPS, times_of)


def convex(source, size_bytes):
    """A time with one valley in each option: latency per channel and chunk, bytes over channels."""
    latency_us = {"LL": 5.0, "LL128": 8.0, "Simple": 14.0}[source.protocol]
    rate = {"LL": 5.0, "LL128": 9.0, "Simple": 10.0}[source.protocol]
    fill = size_bytes / 1e3 / rate / source.channels
    pipeline = {"ring": 1.0, "tree": 1.4}[source.algorithm] * (1 + 0.5 / source.chunks_per_channel)
    steps = {"ring": 7, "tree": 3}[source.algorithm]
    return steps * latency_us + 2.0 * source.channels + source.chunks_per_channel + fill * pipeline


@pytest.mark.parametrize("size_bytes", [1 << 12, 1 << 16, 3 << 17, MIB, 5 * MIB, 16 * MIB])
def test_the_optimum_of_a_convex_time_is_found(size_bytes):
    found = climb_over(convex).fastest(size_bytes, sources())
    best_us = min(convex(source, size_bytes) for source in sources())
    assert convex(found, size_bytes) <= best_us * SAME_SHARE


def rugged(seed):
    """Times that are drawn for each candidate around the convex ones."""
    drawn = {options(each): random.Random(f"{seed} {each}").uniform(0.7, 1.4) for each in sources()}
    return lambda source, size_bytes: convex(source, size_bytes) * drawn[options(source)]


def neighbors(source):
    """Candidates with one other option: protocol, chunks or channels."""
    for each in sources():
        changed = [one != other for one, other in zip(options(each), options(source), strict=True)]
        if sum(changed) == 1 and not changed[0]:
            yield each


@pytest.mark.parametrize("seed", range(20))
def test_no_neighbor_is_faster_than_the_choice(seed):
    time_us = rugged(seed)
    for size_bytes in (1 << 14, MIB, 9 * MIB):
        found = climb_over(time_us).fastest(size_bytes, sources())
        own_us = time_us(found, size_bytes)
        for other in neighbors(found):
            assert own_us <= time_us(other, size_bytes) * SAME_SHARE, (options(found), other)


def test_the_search_is_deterministic_and_does_not_depend_on_earlier_sizes():
    time_us = rugged(7)
    first, second = [], []
    one = climb_over(time_us, first).fastest(5 * MIB, sources())
    other = climb_over(time_us, second).fastest(5 * MIB, sources())
    assert one == other and first == second
    used = climb_over(time_us)
    for size_bytes in (16 * MIB, 1 << 14, 2 * MIB):
        used.fastest(size_bytes, sources())
    assert used.fastest(5 * MIB, sources()) == one


def test_equal_times_take_the_fewest_thread_blocks():
    found = climb_over(lambda source, size_bytes: 100.0).fastest(MIB, sources())
    assert found.channels == 1


def test_candidates_without_a_time_or_that_cannot_divide_the_array_are_not_chosen():
    def untimed(source, size_bytes):
        return None if source.protocol == "LL" else convex(source, size_bytes)

    assert climb_over(untimed).fastest(1 << 12, sources()).protocol != "LL"
    able = [each for each in sources() if each.channels > 2]
    found = climb_over(convex).fastest(1 << 12, able)
    assert found in able
    assert climb_over(lambda source, size_bytes: None).fastest(MIB, sources()) is None


def test_near_candidates_of_a_step_begin_with_the_fastest():
    near = climb_over(convex).near(MIB)
    times = [convex(source, MIB) for source in near]
    assert times == sorted(times) and not math.isinf(times[-1])
    assert len({source.algorithm for source in near}) == len(near)
