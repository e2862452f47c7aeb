# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Origin of a schedule: a file, or an algorithm with its options. It is transmitted as JSON."""

from __future__ import annotations

from dataclasses import dataclass

from towpath import _core
from towpath.errors import ConfigError
from towpath.schedules.words import algorithm_named, collective_named, protocol_named


@dataclass(frozen=True)
class ScheduleSource:
    """Either `file`, or `collective` and `algorithm` with their options.

    With several `hosts`, rings enter and leave each host on one rail, and trees join the hosts'
    chains. With one host, ranks keep their natural order, and with `both_ways` every other ring
    runs in the opposite direction. Chains and trees cut their data into `chunks_per_channel`; other
    algorithms ignore it. In all_pairs_reduce_scatter, `reducers` thread blocks add the incoming
    data of a channel. Grids have `columns` columns (0 for a single row), and use their rows and
    columns as rings or as lines. `pattern` defines the destinations of all_to_all_v and send_recv,
    in the form of `Schedule.generate`. Without it, all_to_all_v sends whole parts and send_recv
    sends to the next rank.

    `rings` defines the order of ranks of each channel and overrides all these options.
    `chain_ranks` is the number of consecutive ranks that a tree joins as a chain, 0 for the ranks
    of a host. `result` is the collective that a file with a custom collective computes.
    """

    file: str | None = None
    collective: str = "all_reduce"
    algorithm: str | None = None
    ranks: int = 1
    channels: int = 1
    protocol: str = "Simple"
    root: int = 0
    hosts: int = 1
    both_ways: bool = False
    chunks_per_channel: int = 4
    columns: int = 0
    row_rings: bool = False
    column_rings: bool = False
    pattern: tuple[int, ...] = ()
    rings: tuple[tuple[int, ...], ...] = ()
    chain_ranks: int = 0
    reducers: int = 1
    result: str | None = None

    def __post_init__(self) -> None:
        # JSON has lists where this has tuples, which a source needs to be hashable.
        object.__setattr__(self, "pattern", tuple(self.pattern))
        object.__setattr__(self, "rings", tuple(map(tuple, self.rings)))

    def schedule(self) -> _core.Schedule:
        """Reads or builds it.

        Raises:
            ConfigError: the file or an option is wrong.
        """
        if self.file is not None:
            from towpath.schedules.files import load_schedule

            return load_schedule(self.file, self.result)
        protocol = _core.protocol_from(protocol_named(self.protocol))
        assert protocol is not None  # `protocol_named` knows the names of the core only
        rings: list[list[int]] = []
        is_hierarchical = self.algorithm_name() == "nvls_tree_all_reduce"
        gpus_per_host = self.ranks if is_hierarchical else 1
        if self.hosts < 1 or self.ranks % self.hosts != 0:
            raise ConfigError(f"{self.ranks} ranks cannot be spread evenly over {self.hosts} hosts")
        if self.hosts > 1:
            gpus_per_host = self.ranks // self.hosts
            if not self.rings:
                rings = _core.rail_rings(self.hosts, gpus_per_host, self.channels)
        elif self.both_ways:
            order = list(range(self.ranks))
            rings = [order[:: 1 - 2 * (channel % 2)] for channel in range(self.channels)]
        if self.rings:
            rings = [list(ring) for ring in self.rings]
        gpus_per_host = self.chain_ranks or gpus_per_host
        try:
            return _core.make_schedule(
                self.algorithm_name(), ranks=self.ranks, channels=self.channels,
                protocol=protocol, root=self.root, rings=rings, gpus_per_host=gpus_per_host,
                chunks_per_channel=self.chunks_per_channel, columns=self.columns,
                row_rings=self.row_rings, column_rings=self.column_rings,
                reducers=self.reducers, pattern=self.pattern,
            )  # fmt: skip
        except ValueError as error:
            raise ConfigError(str(error)) from None

    def algorithm_name(self) -> str:
        """The requested algorithm, or the first one of the collective."""
        collective = collective_named(self.collective)
        if self.algorithm is None:
            return _core.algorithm_names(_core.collective_from(collective))[0]
        return algorithm_named(self.algorithm, collective)
