# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""The result of a collective at one size: plain, frozen data for tables, pages and JSON."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any

from towpath.errors import ConfigError
from towpath.specs.sizes import format_size

if TYPE_CHECKING:
    from towpath import _core
    from towpath.collectives.simulated import Outcome

_REDUCING = ("all_reduce", "reduce_scatter", "reduce", "barrier")
_ROOTED = ("broadcast", "reduce", "gather", "scatter")

# Bus bandwidth over algorithm bandwidth, as nccl-tests defines it (its PERFORMANCE.md): what every
# rank must at least send through its own link, over the size of the array.
_BUS_FACTORS = {
    "all_reduce": lambda ranks: 2 * (ranks - 1) / ranks,
    "all_gather": lambda ranks: (ranks - 1) / ranks,
    "reduce_scatter": lambda ranks: (ranks - 1) / ranks,
    "all_to_all": lambda ranks: (ranks - 1) / ranks,
    "broadcast": lambda ranks: 1.0,
    "reduce": lambda ranks: 1.0,
    "gather": lambda ranks: (ranks - 1) / ranks,
    "scatter": lambda ranks: (ranks - 1) / ranks,
    "all_to_all_v": lambda ranks: (ranks - 1) / ranks,
    "send_recv": lambda ranks: 1.0,
    "barrier": lambda ranks: 0.0,
}


def bus_factor(collective: str, ranks: int) -> float:
    """Bus bandwidth divided by algorithm bandwidth.

    It makes results comparable across numbers of ranks: a perfect ring shows the speed of its
    links. In-switch reduction sends less than the factor assumes, so the result may exceed the rate
    of the wire.

    Args:
        collective: name of the collective. A barrier has no bandwidth, so its factor is 0. The
            factor of all_to_all_v is that of whole parts.
        ranks: number of ranks, at least 1.

    Returns:
        The factor, which has no unit.

    Raises:
        ValueError: the collective is unknown, or there are no ranks.

    >>> bus_factor("all_reduce", 8)
    1.75
    """
    if collective not in _BUS_FACTORS:
        raise ValueError(f"collective is '{collective}'; choose one of {', '.join(_BUS_FACTORS)}")
    if ranks < 1:
        raise ValueError(f"ranks is {ranks}; it must be at least 1")
    return _BUS_FACTORS[collective](ranks)


@dataclass(frozen=True)
class Percentiles:
    """Spread of the times of single calls in a live measurement, in microseconds.

    Attributes:
        min_us: the shortest call of any rank.
        p25_us: a quarter of the calls took no longer; mean over ranks.
        p75_us: three quarters of the calls took no longer; mean over ranks.
        p99_us: 99 of 100 calls took no longer, on the slowest rank.
        max_us: the longest call of any rank.
    """

    min_us: float
    p25_us: float
    p75_us: float
    p99_us: float
    max_us: float


@dataclass(frozen=True)
class Measurement:
    """One size in one form, in place or out of place.

    Attributes:
        time_us: time of one call in microseconds: simulated, or the median of a live measurement.
        algbw_gb_per_s: array size over time, in 1e9 bytes per second.
        busbw_gb_per_s: algbw_gb_per_s times bus_factor().
        wrong: number of wrong elements on all ranks together; None if only time was simulated and
            data was not checked.
        percentiles: spread of a live measurement; None for a simulation.
    """

    time_us: float
    algbw_gb_per_s: float
    busbw_gb_per_s: float
    wrong: int | None
    percentiles: Percentiles | None = None


def measure(
    time_us: float, size_bytes: int, collective: str, ranks: int, wrong: int | None,
    *, percentiles: Percentiles | None = None,
) -> Measurement:  # fmt: skip
    """Computes the bandwidths from a time.

    Args:
        time_us: time of one call in microseconds, above zero.
        size_bytes: size of the whole array, also for all_gather and reduce_scatter.
        collective: name of the collective.
        ranks: number of ranks.
        wrong: number of wrong elements; None if data was not checked.
        percentiles: spread of a live measurement; None for a simulation.

    Raises:
        ValueError: the time is not above zero, or bus_factor() does not support the collective.

    >>> measure(100.0, 1_000_000, "all_reduce", 2, 0).busbw_gb_per_s
    10.0
    """
    if not time_us > 0:
        raise ValueError(f"time_us is {time_us}; it must be above 0")
    algbw_gb_per_s = size_bytes / time_us / 1e3
    busbw_gb_per_s = algbw_gb_per_s * bus_factor(collective, ranks)
    return Measurement(time_us, algbw_gb_per_s, busbw_gb_per_s, wrong, percentiles)


