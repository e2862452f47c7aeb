# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""The best schedule for each size: every available schedule, timed on a machine.

A candidate is an algorithm with its options. Candidates with identical schedules count once. They
are ordered by the number of their thread blocks, and `tuning/rule.py` chooses. Sizes are measured
smallest first, so that candidates without a chance need not be simulated at large sizes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import lru_cache
from itertools import product
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from towpath import _core
from towpath.collectives import fabric
from towpath.collectives.call import Call
from towpath.collectives.element_types import type_bytes
from towpath.collectives.result import bus_factor
from towpath.errors import ConfigError
from towpath.schedules.schedule_source import ScheduleSource
from towpath.schedules.words import algorithms_within
from towpath.tuning.rule import choose

if TYPE_CHECKING:
    from towpath.collectives.live import LiveOptions
    from towpath.studies.sweep import Measure, SweepOptions

# Between more ranks, only affordable candidates are tried.
RANKS_MANY = 32
CHUNKS_PER_CHANNEL = (1, 4, 16)
_SMALL_BYTES = 64 << 10
_LEAST_SHARE = 0.4  # of the time that a candidate's line says; see least_us
_SIZE_SHARE = 0.01  # a schedule that cuts an array may miss the size asked for by so much


@dataclass(frozen=True)
class Options:
    """Options of candidates in addition to the collective's algorithms.

    Attributes:
        ranks: number of ranks.
        channels: numbers of channels to try.
        protocols: Simple, LL, LL128.
        both_ways: True if every other ring may run in the opposite direction.
        hosts: number of hosts of the ranks.
        grid: the columns and rings of a mesh or torus of chips, in the form of ScheduleSource;
            empty without a grid.
        reaches: forms of access between ranks.
    """

    ranks: int
    channels: tuple[int, ...]
    protocols: tuple[str, ...] = ("Simple",)
    both_ways: tuple[bool, ...] = (False,)
    hosts: int = 1
    grid: dict[str, Any] = field(default_factory=dict, hash=False)
    reaches: tuple[_core.Reach, ...] = (_core.Reach.fifo,)


def powers_to(most: int) -> tuple[int, ...]:
    """1, 2, 4 and so on, and the maximum itself.

    >>> powers_to(24)
    (1, 2, 4, 8, 16, 24)
    """
    return tuple(sorted({*(1 << power for power in range(most.bit_length())), most}))


@dataclass(frozen=True)
class Timing:
    """A candidate at a size."""

    source: ScheduleSource
    size_bytes: int
    time_us: float

    def bus_gb_per_s(self) -> float:
        factor = bus_factor(self.source.collective, self.source.ranks)
        return self.size_bytes / self.time_us / 1e3 * factor


@dataclass(frozen=True)
class Tuning:
    """Result of tuning.

    Attributes:
        collective: the collective.
        where: the machine and its ranks, or this host.
        kind: "simulated" or "live".
        candidates: number of candidates.
        timings: all measured times, by size and in the order of the candidates.
        notes: omitted measurements, with the reasons.
    """

    collective: str
    where: str
    kind: str
    candidates: int
    timings: list[Timing]
    notes: list[str] = field(default_factory=list)

    @property
    def sizes_bytes(self) -> list[int]:
        """The measured sizes, smallest first."""
        return sorted({timing.size_bytes for timing in self.timings})

    def at(self, size_bytes: int) -> list[Timing]:
        """The measurements at a size.

        Args:
            size_bytes: one of `sizes_bytes`.

        Returns:
            The timings in the order of the candidates.
        """
        return [timing for timing in self.timings if timing.size_bytes == size_bytes]

    def winners(self, counts: Callable[[ScheduleSource], bool] = lambda _: True) -> list[Timing]:
        """The choice of the rule of docs/tune.md at each size.

        Args:
            counts: returns True for a candidate that may be chosen; by default all may.

        Returns:
            A timing per size at which some candidate counts, smallest size first.
        """
        chosen = []
        for size_bytes in self.sizes_bytes:
            able = [timing for timing in self.at(size_bytes) if counts(timing.source)]
            if able:
                chosen.append(able[choose([1 / timing.time_us for timing in able])])
        return chosen

    def fastest(self) -> list[Timing]:
        """The fastest candidate at each size.

        Returns:
            A timing per size, smallest size first.
        """
        return [min(self.at(size), key=lambda each: each.time_us) for size in self.sizes_bytes]

    def to_dict(self) -> dict[str, Any]:
        """Returns everything as plain data for JSON.

        Returns:
            The attributes, the choice of the rule, and the fastest candidates.
        """
        return {
            "collective": self.collective, "where": self.where, "kind": self.kind,
            "candidates": self.candidates, "notes": self.notes,
            "winners": [_plain(timing) for timing in self.winners()],
            "fastest": [_plain(timing) for timing in self.fastest()],
            "timings": [_plain(timing) for timing in self.timings],
        }  # fmt: skip


