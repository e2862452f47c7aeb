# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""What a run found out, as frozen data for a program."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from towpath.collectives.result import (
    FaultCost,
    Fold,
    Limit,
    LinkLoad,
    Measurement,
    Report,
    Row,
    Run,
    Timeline,
)
from towpath.errors import ConfigError
from towpath.specs.sizes import format_size

if TYPE_CHECKING:
    import pandas  # type: ignore[import-untyped]

    from towpath.collectives.simulated import Outcome
    from towpath.pages.provenance import Provenance

# A timeline of more than this by default is too long to read.
TIMELINE_BYTES_MAX = 1 << 20
# And of more than this, to write: a million spans.
TRACE_BYTES_MAX = 1 << 30


@dataclass(frozen=True)
class Traced:
    """What one traced call showed.

    Attributes:
        timeline: what happened when; None where the machine has no timeline.
        links: the load of each link.
        topology_svg: the machine drawn with these loads, or None.
    """

    timeline: Timeline | None
    links: list[LinkLoad]
    topology_svg: str | None


@dataclass(frozen=True)
class Loaded:
    """What the links did in one call.

    Attributes:
        outcome: of the call.
        draw: draws the machine with loads of links, if it can.
        limit: what limits the call; None where that is not known.
    """

    outcome: Outcome
    draw: Callable[[list[LinkLoad]], str | None]
    limit: Limit | None

    @cached_property
    def links(self) -> list[LinkLoad]:
        """The load of each link."""
        return self.outcome.links

    @cached_property
    def topology_svg(self) -> str | None:
        """The machine drawn with these loads, or None."""
        return self.draw(self.links)


@dataclass(frozen=True)
class Part:
    """The sizes of a run that one schedule served.

    Attributes:
        run: the schedule, the place and the rows.
        algorithm: the name of the algorithm; None for a schedule from a file.
        trace: simulates the same call once more at a size in bytes, traced; None when live.
        load: simulates it at a size in bytes for what its links do and what limits it, likewise.
    """

    run: Run
    algorithm: str | None
    trace: Callable[[int], Traced] | None = field(default=None, repr=False, compare=False)
    load: Callable[[int], Loaded] | None = field(default=None, repr=False, compare=False)

    @cached_property
    def loaded(self) -> Loaded | None:
        """What the links do at the largest size; None when live."""
        sizes = [row.size_bytes for row in self.run.rows]
        return None if self.load is None else self.load(max(sizes))


@dataclass(frozen=True, repr=False)
class RunRow:
    """One size of a run.

    Attributes:
        size_bytes: the whole array, rounded to what the schedule can cut.
        count: its elements.
        algorithm: the algorithm that ran; the schedule's name where it came from a file.
        protocol: "Simple", "LL" or "LL128".
        channels: parallel channels.
        out_of_place: with input and output apart; None where the schedule does not run so.
        in_place: with input and output in the same memory; None likewise.
        fault_cost: what failing links cost; None where none may fail.
        error_pct: median and 90th percentile of the absolute errors, in percent, of the measured
            rows nearest to it; None where the prediction is not validated.
        fold: how many ranks were simulated; None when live.
    """

    size_bytes: int
    count: int
    algorithm: str
    protocol: str
    channels: int
    out_of_place: Measurement | None
    in_place: Measurement | None
    fault_cost: FaultCost | None = None
    error_pct: tuple[float, float] | None = None
    fold: Fold | None = None

    @property
    def _measurement(self) -> Measurement:
        found = self.out_of_place or self.in_place
        if found is None:
            raise ConfigError(f"schedule {self.algorithm} runs neither in place nor out of place")
        return found

    @property
    def time_us(self) -> float:
        """Time of one call in microseconds: out of place where it runs so, else in place."""
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
        """Wrong elements on all ranks, in and out of place; None where data was not checked."""
        ways = [way for way in (self.out_of_place, self.in_place) if way is not None]
        checked = [way.wrong for way in ways if way.wrong is not None]
        return sum(checked) if checked else None

    def to_dict(self) -> dict[str, Any]:
        """It as plain data for JSON, with the properties.

        Returns:
            One key per attribute and property.
        """
        return {
            "size_bytes": self.size_bytes, "count": self.count, "algorithm": self.algorithm,
            "protocol": self.protocol, "channels": self.channels, "time_us": self.time_us,
            "algorithm_bandwidth_gb_per_s": self.algorithm_bandwidth_gb_per_s,
            "bus_bandwidth_gb_per_s": self.bus_bandwidth_gb_per_s, "wrong": self.wrong,
            "out_of_place": None if self.out_of_place is None else asdict(self.out_of_place),
            "in_place": None if self.in_place is None else asdict(self.in_place),
            "fault_cost": None if self.fault_cost is None else asdict(self.fault_cost),
            "error_pct": None if self.error_pct is None else list(self.error_pct),
            "fold": None if self.fold is None else asdict(self.fold),
        }  # fmt: skip

    def __repr__(self) -> str:
        return f"RunRow({_row_text(self)})"