@dataclass(frozen=True)
class LinkFailure:
    """Effects of a fault of a link during one call.

    Attributes:
        link: its two ends, "chip 0 E9 - chip 1 E1".
        fault: the fault, "every=100us,training=5us".
        drops: number of drops.
        down_us: total time for which the link was down.
        is_up: True if the link was up at the end.
        frames_lost: number of frames lost, in both directions.
        resent_bytes: payload sent again, in both directions.
    """

    link: str
    fault: str
    drops: int
    down_us: float
    is_up: bool
    frames_lost: int
    resent_bytes: int


@dataclass(frozen=True)
class FaultCost:
    """Cost of failing links for one call.

    Attributes:
        time_us: time of the call, out of place if the schedule supports it.
        time_without_us: time of the same call without faults.
        links: the links with a fault.
    """

    time_us: float
    time_without_us: float
    links: list[LinkFailure]


@dataclass(frozen=True)
class Fold:
    """Number of ranks that were simulated: ranks with identical behavior are simulated once.

    Attributes:
        ranks: number of all ranks.
        ranks_simulated: number of simulated ranks.
        note: the reason for not simulating fewer, or a remark about the time; may be empty.
    """

    ranks: int
    ranks_simulated: int
    note: str

    @property
    def is_folded(self) -> bool:
        """True if some ranks represent other ranks."""
        return self.ranks_simulated < self.ranks

    @property
    def sentence(self) -> str:
        """Returns it as a sentence."""
        note = f": {self.note}" if self.note else ""
        if not self.is_folded:
            return f"all {self.ranks} ranks are simulated{note}"
        return (
            f"{self.ranks_simulated} of {self.ranks} ranks are simulated, the others do what these "
            f"do at the same time{note}"
        )


@dataclass(frozen=True)
class Timeline:
    """Events of one simulated call with their times. timeline.py reads it.

    Attributes:
        size_bytes: size of the array in that call.
        tracks: one text per line: "rank 3 thread block 5" or "link node0/gpu3 > node0/nvswitch".
        names: possible names of a span: "wait", a step's type, "segment".
        spans: (track, name, begin_ps, end_ps, value); track and name index the lists above, times
            are picoseconds, value is a thread block's step or a link's bytes.
    """

    size_bytes: int
    tracks: list[str]
    names: list[str]
    spans: list[tuple[int, int, int, int, int]]


@dataclass(frozen=True)
class LinkLoad:
    """One direction of a wire during one call.

    Attributes:
        from_name: device at its start.
        to_name: device at its end.
        kind: nvlink, pcie, network, socket or ethernet.
        size_bytes: number of bytes carried.
        busy_fraction: part of the call's time in which it carried data, 0 to 1.
    """

    from_name: str
    to_name: str
    kind: str
    size_bytes: int
    busy_fraction: float


@dataclass(frozen=True)
class Limit:
    """The limit of a call.

    Attributes:
        kind: a kind of link ("nvlink", "pcie", "network", "socket"), "copy", "reduction",
            "latency", "slots", or "several" if no single cause dominates.
        size_bytes: size of the array.
        sentence: the limit as a sentence.
        weights: by kind, the part of the time that is proportional to it. The value is 1 if a link
            that is a tenth slower makes the call a tenth longer. For slots, it is the part of the
            time that twice the number would save. Empty if the run is too large to be simulated
            again.
    """

    kind: str
    size_bytes: int
    sentence: str
    weights: dict[str, float]


