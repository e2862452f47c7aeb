# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Writes schedules for one machine, times them on it, and returns the fastest."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product

from towpath import _core
from towpath.collectives import simulated
from towpath.collectives.call import Call
from towpath.collectives.element_types import type_bytes
from towpath.collectives.places import GpuPlace
from towpath.errors import ConfigError, DeadlockError
from towpath.schedules.schedule_source import ScheduleSource
from towpath.tuning.synthesis.bounds import Bound, bound_of
from towpath.tuning.synthesis.network import RANKS_MAX, Network, network_of
from towpath.tuning.synthesis.packing import Packing, pack_rings, pack_trees

COLLECTIVES = ("all_reduce", "all_gather", "reduce_scatter")
_COUNTS = (8, 12, 14, 16, 20, 21, 24, 28, 32, 48)  # of trees or rings, each on a channel
_CHUNKS = (64, 128, 16)  # that go through a tree one after the other
_PROTOCOLS = ("Simple", "LL128")
# Other chunks and protocols make a candidate no faster than this share of the first one's time.
_FAMILY_SHARE = 0.6


@dataclass(frozen=True)
class Listed:
    """The fastest of the algorithms that Towpath lists.

    Attributes:
        source: options of the algorithm.
        time_us: its time.
    """

    source: ScheduleSource
    time_us: float


@dataclass(frozen=True)
class SearchOptions:
    """Options of the search.

    Attributes:
        seconds: no candidate is started after this time.
        seed: selects one of several equal hops.
        progress: called with the number of completed candidates and the total number.
    """

    seconds: float = 60.0
    seed: int = 1
    progress: Callable[[int, int], None] = lambda done, total: None


@dataclass(frozen=True)
class Synthesis:
    """Result of the search.

    Attributes:
        schedule: the fastest schedule, verified at the size.
        words: the composition of the schedule.
        size_bytes: size of the array for which it was made, as the schedule divides it.
        time_us: its time.
        bound: lower bound on the time of any schedule.
        listed: the fastest of the listed algorithms.
        is_listed: True if that algorithm is the result, because no synthesized schedule is faster.
        tried: number of timed candidates.
        left_out: number of candidates that were not timed for lack of time.
    """

    schedule: _core.Schedule
    words: str
    size_bytes: int
    time_us: float
    bound: Bound
    listed: Listed
    is_listed: bool
    tried: int
    left_out: int

    @property
    def distance(self) -> float:
        """Relative distance from the bound: 0.25 means that it takes 25 % longer."""
        return self.time_us / self.bound.time_us - 1


@dataclass(frozen=True)
class Candidate:
    """A way to write a schedule."""

    words: str
    family: str  # the same for candidates that differ in chunks and protocol only
    least_us: float  # what the most loaded link needs
    write: Callable[[], _core.Schedule]


def check_collective(collective: str, ranks: int) -> None:
    """Checks that schedules can be written for a collective with this number of ranks.

    Raises:
        ConfigError: they cannot be written.
    """
    if collective not in COLLECTIVES:
        raise ConfigError(
            f"collective is {collective}; schedules are written for {', '.join(COLLECTIVES)}"
        )
    if ranks > RANKS_MAX:
        raise ConfigError(
            f"there are {ranks} ranks; schedules are written for at most {RANKS_MAX}; load fewer "
            "hosts, or fewer ranks_per_host"
        )


def synthesize(
    place: GpuPlace,
    collective: str,
    size_bytes: int,
    listed: Listed,
    *,
    type_name: str = "float32",
    options: SearchOptions | None = None,
) -> Synthesis:
    """Finds the fastest schedule for a collective on a machine at one size.

    Args:
        place: the machine, and the GPU of each rank.
        collective: one of COLLECTIVES.
        size_bytes: size of the whole array.
        listed: the fastest of the listed algorithms, which is the result unless a faster schedule
            is found.
        type_name: the element type.
        options: options of the search.

    Raises:
        ConfigError: the collective is not supported, or there are too many ranks.
    """
    options = options or SearchOptions()
    ranks = len(place.places)
    check_collective(collective, ranks)
    network = network_of(place.machine, place.places)
    launch_us = place.machine.gpu.launch_ns / 1e3
    bound = bound_of(network, collective, size_bytes, launch_us=launch_us)
    search = _Search(place, size_bytes, type_name, listed.time_us)
    begin = time.monotonic()
    end = begin + options.seconds
    found: list[Candidate] = []
    for count in _COUNTS if ranks > 1 else ():
        # Half of the time is for simulation.
        if found and time.monotonic() > begin + options.seconds / 2:
            break
        found += _candidates(network, collective, size_bytes, count, options.seed)
    found.sort(key=lambda candidate: candidate.least_us)
    left_out = 0
    for number, candidate in enumerate(found):
        options.progress(number, len(found))
        if time.monotonic() > end:
            left_out = sum(each.least_us < search.best_us for each in found[number:])
            break
        search.consider(candidate)
    options.progress(len(found), len(found))
    schedule = search.schedule or listed.source.schedule()
    words = search.words or (
        f"the listed algorithm {schedule.name}, {_protocol(schedule)}, {schedule.channels} "
        f"channel{'' if schedule.channels == 1 else 's'}"
    )
    exact_bytes = Call(schedule, type_name).elements(size_bytes) * type_bytes(type_name)
    return Synthesis(
        schedule, words, exact_bytes, search.best_us, bound, listed, search.schedule is None,
        search.tried, left_out,
    )  # fmt: skip