def _row_text(row: RunRow) -> str:
    checked = "" if row.wrong is None else f", {row.wrong} wrong"
    return (
        f"{format_size(row.size_bytes)}, {row.time_us:.2f} us, "
        f"{row.bus_bandwidth_gb_per_s:.2f} GB/s, {row.algorithm}, {row.protocol}, "
        f"{row.channels} channel{'' if row.channels == 1 else 's'}{checked}"
    )


@dataclass(frozen=True, repr=False)
class RunResult:
    """What a run of a collective found out.

    With a single size, `time_us` and the other figures of its row are attributes of the result,
    too; with several, `rows` has them.

    Attributes:
        machine: the name of the machine, or "live".
        collective: what ran.
        kind: "simulated" or "live".
        rows: one per size, in the order asked for.
        parts: the rows by the schedule that served them.
        provenance: version, date, and a hash of the machine and of each schedule.
        command: what was typed, for the report; empty in a program.
    """

    machine: str
    collective: str
    kind: str
    rows: tuple[RunRow, ...]
    parts: tuple[Part, ...]
    provenance: Provenance
    command: str = ""

    @property
    def runs(self) -> list[Run]:
        """The parts as tables, pages and JSON show them."""
        return [part.run for part in self.parts]

    @property
    def row(self) -> RunRow:
        """The row of a run of a single size.

        Raises:
            ConfigError: there are several sizes.
        """
        if len(self.rows) != 1:
            raise ConfigError(
                f"the result has {len(self.rows)} sizes; look at each of its .rows instead"
            )
        return self.rows[0]

    @property
    def time_us(self) -> float:
        """Time of one call in microseconds, of a single size."""
        return self.row.time_us

    @property
    def algorithm_bandwidth_gb_per_s(self) -> float:
        """Array size over time in 1e9 bytes per second, of a single size."""
        return self.row.algorithm_bandwidth_gb_per_s

    @property
    def bus_bandwidth_gb_per_s(self) -> float:
        """Algorithm bandwidth times the bus factor, in 1e9 bytes per second, of a single size."""
        return self.row.bus_bandwidth_gb_per_s

    @property
    def algorithm(self) -> str:
        """The algorithm that ran, of a single size."""
        return self.row.algorithm

    @property
    def protocol(self) -> str:
        """The protocol that ran, of a single size."""
        return self.row.protocol

    @property
    def channels(self) -> int:
        """Parallel channels, of a single size."""
        return self.row.channels

    @property
    def wrong(self) -> int | None:
        """Wrong elements over all sizes; None where no data was checked."""
        checked = [row.wrong for row in self.rows if row.wrong is not None]
        return sum(checked) if checked else None

    @cached_property
    def links(self) -> list[LinkLoad]:
        """The load of each link during one call of the largest size; empty when live."""
        loaded = self._part_of(max(row.size_bytes for row in self.rows)).loaded
        return [] if loaded is None else loaded.links

    @cached_property
    def limit(self) -> Limit | None:
        """What limits the largest size: a link, copies, reductions, latencies, slots.

        None when live, and on machines without GPUs.
        """
        loaded = self._part_of(max(row.size_bytes for row in self.rows)).loaded
        return None if loaded is None else loaded.limit

    def to_dict(self) -> dict[str, Any]:
        """It as plain data for JSON.

        Returns:
            Machine, collective, rows, the runs as tables show them, and the provenance.
        """
        return {
            "machine": self.machine, "collective": self.collective, "kind": self.kind,
            "rows": [row.to_dict() for row in self.rows],
            "runs": [run.to_dict() for run in self.runs],
            "provenance": self.provenance.to_dict(),
        }  # fmt: skip

    def to_json(self) -> str:
        """It as JSON text.

        Returns:
            `to_dict()` as text.
        """
        return json.dumps(self.to_dict(), indent=2)

    def to_dataframe(self) -> pandas.DataFrame:
        """The rows as a table of pandas.

        Returns:
            One line per size; columns as in `RunRow.to_dict`, without nested ones.

        Raises:
            ConfigError: pandas is not installed.
        """
        try:
            import pandas
        except ImportError:
            raise ConfigError("pandas is not installed: pip install pandas") from None
        nested = ("out_of_place", "in_place", "fault_cost", "error_pct", "fold")
        rows = [row.to_dict() for row in self.rows]
        return pandas.DataFrame(
            [{name: row[name] for name in row if name not in nested} for row in rows]
        )

    def report(self, path: str | os.PathLike[str], *, trace_size_bytes: int | None = None) -> None:
        """Writes an HTML page that needs no other file: tables, curves, timeline, loads of links.

        Args:
            path: the file, which is replaced.
            trace_size_bytes: the size of the timeline; None: the largest up to 1 MiB.

        Raises:
            ConfigError: the size is above 1 GiB.
        """
        from towpath.pages.report import write_report

        runs = [traced_run(part, trace_size_bytes) for part in self.parts]
        title = f"{self.collective}: {runs[0].where}"
        write_report(Report(title, self.command, runs), os.fspath(path), self.provenance)

    def trace(self, path: str | os.PathLike[str], *, size_bytes: int | None = None) -> None:
        """Writes what one call did as a trace that ui.perfetto.dev opens.

        Args:
            path: the file, which is replaced.
            size_bytes: the size of the call; None: the largest up to 1 MiB.

        Raises:
            ConfigError: the run was live, the machine has no timeline, or the size is above 1 GiB.
        """
        from towpath.pages.perfetto import write_perfetto

        size = timeline_size([row.size_bytes for row in self.rows], size_bytes)
        part = self._part_of(size)
        timeline = None if part.trace is None else part.trace(size).timeline
        if timeline is None:
            raise ConfigError(f"a {self.kind} run on {self.machine} has no timeline to trace")
        write_perfetto(timeline, os.fspath(path))

    def _part_of(self, size_bytes: int) -> Part:
        """The part with the row nearest in size."""

        def distance(part: Part) -> int:
            return min(abs(row.size_bytes - size_bytes) for row in part.run.rows)

        return min(self.parts, key=distance)

    def __repr__(self) -> str:
        where = f"RunResult({self.collective} on {self.machine}"
        if len(self.rows) == 1:
            return f"{where}: {_row_text(self.rows[0])})"
        sizes = [row.size_bytes for row in self.rows]
        best = max(row.bus_bandwidth_gb_per_s for row in self.rows)
        return (
            f"{where}: {len(sizes)} sizes, {format_size(min(sizes))} to "
            f"{format_size(max(sizes))}, up to {best:.2f} GB/s)"
        )