@dataclass(frozen=True, repr=False)
class RunRow:
    """One size of a run, with its schedule.

    Attributes:
        size_bytes: size of the whole array, rounded to a size that the schedule can divide.
        count: number of elements.
        algorithm: the algorithm of the run; the schedule's name if it came from a file; "direct"
            for a live run without a schedule.
        schedule: the schedule's name.
        protocol: "Simple", "LL" or "LL128"; "none" without a schedule.
        channels: number of parallel channels.
        out_of_place: the measurement with separate input and output; None if the schedule does not
            support this.
        in_place: the measurement with input and output in the same memory; None if the schedule
            does not support this.
        fault_cost: the cost of failing links; None if no link may fail.
        error_pct: median and 90th percentile of the absolute errors, in percent, of the measured
            rows nearest to it; None if the prediction is not validated.
        fold: number of simulated ranks; None for a live run.
        choice: a note about the choice of the schedule, if it needs an explanation.
        error_rows: number of measured rows behind `error_pct`.
        is_simulated: False for a live run, and if the time is a library's own prediction because
            Towpath has no schedule of its algorithm.
        steps: the simulated schedule; None if there is none.
        again: simulates the call once more at a size, with or without a trace; None for a live run.
    """

    size_bytes: int
    count: int
    algorithm: str
    schedule: str
    protocol: str
    channels: int
    out_of_place: Measurement | None
    in_place: Measurement | None
    fault_cost: FaultCost | None = None
    error_pct: tuple[float, float] | None = None
    fold: Fold | None = None
    choice: str | None = None
    error_rows: int = 0
    is_simulated: bool = True
    steps: _core.Schedule | None = field(default=None, repr=False, compare=False)
    again: Callable[[int, bool], Outcome] | None = field(default=None, repr=False, compare=False)

    def at_least(self, least_us: float, collective: str, ranks: int) -> RunRow:
        """The row with no time below a limit.

        Args:
            least_us: the limit in microseconds.
            collective: name of the collective.
            ranks: number of ranks.

        Returns:
            The same row, or one with longer times and their bandwidths.
        """
        if all(way.time_us >= least_us for way in self.measurements):
            return self

        def at_least(way: Measurement | None) -> Measurement | None:
            if way is None:
                return None
            time_us = max(way.time_us, least_us)
            return measure(time_us, self.size_bytes, collective, ranks, way.wrong)

        return replace(
            self, out_of_place=at_least(self.out_of_place), in_place=at_least(self.in_place)
        )

    @property
    def measurements(self) -> list[Measurement]:
        """All measurements, out of place before in place."""
        return [way for way in (self.out_of_place, self.in_place) if way is not None]

    @property
    def _measurement(self) -> Measurement:
        if not self.measurements:
            raise ConfigError(
                f"schedule {self.schedule} supports neither in place nor out of place"
            )
        return self.measurements[0]

    @property
    def time_us(self) -> float:
        """Time of one call in microseconds: out of place if the schedule supports it, and otherwise
        in place.
        """
        return self._measurement.time_us

    @property
    def algorithm_bandwidth_gb_per_s(self) -> float:
        """Array size over time, in 1e9 bytes per second."""
        return self._measurement.algbw_gb_per_s

    @property
    def bus_bandwidth_gb_per_s(self) -> float:
        """Algorithm bandwidth times the bus factor of nccl-tests, in 1e9 bytes per second."""
        return self._measurement.busbw_gb_per_s

    @property
    def wrong(self) -> int | None:
        """Number of wrong elements on all ranks, in and out of place; None if data was not
        checked.
        """
        checked = [way.wrong for way in self.measurements if way.wrong is not None]
        return sum(checked) if checked else None

    def to_dict(self) -> dict[str, Any]:
        """The row as plain data for JSON.

        Returns:
            One key per attribute and property.
        """
        return {
            "size_bytes": self.size_bytes, "count": self.count, "algorithm": self.algorithm,
            "schedule": self.schedule, "protocol": self.protocol, "channels": self.channels,
            "time_us": self.time_us,
            "algorithm_bandwidth_gb_per_s": self.algorithm_bandwidth_gb_per_s,
            "bus_bandwidth_gb_per_s": self.bus_bandwidth_gb_per_s, "wrong": self.wrong,
            "out_of_place": None if self.out_of_place is None else asdict(self.out_of_place),
            "in_place": None if self.in_place is None else asdict(self.in_place),
            "fault_cost": None if self.fault_cost is None else asdict(self.fault_cost),
            "error_pct": None if self.error_pct is None else list(self.error_pct),
            "fold": None if self.fold is None else asdict(self.fold),
            "choice": self.choice, "error_rows": self.error_rows,
            "is_simulated": self.is_simulated,
        }  # fmt: skip

    def __repr__(self) -> str:
        return f"RunRow({self.text()})"

    def text(self) -> str:
        """The row in one line.

        Returns:
            Size, time, bus bandwidth and schedule.
        """
        checked = "" if self.wrong is None else f", {self.wrong} wrong"
        return (
            f"{format_size(self.size_bytes)}, {self.time_us:.2f} us, "
            f"{self.bus_bandwidth_gb_per_s:.2f} GB/s, {self.algorithm}, {self.protocol}, "
            f"{self.channels} channel{'' if self.channels == 1 else 's'}{checked}"
        )


def reduces(collective: str) -> bool:
    """True if a collective has a reduction."""
    return collective in _REDUCING


def has_root(collective: str) -> bool:
    """True if a collective has a root rank."""
    return collective in _ROOTED
