# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""What a run found out: plain, frozen data that the table, the report and --json are made of."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field, replace

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
    links. In-switch reduction sends less than the factor assumes and may exceed the wire.

    Args:
        collective: its name. A barrier has no bandwidth, so its factor is 0; that of all_to_all_v
            is of whole parts.
        ranks: how many take part, at least 1.

    Returns:
        The factor, without a unit.

    Raises:
        ValueError: the collective is none of these, or there are no ranks.

    >>> bus_factor("all_reduce", 8)
    1.75
    """
    if collective not in _BUS_FACTORS:
        raise ValueError(f"collective is '{collective}'; allowed are {', '.join(_BUS_FACTORS)}")
    if ranks < 1:
        raise ValueError(f"ranks is {ranks}; it must be at least 1")
    return _BUS_FACTORS[collective](ranks)


@dataclass(frozen=True)
class Percentiles:
    """How the times of single calls of a live measurement spread, in microseconds.

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
    """One size, run one way.

    Attributes:
        time_us: time of one call in microseconds: simulated, or the median of a live measurement.
        algbw_gb_per_s: array size over time, in 1e9 bytes per second.
        busbw_gb_per_s: algbw_gb_per_s times bus_factor().
        wrong: elements that came out wrong on all ranks together; None when the run kept time
            only and data was not checked.
        percentiles: of a live measurement; None when simulated.
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
    """The bandwidths that follow from a time.

    Args:
        time_us: time of one call in microseconds, above zero.
        size_bytes: the whole array, also for all_gather and reduce_scatter.
        collective: as for bus_factor().
        ranks: as for bus_factor().
        wrong: as in Measurement.
        percentiles: as in Measurement.

    Raises:
        ValueError: the time is not above zero, or bus_factor() does not know the collective.

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
    """What a link with a fault did during one call.

    Attributes:
        link: its two ends, "chip 0 E9 - chip 1 E1".
        fault: what is wrong with it, "every=100us,training=5us".
        drops: how often it went down.
        down_us: for how long, all together.
        is_up: whether it was up again at the end.
        frames_lost: of those sent, in both directions.
        resent_bytes: payload that was sent again, likewise.
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
    """What links that fail cost one call.

    Attributes:
        time_us: of the call, out of place where it runs that way.
        time_without_us: of the same call where no link fails.
        links: those that have a fault.
    """

    time_us: float
    time_without_us: float
    links: list[LinkFailure]


@dataclass(frozen=True)
class Fold:
    """How many ranks were simulated for all: where ranks do the same at the same time, the first.

    Attributes:
        ranks: all.
        ranks_simulated: those that were simulated.
        note: why not fewer, or what is to be known of the time; may be empty.
    """

    ranks: int
    ranks_simulated: int
    note: str

    @property
    def is_folded(self) -> bool:
        """Whether some ranks stand for others."""
        return self.ranks_simulated < self.ranks

    @property
    def sentence(self) -> str:
        """It in words."""
        note = f": {self.note}" if self.note else ""
        if not self.is_folded:
            return f"all {self.ranks} ranks are simulated{note}"
        return (
            f"{self.ranks_simulated} of {self.ranks} ranks are simulated, the others do what these "
            f"do at the same time{note}"
        )


@dataclass(frozen=True)
class Row:
    """One size.

    Attributes:
        size_bytes: the whole array.
        count: its elements.
        out_of_place: input and output apart; None when the schedule does not run that way.
        in_place: input and output in the same memory; None likewise.
        fault_cost: where links fail; else None.
        error_pct: median and 90th percentile of the absolute errors, in percent, of the measured
            rows nearest to it; None where the prediction is not validated.
        fold: how many ranks were simulated; None when live.
    """

    size_bytes: int
    count: int
    out_of_place: Measurement | None
    in_place: Measurement | None
    fault_cost: FaultCost | None = None
    error_pct: tuple[float, float] | None = None
    fold: Fold | None = None


@dataclass(frozen=True)
class Timeline:
    """What happened when, in one simulated call. timeline.py reads it.

    Attributes:
        size_bytes: the array's size in that call.
        tracks: one text per line: "rank 3 thread block 5" or "link node0/gpu3 > node0/nvswitch".
        names: what a span may be called: "wait", a step's type, "segment".
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
        from_name: device at its beginning.
        to_name: device at its end.
        kind: nvlink, pcie, network, socket or ethernet.
        size_bytes: bytes it carried.
        busy_fraction: part of the call's time in which it carried something, 0 to 1.
    """

    from_name: str
    to_name: str
    kind: str
    size_bytes: int
    busy_fraction: float


@dataclass(frozen=True)
class Limit:
    """What limits a call.

    Attributes:
        kind: a kind of link ("nvlink", "pcie", "network", "socket"), "copy", "reduction",
            "latency", "slots", or "several" where nothing stands out.
        size_bytes: the array's size.
        sentence: it in words.
        weights: by kind, the part of the time that is in proportion to it: 1 where a link that is a
            tenth slower makes the call a tenth longer; of slots, the part of the time that twice
            as many would save. Empty where the run is too large to be simulated again.
    """

    kind: str
    size_bytes: int
    sentence: str
    weights: dict[str, float]


@dataclass(frozen=True)
class Run:
    """One schedule, over all sizes, in one place.

    Attributes:
        kind: "simulated" or "live".
        where: the machine and its ranks, or this host.
        collective: as for bus_factor().
        schedule: its name; "direct" for a live run without one.
        protocol: Simple, LL or LL128; "none" without a schedule.
        channels: parallel copies of the pattern.
        ranks: how many take part.
        type: element type, "float32".
        operation: "sum"; ignored where the collective does not reduce.
        root: ignored where the collective has none.
        rows: one per size, smallest first.
        iterations: timed calls per size.
        warmup: calls before them that are not timed.
        timeline: of one size; None when none was asked for or the run was live.
        links: loads of one call at the largest size; empty when live.
        topology_svg: the machine as an SVG drawing with these loads, or None.
        notes: sentences the reader should know.
        is_chosen: whether the model chose the schedule for these sizes.
        choice: how it was chosen, where that needs a word; the notes have it, too.
        limit: what limits the largest size, in words; None where nothing is known.
    """

    kind: str
    where: str
    collective: str
    schedule: str
    protocol: str
    channels: int
    ranks: int
    type: str
    operation: str
    root: int
    rows: list[Row]
    iterations: int
    warmup: int
    timeline: Timeline | None = None
    links: list[LinkLoad] = field(default_factory=list)
    topology_svg: str | None = None
    notes: list[str] = field(default_factory=list)
    is_chosen: bool = False
    choice: str | None = None
    limit: str | None = None

    @property
    def measurements(self) -> list[Measurement]:
        """All that were taken, out of place before in place, size by size."""
        both = (way for row in self.rows for way in (row.out_of_place, row.in_place))
        return [measurement for measurement in both if measurement is not None]

    @property
    def reduces(self) -> bool:
        """Whether `operation` means anything."""
        return self.collective in ("all_reduce", "reduce_scatter", "reduce", "barrier")

    @property
    def has_root(self) -> bool:
        """Whether `root` means anything."""
        return self.collective in ("broadcast", "reduce", "gather", "scatter")

    @property
    def busbw_mean_gb_per_s(self) -> float | None:
        """Mean over all measurements in 1e9 bytes per second, as nccl-tests does; None for none."""
        rates = [measurement.busbw_gb_per_s for measurement in self.measurements]
        return sum(rates) / len(rates) if rates else None

    @property
    def wrong(self) -> int | None:
        """Wrong elements of all checked measurements together; None when none was checked."""
        checked = [m.wrong for m in self.measurements if m.wrong is not None]
        return sum(checked) if checked else None

    def to_dict(self) -> dict:
        """Plain data without `timeline` and `topology_svg`: the trace and the report hold those."""
        plain = asdict(replace(self, timeline=None, topology_svg=None))
        del plain["timeline"], plain["topology_svg"]
        return plain

    def to_json(self) -> str:
        """to_dict() as JSON text."""
        return json.dumps(self.to_dict(), indent=2)


@dataclass(frozen=True)
class Report:
    """What one command found out.

    Attributes:
        title: one line.
        command: what was typed.
        runs: one per schedule and place.
    """

    title: str
    command: str
    runs: list[Run]

    def to_json(self) -> str:
        """Title, command and every run's to_dict() as JSON text."""
        runs = [run.to_dict() for run in self.runs]
        return json.dumps({"title": self.title, "command": self.command, "runs": runs}, indent=2)
