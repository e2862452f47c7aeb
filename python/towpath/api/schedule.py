# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Schedules for programs: generated, loaded from MSCCL XML, verified, written."""

from __future__ import annotations

import io
import os
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from towpath import _core
from towpath.schedules.schedule_source import ScheduleSource
from towpath.schedules.words import collective_named


@dataclass(frozen=True)
class Step:
    """One step of a schedule, with its position.

    Attributes:
        rank: the rank that executes the step.
        block: its thread block, from 0.
        index: its position in the thread block, from 0.
        channel: the channel of the thread block.
        type: "send", "receive", "receive_copy_send", "receive_reduce_send", "receive_reduce_copy",
            "receive_reduce_copy_send", "copy", "reduce" or "nop".
        send_peer: the rank that the thread block sends to, or None.
        receive_peer: the rank that it receives from, or None.
        source: (buffer, first chunk) that is read; the buffer is "input", "output" or "scratch".
        destination: (buffer, first chunk) that is written.
        count: number of consecutive chunks.
        depends_on: (thread block, step) of this rank that must be complete before, or None.
        publishes: True if other steps may depend on it.
    """

    rank: int
    block: int
    index: int
    channel: int
    type: str
    send_peer: int | None
    receive_peer: int | None
    source: tuple[str, int]
    destination: tuple[str, int]
    count: int
    depends_on: tuple[int, int] | None
    publishes: bool


class Schedule:
    """A collective defined by the steps of each rank; docs/schedule.md defines its meaning.

    A schedule is immutable. Create one with `generate` or `load`.

    >>> schedule = Schedule.generate("all_reduce", algorithm="ring", ranks=4)
    >>> schedule
    Schedule('ring_all_reduce', all_reduce, 4 ranks, Simple, 1 channel)
    >>> Schedule.load(schedule.to_xml().encode()) == schedule
    True
    """

    def __init__(self, core: _core.Schedule, source: ScheduleSource | None = None) -> None:
        """Wraps a checked schedule of the core; users call `generate` or `load`."""
        self._core = core
        self._source = source

    @classmethod
    def generate(
        cls,
        collective: str = "all_reduce",
        *,
        algorithm: str | None = None,
        ranks: int,
        hosts: int = 1,
        channels: int = 1,
        protocol: str = "Simple",
        root: int = 0,
        chunks_per_channel: int = 4,
        columns: int = 0,
        row_rings: bool = False,
        column_rings: bool = False,
        both_ways: bool = False,
        pattern: Iterable[int] = (),
    ) -> Schedule:
        """Generates one of Towpath's own schedules; `algorithms()` lists them.

        Args:
            collective: "all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce",
                "all_to_all", "gather", "scatter", "all_to_all_v", "send_recv" or "barrier".
            algorithm: its name, "ring_all_reduce" or short "ring"; None selects the first one in
                `algorithms(collective)`.
            ranks: number of ranks, at least 1.
            hosts: number of hosts over which the ranks are spread evenly, host by host. With
                several hosts, rings enter and leave each host on the same rail.
            channels: parallel copies of the pattern, 1 to 64.
            protocol: "Simple", "LL" or "LL128".
            root: the root rank of broadcast, reduce, gather and scatter.
            chunks_per_channel: number of pieces into which chains and trees cut their data.
            columns: columns of the mesh or torus of a grid algorithm; 0: a single row.
            row_rings: True if the rows of the grid are rings.
            column_rings: True if the columns of the grid are rings.
            both_ways: True if every other ring runs in the opposite direction, on one host.
            pattern: for send_recv, the rank that each rank sends to, by default the next one. For
                all_to_all_v, at s * ranks + d, the number of the channels * chunks_per_channel
                chunks of its part that rank s sends to rank d, by default the whole part.

        Returns:
            The schedule.

        Raises:
            ConfigError: an option is wrong, or no such schedule exists.
        """
        source = ScheduleSource(
            None, collective_named(collective), algorithm, ranks, channels, protocol, root, hosts,
            both_ways, chunks_per_channel, columns, row_rings, column_rings,
            tuple(pattern),
        )  # fmt: skip
        return cls(source.schedule(), replace(source, algorithm=source.algorithm_name()))

    @classmethod
    def load(cls, file: str | os.PathLike[str] | bytes, *, result: str | None = None) -> Schedule:
        """Loads the schedule of an MSCCL XML file, or of an execution plan of MSCCL++ (JSON).

        Args:
            file: the path of the file, or its contents as bytes.
            result: the collective that a file with a custom collective computes, such as
                "all_reduce".

        Returns:
            The schedule. Loading checks that every peer, chunk and dependency exists.

        Raises:
            ConfigError: the file cannot be read, has another format, or exceeds a limit; with file
            and line.
        """
        from towpath.schedules.files import load_schedule

        declared = None if result is None else collective_named(result)
        if isinstance(file, bytes):
            with tempfile.TemporaryDirectory(prefix="towpath-") as folder:
                path = Path(folder, "schedule.xml")
                path.write_bytes(file)
                return cls(load_schedule(path, declared))
        source = ScheduleSource(file=os.fspath(file), result=declared)
        return cls(load_schedule(file, declared), source)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes it as MSCCL XML, or as an execution plan of MSCCL++ if the name ends in .json.

        Args:
            path: the file, which is replaced.

        Raises:
            ConfigError: the format cannot express the schedule; no file is written.
        """
        from towpath.schedules.files import dump_schedule

        dump_schedule(self._core, path)

    def to_xml(self) -> str:
        """Returns it as MSCCL XML.

        Returns:
            The text of the file that `save` writes.

        Raises:
            ConfigError: MSCCL cannot express it.
        """
        from towpath.schedules import msccl_xml

        stream = io.StringIO()
        msccl_xml.dump_schedule(self._core, stream)
        return stream.getvalue()

    def to_json(self) -> str:
        """Returns it as an execution plan of MSCCL++.

        Returns:
            The text of the file that `save` writes if the name ends in .json.

        Raises:
            ConfigError: MSCCL++ cannot express it.
        """
        from towpath.schedules import mscclpp_json

        return mscclpp_json.to_json(self._core)

    @property
    def name(self) -> str:
        """Name of the schedule, such as "ring_all_reduce"."""
        return self._core.name

    @property
    def collective(self) -> str:
        """The collective that it computes, such as "all_reduce"."""
        return _core.name_of(self._core.collective)

    @property
    def protocol(self) -> str:
        """ "Simple", "LL" or "LL128"."""
        return _core.name_of(self._core.protocol)

    @property
    def ranks(self) -> int:
        """Number of ranks."""
        return self._core.rank_count

    @property
    def channels(self) -> int:
        """Number of parallel channels."""
        return self._core.channels

    @property
    def chunks(self) -> int:
        """Number of chunks into which each rank's array is cut."""
        return self._core.chunks

    @property
    def root(self) -> int:
        """The root rank; 0 if the collective has none."""
        return self._core.root

    @property
    def in_place(self) -> bool:
        """True if input and output may be the same memory."""
        return self._core.in_place

    @property
    def out_of_place(self) -> bool:
        """True if input and output may be separate memory."""
        return self._core.out_of_place

    @property
    def fingerprint(self) -> str:
        """A hash of its steps as 16 hexadecimal digits. Equal schedules have the same hash."""
        return f"{_core.fingerprint(self._core):016x}"

    def steps(self) -> list[Step]:
        """Every step of every rank.

        Returns:
            The steps by rank, thread block and position in the thread block.
        """
        found = []
        for rank, program in enumerate(self._core.ranks):
            for number, block in enumerate(program.blocks):
                found += [
                    _step(rank, number, index, block, step)
                    for index, step in enumerate(block.steps)
                ]
        return found

    def __eq__(self, other: object) -> bool:
        return self._core == other._core if isinstance(other, Schedule) else NotImplemented

    def __hash__(self) -> int:
        return hash((self.name, _core.fingerprint(self._core)))

    def __repr__(self) -> str:
        plural = "" if self.channels == 1 else "s"
        return (
            f"Schedule({self.name!r}, {self.collective}, {self.ranks} ranks, {self.protocol}, "
            f"{self.channels} channel{plural})"
        )


