# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Schedules as a program handles them: generated, read from MSCCL XML, verified, written."""

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
    """One step of a schedule, and where it stands.

    Attributes:
        rank: the rank that takes it.
        block: its thread block, from 0.
        index: its place in the thread block, from 0.
        channel: the channel of the thread block.
        type: "send", "receive", "receive_copy_send", "receive_reduce_send",
            "receive_reduce_copy", "receive_reduce_copy_send", "copy", "reduce" or "nop".
        send_peer: the rank that the thread block sends to, or None.
        receive_peer: the rank that it receives from, or None.
        source: (buffer, first chunk) that is read; the buffer is "input", "output" or "scratch".
        destination: (buffer, first chunk) that is written.
        count: consecutive chunks, from there on.
        depends_on: (thread block, step) of this rank that must be done before, or None.
        publishes: whether others may depend on it.
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
    """A collective written down as steps per rank; docs/schedule.md says what one means.

    A schedule does not change. Make one with `generate` or `load`.

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
        """One of Towpath's own schedules; `algorithms()` lists them.

        Args:
            collective: "all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce",
                "all_to_all", "gather", "scatter", "all_to_all_v", "send_recv" or "barrier".
            algorithm: its name, "ring_all_reduce" or short "ring"; None takes the first that
                `algorithms(collective)` lists.
            ranks: how many take part, at least 1.
            hosts: over how many hosts the ranks are spread evenly, host by host. With several,
                rings enter and leave each host on the same rail.
            channels: parallel copies of the pattern, 1 to 64.
            protocol: "Simple", "LL" or "LL128".
            root: the root rank of broadcast, reduce, gather and scatter.
            chunks_per_channel: pieces into which chains and trees cut what goes through them.
            columns: columns of the mesh or torus of a grid algorithm; 0: a single row.
            row_rings: whether the rows of the grid are rings.
            column_rings: whether its columns are rings.
            both_ways: whether every other ring goes round the other way, on one host.
            pattern: of send_recv, the rank that each rank sends to; of all_to_all_v, at
                s * ranks + d, how many of the channels * chunks_per_channel chunks of its part
                rank s sends to rank d. Without one, each rank sends to the next, or whole parts.

        Returns:
            The schedule.

        Raises:
            ConfigError: an option is wrong, or there is no such schedule for it.
        """
        source = ScheduleSource(
            None, collective_named(collective), algorithm, ranks, channels, protocol, root, hosts,
            both_ways, chunks_per_channel, columns, row_rings, column_rings,
            tuple(pattern),
        )  # fmt: skip
        return cls(source.schedule(), replace(source, algorithm=source.algorithm_name()))

    @classmethod
    def load(cls, file: str | os.PathLike[str] | bytes, *, result: str | None = None) -> Schedule:
        """The schedule in an MSCCL XML file, or in an execution plan of MSCCL++ (JSON).

        Args:
            file: the path of the file, or its contents as bytes.
            result: the collective that a file with a custom one computes, such as "all_reduce".

        Returns:
            The schedule, checked as a text: every peer, chunk and dependency exists.

        Raises:
            ConfigError: it cannot be read, is not such a file, or breaks a limit; with file and
                line.
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
        """Writes it as MSCCL XML, or to a name that ends in .json as an execution plan of MSCCL++.

        Args:
            path: the file, which is replaced.

        Raises:
            ConfigError: the format has no place for it; nothing is written then.
        """
        from towpath.schedules.files import dump_schedule

        dump_schedule(self._core, path)

    def to_xml(self) -> str:
        """It as MSCCL XML.

        Returns:
            The text of the file that `save` writes.

        Raises:
            ConfigError: MSCCL has no place for it.
        """
        from towpath.schedules import msccl_xml

        stream = io.StringIO()
        msccl_xml.dump_schedule(self._core, stream)
        return stream.getvalue()

    def to_json(self) -> str:
        """It as an execution plan of MSCCL++.

        Returns:
            The text of the file that `save` writes to a name that ends in .json.

        Raises:
            ConfigError: MSCCL++ has no place for it.
        """
        from towpath.schedules import mscclpp_json

        return mscclpp_json.to_json(self._core)

    @property
    def name(self) -> str:
        """Its name, such as "ring_all_reduce"."""
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
        """How many ranks take part."""
        return self._core.rank_count

    @property
    def channels(self) -> int:
        """Parallel channels."""
        return self._core.channels

    @property
    def chunks(self) -> int:
        """Chunks into which each rank's array is cut."""
        return self._core.chunks

    @property
    def root(self) -> int:
        """The root rank; 0 where the collective has none."""
        return self._core.root

    @property
    def in_place(self) -> bool:
        """Whether input and output may be the same memory."""
        return self._core.in_place

    @property
    def out_of_place(self) -> bool:
        """Whether input and output may be apart."""
        return self._core.out_of_place

    @property
    def fingerprint(self) -> str:
        """A hash of its steps as 16 hexadecimal digits: equal schedules have the same."""
        return f"{_core.fingerprint(self._core):016x}"

    def steps(self) -> list[Step]:
        """Every step of every rank.

        Returns:
            The steps by rank, thread block and place in it.
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
    """An algorithm that Towpath writes schedules for.

    Attributes:
        collective: what it computes.
        name: for `Schedule.generate` and `run`.
        description: what the ranks do, in one line.
        cost: steps and bytes, in a formula of the number of ranks.
    """

    collective: str
    name: str
    description: str
    cost: str

    def __repr__(self) -> str:
        return f"AlgorithmInfo({self.name!r}, {self.collective}, {self.cost})"


def algorithms(collective: str | None = None) -> list[AlgorithmInfo]:
    """The algorithms that Towpath writes schedules for.

    Args:
        collective: only those of this one; None lists all.

    Returns:
        One entry per algorithm, a collective's default first.

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
