# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""The result of a run: a row per size, and the data derived from it."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from itertools import groupby
from typing import TYPE_CHECKING, Any

from towpath.api.schedule import Schedule
from towpath.collectives.result import Limit, LinkLoad, Measurement, RunRow, Timeline
from towpath.errors import ConfigError
from towpath.specs.sizes import format_size

if TYPE_CHECKING:
    import pandas  # type: ignore[import-untyped]

    from towpath.collectives.simulated import Outcome
    from towpath.pages.provenance import Provenance
    from towpath.pages.recorders import Calls

# A longer timeline than that of this size is hard to read; it is the default's upper bound.
TIMELINE_BYTES_MAX = 1 << 20
# A trace of a larger size has more than a million spans.
TRACE_BYTES_MAX = 1 << 30
_NESTED = ("out_of_place", "in_place", "fault_cost", "error_pct", "fold", "choice")


@dataclass(frozen=True, repr=False)
class RunResult:
    """The result of a collective on a machine or between live processes.

    If the run has a single size, `time_us` and the other values of its row are also attributes of
    the result. `rows` has one entry for each size.

    Attributes:
        machine: the name of the machine, or "live".
        collective: the collective that ran.
        kind: "simulated" or "live".
        where: the machine and its ranks as text, or this host.
        ranks: number of ranks.
        dtype: the element type.
        op: the reduction; ignored if the collective has none.
        root: the root rank; ignored if the collective has none.
        is_chosen: True if the schedule was chosen for each size.
        iterations: number of timed calls per size.
        warmup: number of calls before the timed ones.
        notes: sentences for the reader.
        rows: one per size, in the order of the request.
        provenance: version, date, and a hash of the machine and of each schedule.
        command: the command line, for the page; empty in a program.
        draw: draws the machine with the loads of its links; None if it cannot be drawn.
        has_limit: True if `limit` is available.
    """

    machine: str
    collective: str
    kind: str
    where: str
    ranks: int
    dtype: str
    op: str
    root: int
    is_chosen: bool
    iterations: int
    warmup: int
    notes: tuple[str, ...]
    rows: tuple[RunRow, ...]
    provenance: Provenance
    command: str = ""
    draw: Callable[[list[LinkLoad]], str | None] | None = field(default=None, compare=False)
    has_limit: bool = field(default=False, compare=False)

    @property
    def row(self) -> RunRow:
        """The row of a run with a single size.

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
        """Time of one call in microseconds, for a single size."""
        return self.row.time_us

    @property
    def algorithm_bandwidth_gb_per_s(self) -> float:
        """Array size over time in 1e9 bytes per second, for a single size."""
        return self.row.algorithm_bandwidth_gb_per_s

    @property
    def bus_bandwidth_gb_per_s(self) -> float:
        """Algorithm bandwidth times the bus factor, in 1e9 bytes per second, for a single size."""
        return self.row.bus_bandwidth_gb_per_s

    @property
    def algorithm(self) -> str:
        """The algorithm of the run, for a single size."""
        return self.row.algorithm

    @property
    def protocol(self) -> str:
        """The protocol of the run, for a single size."""
        return self.row.protocol

    @property
    def channels(self) -> int:
        """Number of parallel channels, for a single size."""
        return self.row.channels

    @property
    def wrong(self) -> int | None:
        """Wrong elements over all sizes; None if no data was checked."""
        checked = [row.wrong for row in self.rows if row.wrong is not None]
        return sum(checked) if checked else None

    @property
    def measurements(self) -> list[Measurement]:
        """All measurements, out of place before in place, size by size."""
        return [each for row in self.rows for each in row.measurements]

    @property
    def busbw_mean_gb_per_s(self) -> float | None:
        """Mean over all measurements in 1e9 bytes per second, as in nccl-tests; None if there are
        none.
        """
        rates = [measurement.busbw_gb_per_s for measurement in self.measurements]
        return sum(rates) / len(rates) if rates else None

    def by_schedule(self) -> list[list[RunRow]]:
        """Groups consecutive rows with the same schedule.

        Returns:
            A list of rows per group.
        """
        key = lambda row: (row.schedule, row.protocol, row.channels)  # noqa: E731
        return [list(rows) for _, rows in groupby(self.rows, key)]

    def schedule(self, size_bytes: int | None = None) -> Schedule:
        """The schedule of a size.

        Args:
            size_bytes: the size of a row; None: the largest.

        Returns:
            The schedule, which `Schedule.save` can write.

        Raises:
            ConfigError: no schedule was used: the run was live, or its time is a library's
            prediction.
        """
        wanted = max(row.size_bytes for row in self.rows) if size_bytes is None else size_bytes
        row = min(self.rows, key=lambda each: abs(each.size_bytes - wanted))
        if row.steps is None:
            raise ConfigError(f"a {self.kind} run of {row.schedule} has no schedule to write")
        return Schedule(row.steps)

    @cached_property
    def _largest(self) -> Outcome | None:
        """The call at the largest size, simulated again."""
        row = max(self.rows, key=lambda each: each.size_bytes)
        return None if row.again is None else row.again(row.size_bytes, False)

    @property
    def links(self) -> list[LinkLoad]:
        """The load of each link during one call of the largest size; empty for a live run."""
        return [] if self._largest is None else self._largest.links

    @property
    def limit(self) -> Limit | None:
        """The limit of the largest size: a link, copies, reductions, latencies, slots.

        None for a live run, and on machines without GPUs.
        """
        return self._largest.limit if self.has_limit and self._largest else None

    @cached_property
    def topology_svg(self) -> str | None:
        """The machine as an SVG drawing with the loads of its links; None if it cannot be drawn."""
        return None if self.draw is None or not self.links else self.draw(self.links)

    def timeline(self, size_bytes: int | None = None) -> Timeline | None:
        """The timeline of one call, simulated again with a trace.

        Args:
            size_bytes: the size of the call; None: the largest up to 1 MiB.

        Returns:
            The timeline; None for a live run, and on machines without timelines.

        Raises:
            ConfigError: the size is above 1 GiB.
        """
        size = timeline_size([row.size_bytes for row in self.rows], size_bytes)
        row = min(self.rows, key=lambda each: abs(each.size_bytes - size))
        return None if row.again is None else row.again(size, True).timeline

    def to_dict(self, *, links: bool = False) -> dict[str, Any]:
        """The result as plain data for JSON.

        Args:
            links: True to add the load of each link at the largest size.

        Returns:
            One key per attribute, with the limit of the largest size.
        """
        limit = None if self.limit is None else vars(self.limit)
        loads = {"links": [vars(link) for link in self.links]} if links else {}
        return {
            "command": self.command, "machine": self.machine, "collective": self.collective,
            "kind": self.kind, "where": self.where, "ranks": self.ranks, "dtype": self.dtype,
            "op": self.op, "root": self.root, "is_chosen": self.is_chosen,
            "iterations": self.iterations, "warmup": self.warmup, "notes": list(self.notes),
            "rows": [row.to_dict() for row in self.rows], "limit": limit, **loads,
            "provenance": self.provenance.to_dict(),
        }  # fmt: skip

    def to_json(self) -> str:
        """The result as JSON text.

        Returns:
            `to_dict()` as text.
        """
        return json.dumps(self.to_dict(), indent=2)

    def to_dataframe(self) -> pandas.DataFrame:
        """The rows as a pandas table.

        Returns:
            One line per size, with the columns of `RunRow.to_dict` that are not nested.

        Raises:
            ConfigError: pandas is not installed.
        """
        try:
            import pandas
        except ImportError:
            raise ConfigError("pandas is not installed: pip install pandas") from None
        rows = [row.to_dict() for row in self.rows]
        return pandas.DataFrame(
            [{name: row[name] for name in row if name not in _NESTED} for row in rows]
        )

    def report(self, path: str | os.PathLike[str], *, trace_size_bytes: int | None = None) -> None:
        """Writes an HTML page that needs no other file: tables, curves, timeline, loads of links.

        Args:
            path: the file, which is replaced.
            trace_size_bytes: size of the call in the timeline; None: the largest up to 1 MiB.

        Raises:
            ConfigError: the size is above 1 GiB.
        """
        from towpath.api.report import write_report

        write_report([self], os.fspath(path), trace_size_bytes=trace_size_bytes)

    def trace(self, path: str | os.PathLike[str], *, size_bytes: int | None = None) -> None:
        """Writes one call as a trace that ui.perfetto.dev opens.

        Args:
            path: the file, which is replaced.
            size_bytes: the size of the call; None: the largest up to 1 MiB.

        Raises:
            ConfigError: the run was live, the machine has no timeline, or the size is above 1 GiB.
        """
        from towpath.pages.perfetto import write_perfetto

        timeline = self.timeline(size_bytes)
        if timeline is None:
            raise ConfigError(f"a {self.kind} run on {self.machine} has no timeline to trace")
        write_perfetto(timeline, os.fspath(path))

    def flight_recorder(self, folder: str | os.PathLike[str]) -> None:
        """Writes the calls as PyTorch's flight recorder does: a pickle per rank.

        `towpath doctor`, `towpath job` and `torchfrtrace` read the files.

        Args:
            folder: the folder, which is made. A file is named nccl_trace_rank_N.
        """
        from towpath.pages.recorders import write_dumps

        write_dumps(self._calls(), folder)

    def inspector(self, path: str | os.PathLike[str]) -> None:
        """Writes the calls as NCCL Inspector does: a JSON line per call and rank.

        Args:
            path: the file, which is replaced.
        """
        from towpath.pages.recorders import write_inspector

        write_inspector(self._calls(), path)

    def _calls(self) -> Calls:
        from towpath.pages.recorders import Calls

        return Calls(self.collective, self.dtype, self.ranks, self.machine, self.rows)

    def __repr__(self) -> str:
        where = f"RunResult({self.collective} on {self.machine}"
        if len(self.rows) == 1:
            return f"{where}: {self.rows[0].text()})"
        sizes = [row.size_bytes for row in self.rows]
        best = max(row.bus_bandwidth_gb_per_s for row in self.rows)
        return (
            f"{where}: {len(sizes)} sizes, {format_size(min(sizes))} to "
            f"{format_size(max(sizes))}, up to {best:.2f} GB/s)"
        )


def timeline_size(sizes_bytes: list[int], size_bytes: int | None) -> int:
    """The size of the timeline: the requested size, or the largest readable one.

    Raises:
        ConfigError: the requested size is above 1 GiB.
    """
    if size_bytes is None:
        return max(
            (size for size in sizes_bytes if size <= TIMELINE_BYTES_MAX), default=min(sizes_bytes)
        )
    if size_bytes > TRACE_BYTES_MAX:
        raise ConfigError(
            f"the size of the timeline is {size_bytes} bytes; it must be at most 1G, a million "
            "spans"
        )
    return size_bytes