def _plain(timing: Timing) -> dict[str, Any]:
    source = timing.source
    return {
        "size_bytes": timing.size_bytes, "algorithm": source.algorithm, "protocol": source.protocol,
        "channels": source.channels, "chunks_per_channel": source.chunks_per_channel,
        "both_ways": source.both_ways, "time_us": timing.time_us,
        "busbw_gb_per_s": timing.bus_gb_per_s(),
    }  # fmt: skip


# --- candidates -----------------------------------------------------------------------------------


def candidates(
    collective: str, options: Options, only: str | None = None
) -> tuple[list[ScheduleSource], list[str]]:
    """The sources of all different schedules, those with the fewest thread blocks first, and the
    reasons for which others cannot be written; `only` names the only algorithm to consider.

    Raises:
        ConfigError: there is no schedule at all.
    """
    sources, problems = _different(collective, options, only)
    if not sources:
        raise ConfigError(problems[0])
    return list(sources), [f"not every candidate can be: {problem}" for problem in problems]


@lru_cache(maxsize=32)
def _different(
    collective: str, options: Options, only: str | None
) -> tuple[tuple[ScheduleSource, ...], tuple[str, ...]]:
    """The sources and the reasons of `candidates`. To find them, hundreds of schedules are written,
    which takes a third of the time of a choice.
    """
    found: dict[int, tuple[int, ScheduleSource]] = {}
    problems: dict[str, None] = {}
    for algorithm, protocol, channels, chunks, both_ways in product(
        [only] if only else algorithms_within(collective, options.reaches), options.protocols,
        options.channels, CHUNKS_PER_CHANNEL, options.both_ways,
    ):  # fmt: skip
        source = ScheduleSource(
            collective=collective, algorithm=algorithm, ranks=options.ranks, channels=channels,
            protocol=protocol, hosts=options.hosts, both_ways=both_ways, chunks_per_channel=chunks,
            **(options.grid if fabric.is_on_grid(algorithm) else {}),
        )  # fmt: skip
        try:
            schedule = source.schedule()
        except ConfigError as error:
            problems[str(error)] = None
            continue
        fingerprint = _core.fingerprint(schedule)
        if fingerprint not in found:
            found[fingerprint] = (_thread_blocks(schedule), source)
    sources = tuple(source for _, source in sorted(found.values(), key=itemgetter(0)))
    return sources, tuple(problems)


def _thread_blocks(schedule: _core.Schedule) -> int:
    """Number of thread blocks of the rank with the most."""
    return max(len(program.blocks) for program in schedule.ranks)


def cuts(call: Call, size_bytes: int) -> bool:
    """True if a call can run an array of about that size."""
    exact_bytes = call.elements(size_bytes) * type_bytes(call.type_name)
    return abs(exact_bytes - size_bytes) <= _SIZE_SHARE * size_bytes


@lru_cache(maxsize=256)
def schedule_of(source: ScheduleSource) -> _core.Schedule:
    """The schedule of a source, created once: on many ranks it takes most of the memory
    of a run.
    """
    return source.schedule()


def _able(sources: Sequence[ScheduleSource], size_bytes: int) -> list[ScheduleSource]:
    able = [source for source in sources if cuts(Call(schedule_of(source)), size_bytes)]
    if not able:
        raise ConfigError(
            f"no schedule of {sources[0].collective} between {sources[0].ranks} ranks cuts an "
            f"array of {size_bytes} bytes; multiples of {4 * sources[0].ranks} are possible"
        )
    return able


# --- simulated ------------------------------------------------------------------------------------


def simulated_timings(
    simulator: tuple[Measure, str], sources: list[ScheduleSource], sizes_bytes: list[int],
    file: Path, options: SweepOptions,
) -> tuple[list[Timing], list[str]]:  # fmt: skip
    """Times all candidates, on all cores.

    Args:
        simulator: times a point (a candidate at a size), and returns the digest of all other inputs
            of the time.
        sources: the candidates.
        sizes_bytes: sizes of the whole array.
        file: file for the measurements.
        options: options of the sweep.

    Raises:
        ConfigError: no schedule can divide an array of one of the sizes. SweepError: a point
        failed.
    """
    from towpath.studies.sweep import run_sweep

    measure, digest = simulator
    timings: list[Timing] = []
    problems: dict[str, None] = {}
    for sizes in _rounds(sizes_bytes):
        asked = [
            (source, size)
            for size in sizes
            for source in with_chance(_able(sources, size), size, timings)
        ]
        points = [{"source": asdict(source), "size_bytes": size} for source, size in asked]
        title = f"up to {sizes[-1]} of {sizes_bytes[-1]} bytes, run"
        results = run_sweep(
            measure, points, file, digest=digest, options=replace(options, title=title)
        )
        for (source, size), result in zip(asked, results, strict=True):
            if result["problem"] is None:
                timings.append(Timing(source, size, result["time_us"]))
            else:
                problems[f"{source.algorithm} hangs at {size} bytes: {result['problem']}"] = None
    return timings, list(problems)