def _step(rank: int, number: int, index: int, block: Any, step: Any) -> Step:
    def number_or_none(value: int) -> int | None:
        return None if value == _core.NONE else value

    waits = step.depends_on_block != _core.NONE
    return Step(
        rank, number, index, block.channel, step.type.name,
        number_or_none(block.send_peer), number_or_none(block.receive_peer),
        (step.source.name, step.source_chunk), (step.destination.name, step.destination_chunk),
        step.count, (step.depends_on_block, step.depends_on_step) if waits else None,
        step.publishes,
    )  # fmt: skip


@dataclass(frozen=True)
class AlgorithmInfo:
    """An algorithm for which Towpath can write schedules.

    Attributes:
        collective: the collective that it computes.
        name: the name for `Schedule.generate` and `run`.
        description: the actions of the ranks in one line.
        cost: steps and bytes as a formula of the number of ranks.
    """

    collective: str
    name: str
    description: str
    cost: str

    def __repr__(self) -> str:
        return f"AlgorithmInfo({self.name!r}, {self.collective}, {self.cost})"


def algorithms(collective: str | None = None) -> list[AlgorithmInfo]:
    """Lists the algorithms for which Towpath can write schedules.

    Args:
        collective: only the algorithms of this collective; None lists all.

    Returns:
        One entry per algorithm. The default of a collective comes first.

    Raises:
        ConfigError: there is no such collective.

    Examples:
        >>> [algorithm.name for algorithm in algorithms("broadcast")]
        ['ring_broadcast', 'tree_broadcast']
    """
    wanted = None if collective is None else collective_named(collective)
    return [
        AlgorithmInfo(each.collective.name, each.name, each.description, each.cost)
        for each in _core.algorithms()
        if wanted in (None, each.collective.name)
    ]