def rows_of(part: Part) -> list[RunRow]:
    """The rows of a part, each with the schedule that served it."""
    run = part.run
    return [_run_row(row, part.algorithm or run.schedule, run) for row in run.rows]


def _run_row(row: Row, algorithm: str, run: Run) -> RunRow:
    return RunRow(
        row.size_bytes, row.count, algorithm, run.protocol, run.channels, row.out_of_place,
        row.in_place, row.fault_cost, row.error_pct, row.fold,
    )  # fmt: skip


def traced_run(part: Part, size_bytes: int | None = None) -> Run:
    """The run of a part with a timeline, and with loads at its largest size; as it is if live.

    Raises:
        ConfigError: the size is above 1 GiB.
    """
    loaded = part.loaded
    if part.trace is None or loaded is None:
        return part.run
    traced = part.trace(timeline_size([row.size_bytes for row in part.run.rows], size_bytes))
    return replace(
        part.run, timeline=traced.timeline, links=loaded.links, topology_svg=loaded.topology_svg,
        limit=None if loaded.limit is None else loaded.limit.sentence,
    )  # fmt: skip


def timeline_size(sizes_bytes: list[int], size_bytes: int | None) -> int:
    """The size whose timeline is drawn: the one asked for, or the largest that can be read.

    Raises:
        ConfigError: the one asked for is above 1 GiB.
    """
    if size_bytes is None:
        return max(
            (size for size in sizes_bytes if size <= TIMELINE_BYTES_MAX), default=min(sizes_bytes)
        )
    if size_bytes > TRACE_BYTES_MAX:
        raise ConfigError(
            f"the size of the timeline is {size_bytes} bytes; allowed is up to 1G, a million spans"
        )
    return size_bytes