class _Search:
    """The fastest schedule so far. Only schedules that the verifier accepts count."""

    def __init__(self, place: GpuPlace, size_bytes: int, type_name: str, listed_us: float) -> None:
        self._place = place
        self._size_bytes = size_bytes
        self._type_name = type_name
        self._first_us: dict[str, float] = {}  # of the first candidate of each family
        self.best_us = listed_us
        self.schedule: _core.Schedule | None = None
        self.words: str | None = None
        self.tried = 0

    def consider(self, candidate: Candidate) -> None:
        """Times a candidate, unless its links, or the first candidate of its family,
        are too slow.
        """
        slowest_us = _FAMILY_SHARE * self._first_us.get(candidate.family, 0.0)
        if max(candidate.least_us, slowest_us) >= self.best_us:
            return
        schedule = candidate.write()
        call = Call(schedule, self._type_name)
        self.tried += 1
        try:
            time_us = simulated.time_us(self._place, call, self._size_bytes)
        except DeadlockError:
            return
        self._first_us.setdefault(candidate.family, time_us)
        if time_us >= self.best_us:
            return
        elements = call.elements(self._size_bytes)
        verdict = _core.verify(schedule, elements, type_bytes(self._type_name))
        if verdict.findings or verdict.not_checked:
            return
        self.best_us, self.schedule, self.words = time_us, schedule, candidate.words


def _candidates(
    network: Network, collective: str, size_bytes: int, count: int, seed: int
) -> Iterator[Candidate]:
    """The candidates with this number of rings or trees."""
    rings = pack_rings(network, count, seed)
    share = 1.0 if collective == "all_reduce" else 0.5
    for protocol in _PROTOCOLS:
        yield Candidate(
            f"{count} rings, {protocol}",
            f"{count} rings",
            _wire_us(rings.time_ns_per_byte * share, size_bytes, protocol),
            _writer(f"ring_{collective}", network.ranks, rings, protocol, 1),
        )
    if collective != "all_reduce":
        return
    for host_trees in (False, True) if len(set(network.hosts)) > 1 else (False,):
        trees = pack_trees(network, count, seed, host_trees=host_trees)
        for protocol, chunks in product(_PROTOCOLS, _CHUNKS):
            yield Candidate(
                f"{count} trees, {chunks} chunks through each, {protocol}",
                f"{count} trees, {host_trees}",
                _wire_us(trees.time_ns_per_byte, size_bytes, protocol),
                _writer("tree_all_reduce", network.ranks, trees, protocol, chunks),
            )


def _wire_us(time_ns_per_byte: float, size_bytes: int, protocol: str) -> float:
    numerator, denominator = _core.wire_expansion(_protocol_named(protocol))
    return time_ns_per_byte * size_bytes / 1e3 * numerator / denominator


def _protocol_named(name: str) -> _core.Protocol:
    found = _core.protocol_from(name)
    assert found is not None  # names are those of _PROTOCOLS
    return found


def _writer(
    algorithm: str, ranks: int, packing: Packing, protocol: str, chunks: int
) -> Callable[[], _core.Schedule]:
    def write() -> _core.Schedule:
        patterns = [list(pattern) for pattern in packing.patterns]
        is_tree = algorithm == "tree_all_reduce"
        schedule = _core.make_schedule(
            algorithm, ranks=ranks, channels=len(patterns), chunks_per_channel=chunks,
            protocol=_protocol_named(protocol), trees=patterns if is_tree else [],
            rings=[] if is_tree else patterns,
        )  # fmt: skip
        schedule.name = "synthesised_" + algorithm
        return schedule

    return write


def _protocol(schedule: _core.Schedule) -> str:
    return _core.name_of(schedule.protocol)