def line_us(own: Sequence[Timing], size_bytes: int) -> float:
    """The time at a larger size on the line through the last two times of a candidate.

    Args:
        own: its times, at least one, the smallest size first.
        size_bytes: the larger size.

    Returns:
        The time in microseconds; the last time if there is no other.
    """
    last = own[-1]
    if len(own) < 2:
        return last.time_us
    slope = (last.time_us - own[-2].time_us) / (last.size_bytes - own[-2].size_bytes)
    return last.time_us + slope * (size_bytes - last.size_bytes)


def least_us(own: Sequence[Timing], size_bytes: int) -> float:
    """The minimum time of a candidate at a larger size: its last time, or 0.4 of the time on the
    line. The factor is an assumption: a ring of chips takes 0.45 of it. The arguments are those of
    `line_us`.
    """
    return max(own[-1].time_us, line_us(own, size_bytes) * _LEAST_SHARE)


def limit_on_line_us(
    own: Sequence[Timing], step_bytes: int, size_bytes: int, longest_us: float
) -> float:
    """The longest time at a step for which the line ends within a time: the inverse of `line_us`.

    Args:
        own: the times of a candidate at smaller sizes, the smallest size first.
        step_bytes: a larger size.
        size_bytes: the end of the line, at this step or a larger size.
        longest_us: the time at the end.

    Returns:
        The time in microseconds.
    """
    if not own:
        return longest_us
    last = own[-1]
    ahead = (size_bytes - step_bytes) / (step_bytes - last.size_bytes)
    return (longest_us + last.time_us * ahead) / (1 + ahead)


def limit_with_chance_us(
    own: Sequence[Timing], step_bytes: int, size_bytes: int, fastest_us: float
) -> float:
    """The longest time at a step for which a candidate has a chance at a larger size, by the rule
    of `with_chance`.

    Args:
        own: its times at sizes below the step, the smallest size first.
        step_bytes: the size of the step.
        size_bytes: the larger size.
        fastest_us: the fastest candidate's time at the step.

    Returns:
        The time in microseconds.
    """
    longest_us = fastest_us * size_bytes / step_bytes
    line_max_us = longest_us / _LEAST_SHARE
    return min(longest_us, limit_on_line_us(own, step_bytes, size_bytes, line_max_us))


def with_chance(
    sources: Sequence[ScheduleSource], size_bytes: int, timings: Sequence[Timing]
) -> list[ScheduleSource]:
    """The candidates that may be the fastest at a size larger than those of `timings`.

    The fastest candidate takes at most k times its time for k times the bytes. A candidate takes at
    least the time of `least_us`.

    Args:
        sources: the candidates.
        size_bytes: the larger size.
        timings: the measurements, each candidate's smallest size first.

    Returns:
        The candidates with a chance, in their order.
    """
    own: dict[ScheduleSource, list[Timing]] = {}
    fastest_us: dict[int, float] = {}
    for each in timings:
        own.setdefault(each.source, []).append(each)
        fastest_us[each.size_bytes] = min(
            each.time_us, fastest_us.get(each.size_bytes, each.time_us)
        )

    def has_chance(source: ScheduleSource) -> bool:
        before = own.get(source, [])
        if not before:
            return True
        last_bytes = before[-1].size_bytes
        return least_us(before, size_bytes) <= fastest_us[last_bytes] * size_bytes / last_bytes

    return [source for source in sources if has_chance(source)]


def _rounds(sizes_bytes: list[int]) -> list[list[int]]:
    """Groups of sizes that are measured together: small sizes take no time, and large ones justify
    a look at the previous results.
    """
    small = [size for size in sizes_bytes if size <= _SMALL_BYTES]
    return [small] * bool(small) + [[size] for size in sizes_bytes if size > _SMALL_BYTES]


# --- live -----------------------------------------------------------------------------------------


def live_timings(
    sources: list[ScheduleSource], sizes_bytes: list[int], options: LiveOptions
) -> Iterator[Timing]:
    """Times all candidates between processes of this host, one after the other, in order of
    completion.

    Raises:
        ConfigError: no schedule can divide an array of one of the sizes. LiveError: a rank failed,
        or the data was wrong.
    """
    from towpath.collectives import live

    able = {size_bytes: set(_able(sources, size_bytes)) for size_bytes in sizes_bytes}
    calls = [
        live.LiveCall(source, tuple(size for size in sizes_bytes if source in able[size]))
        for source in sources
    ]
    asked = [(call.source, size) for call in calls for size in call.sizes_bytes]
    rows = live.measure_calls(calls, sources[0].ranks, options)
    for (source, size_bytes), (_, row) in zip(asked, rows, strict=True):
        measured = row.out_of_place or row.in_place
        assert measured is not None  # every row has one of them
        if measured.wrong:
            reason = (
                f"{source.algorithm} gave {measured.wrong} wrong elements at {size_bytes} bytes"
            )
            raise live.LiveError({0: reason})
        yield Timing(source, size_bytes, measured.time_us)
