# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Common part of all machines that run collectives: `run` and `tune`."""

from __future__ import annotations

import os
import tempfile
from abc import abstractmethod
from collections.abc import Iterable
from functools import partial
from inspect import getfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from towpath import _core
from towpath.api.machine import Machine, opened
from towpath.api.request import SIMULATED, SYNTHESIS, Request
from towpath.api.run import OnRow, ignore, place_for, run_simulated
from towpath.api.schedule import Schedule
from towpath.collectives import fabric, places, simulated
from towpath.errors import ConfigError, DeadlockError
from towpath.schedules import schedule_source
from towpath.schedules.schedule_source import ScheduleSource
from towpath.schedules.words import collective_named, protocol_named
from towpath.specs.kinds import KINDS
from towpath.specs.sizes import Sizes, sizes_of
from towpath.tuning.collective import schedule_of

if TYPE_CHECKING:
    from towpath.api.result import RunResult
    from towpath.collectives.link_faults import LinkFault
    from towpath.collectives.places import Place
    from towpath.collectives.result import LinkLoad, RunRow
    from towpath.studies.progress import Progress
    from towpath.tuning.chooser import Chooser
    from towpath.tuning.collective import Options, Tuning

NETWORKS = ("flits", "packets")  # models of networks on chips


class Cluster(Machine):
    """A machine whose ranks run collectives.

    A subclass defines the number of ranks, the schedules that suit the machine, and the places of
    the ranks.
    """

    simulated_bytes_max: ClassVar[int | None] = 64 << 10  # of a candidate; None: any
    has_link_faults: ClassVar[bool] = False
    has_networks_on_chip: ClassVar[bool] = False
    has_nccl: ClassVar[bool] = False  # whether NCCL could run there
    protocols: ClassVar[tuple[str, ...]] = ("Simple",)  # those that differ on it

    def __init__(self, spec: Any) -> None:
        """Wraps a checked description; users call `load`."""
        super().__init__(spec)
        self.described = spec  # without the costs of another way of launching
        self._choosers: dict[tuple[object, ...], Chooser] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        if self._opened_as is None:
            raise TypeError(f"'{self.name}' was not opened by `load`, so it cannot be pickled")
        return opened, self._opened_as

    @property
    @abstractmethod
    def ranks(self) -> int:
        """Number of available ranks: GPUs in use, chips or nodes."""

    @property
    def ranks_per_host(self) -> int:
        """Number of ranks that share a host and its memory; 0 if all of them do."""
        return 0

    # --- of each kind -------------------------------------------------------------------------

    @abstractmethod
    def _source_for(self, request: Request) -> ScheduleSource:
        """The schedule of a named algorithm for this machine."""

    @abstractmethod
    def _options_for(
        self, channels: tuple[int, ...] | None, protocols: tuple[str, ...] | None,
        collective: str | None = None,
    ) -> Options:  # fmt: skip
        """The options from which candidates are generated; None leaves a choice to the machine."""

    @abstractmethod
    def _place_for(
        self, schedule: _core.Schedule, source: ScheduleSource | None,
        faults: tuple[LinkFault, ...] = (),
    ) -> Place:  # fmt: skip
        """The places in which the ranks of a schedule run.

        Raises:
            ConfigError: there are fewer places than ranks.
        """

    @abstractmethod
    def _where(self, ranks: int) -> str:
        """The machine and its ranks as text."""

    def _assumed(self, request: Request) -> tuple[str, ...]:
        """Sentences about the assumptions that a request makes beyond the machine's description."""
        return ()

    def _launched(self, way: str) -> Cluster:
        """This machine with the costs of a way of launching.

        Raises:
            ConfigError: the way has no effect on this kind of machine.
        """
        if way != "processes":
            raise ConfigError(
                f"launch applies to clusters of GPUs; '{self.name}' is a {self.kind}",
                field="launch",
            )
        return self

    def _least_us(self, request: Request) -> float:
        """The least time of a call in a series, in microseconds."""
        return 0.0

    def _draw_loads(self, links: list[LinkLoad]) -> str | None:
        """The machine as an SVG drawing with the load of each link; None without a drawing."""
        return None

    # --- for users ----------------------------------------------------------------------------

    def run(
        self,
        collective_or_schedule: str | Schedule = "all_reduce",
        *,
        size_bytes: Sizes,
        on_row: OnRow = ignore,
        **options: Any,
    ) -> RunResult:
        """Simulates a collective on all ranks, and checks every received byte.

        Args:
            collective_or_schedule: "all_reduce", "all_gather", "reduce_scatter", "broadcast",
                "reduce", "all_to_all", or your own schedule.
            size_bytes: size of the whole array: bytes (64 << 20), a text ("64M"), several of them,
                or a range ("8:1G:4" from, to, factor).
            on_row: called with the result without rows and None before the first row, and then with
                the result and each new row.
            options: further fields of `Request`, such as dtype="float16", algorithm="ring".

        Returns:
            A row per size: time, bandwidths, wrong elements, and the chosen schedule.

        Raises:
            ConfigError: an option is wrong, or the machine cannot run it. DeadlockError: the
            schedule hangs.
        """
        request = Request(collective_or_schedule, size_bytes, **options).checked(SIMULATED)
        self._check(request)
        return run_simulated(self._launched(request.launch), request, on_row)

    def tune(
        self,
        collective: str = "all_reduce",
        *,
        size_bytes: Sizes = "1K:16M",
        channels: Iterable[int] | None = None,
        protocols: Iterable[str] | None = None,
        file: str | os.PathLike[str] | None = None,
        jobs: int = 0,
        scheduler: str | None = None,
        progress: Progress | None = None,
        network: str = "flits",
        sources: list[ScheduleSource] | None = None,
    ) -> Tuning:
        """Times every available schedule of a collective, at each size.

        Args:
            collective: name of the collective, such as "all_reduce".
            size_bytes: size of the whole array: bytes, a text ("64M"), several of them, or a range.
            channels: numbers of channels to try; None: powers of two up to what the machine needs.
            protocols: protocols to try; None: all that make sense on the machine.
            file: file for the measurements, one line of JSON per point; a later call continues from
                it.
            jobs: processes that simulate; 0: one per core.
            scheduler: address of a dask scheduler whose workers run the simulations.
            progress: a display for long work; see `towpath.studies.progress`.
            network: model of the networks on chips: "flits" or "packets".
            sources: the candidates; None: all available schedules.

        Returns:
            All timings, the fastest at each size, and the choice by the rule of docs/tune.md.

        Raises:
            ConfigError: an option is wrong, or no schedule can divide an array of one of the sizes.
        """
        from towpath.studies.progress import silent
        from towpath.studies.sweep import SweepOptions
        from towpath.tuning.collective import Tuning, candidates, simulated_timings

        name = collective_named(collective)
        self._check_network(network)
        numbers = None if channels is None else tuple(sorted(set(channels)))
        words = None if protocols is None else tuple(map(protocol_named, protocols))
        possible = self._options_for(numbers, words, name)
        notes: list[str] = []
        if sources is None:
            sources, notes = candidates(name, possible)
        where = self._where(possible.ranks)
        if network == "packets":
            where += ", networks on chips packet by packet"
        options = SweepOptions(jobs=jobs, scheduler=scheduler, progress=progress or silent)
        with tempfile.TemporaryDirectory(prefix="towpath-") as folder:
            points = Path(folder, "points.jsonl") if file is None else Path(file)
            timings, problems = simulated_timings(
                (partial(_timed_point, self, network), self._digest(network)), sources,
                sorted(set(sizes_of(size_bytes))), points, options,
            )  # fmt: skip
        return Tuning(name, where, "simulated", len(sources), timings, notes + problems)

    def _digest(self, network: str) -> str:
        """Digest of the machine, the simulator, and the places of the ranks."""
        from towpath.studies.sweep import digest_of

        described = repr((self.spec, self._opened_as, network))
        modules = (_core, fabric, places, simulated, schedule_source)
        return digest_of(described, getfile(type(self)), *map(getfile, modules))

    # --- the choice of a schedule -------------------------------------------------------------

    def _check_network(self, network: str) -> None:
        """Rejects an unknown model of networks on chips, and a model for a machine without such
        networks.

        Raises:
            ConfigError: the model is rejected.
        """
        if network not in NETWORKS:
            raise ConfigError(
                f"network is '{network}'; choose {' or '.join(NETWORKS)}", field="network"
            )
        if network != "flits" and not self.has_networks_on_chip:
            raise ConfigError(
                f"'{self.name}' has no networks on chips to simulate packet by packet; choose "
                "a machine with chips, such as t3000",
                field="network",
            )

    def _check(self, request: Request) -> None:
        """Rejects options that have no effect on this kind of machine.

        Raises:
            ConfigError: an option has no effect.
        """
        if request.link_faults and not self.has_link_faults:
            raise ConfigError(
                f"'{self.name}' has no links between chips that could fail; choose a cluster "
                "of chips, such as t3000",
                field="link_faults",
            )
        self._check_network(request.network)
        if request.protocol not in ("auto", *self.protocols):
            raise ConfigError(
                f"protocol is {request.protocol}; on a {self.kind} all protocols cost the "
                f"same, so it must be {', '.join(self.protocols)}"
            )

    def _choose(
        self, request: Request, size_bytes: int
    ) -> tuple[ScheduleSource | Schedule | RunRow, str | None]:
        """The schedule for a size, or its result if no simulation is needed, and a note about the
        choice.
        """
        if request.schedule is not None:
            return request.schedule, None
        if not request.is_auto:
            return self._source_for(request), None
        if request.library is not None:
            return self._imitated(request, size_bytes)
        if request.algorithm == SYNTHESIS:
            return self._synthesized(request, size_bytes)
        return self._fastest_listed(request, size_bytes)

    def _imitated(
        self, request: Request, size_bytes: int
    ) -> tuple[ScheduleSource | RunRow, str | None]:
        """The choice that a library makes.

        Raises:
            ConfigError: this is not a cluster of GPUs, or the library has no schedule for it.
        """
        raise ConfigError(f"library applies to clusters of GPUs; '{self.name}' is a {self.kind}")

    def _synthesized(
        self, request: Request, size_bytes: int
    ) -> tuple[ScheduleSource | Schedule, str | None]:
        """A schedule written for this machine and a size.

        Raises:
            ConfigError: synthesis does not support this kind of machine.
        """
        raise ConfigError(
            f"algorithm is synthesis; it supports clusters of GPUs, and '{self.name}' is a "
            f"{KINDS[self.kind].words}"
        )

    def _fastest_listed(
        self, request: Request, size_bytes: int
    ) -> tuple[ScheduleSource, str | None]:
        """The fastest of the listed algorithms for a size."""
        from towpath.collectives.threads import threads_for
        from towpath.tuning.chooser import Chooser

        key = (
            request.collective, request.algorithm, request.protocol, request.channels,
            request.dtype, request.root, request.fold, request.network, request.link_faults,
        )  # fmt: skip
        is_quick = request.network == "packets" or not self.has_networks_on_chip
        if key not in self._choosers:
            named = request.algorithm
            if named is None:
                named = _core.algorithm_names(_core.collective_from(request.collective))[0]
            self._choosers[key] = Chooser(
                request.collective,
                self._options_for(
                    (request.channels,) if request.channels else None,
                    None if request.protocol == "auto" else (request.protocol,),
                    request.collective,
                ),
                partial(place_for, self, request, by_packets=True),
                algorithm=None if named == "auto" else named,
                type_name=request.dtype,
                root=request.root,
                bytes_max=self.simulated_bytes_max,
                threads=threads_for(request.threads),
                full_place_of=None if is_quick else partial(place_for, self, request),
            )
        return self._choosers[key].choose(size_bytes)

    def _check_ranks(self, schedule: _core.Schedule, places: int, what: str) -> int:
        """The number of ranks of a schedule, each of which needs a place.

        Raises:
            ConfigError: there are fewer places.
        """
        ranks = schedule.rank_count
        if ranks > places:
            raise ConfigError(
                f"schedule '{schedule.name}' has {ranks} ranks; '{self.name}' has only "
                f"{places} {what}"
            )
        return ranks


def _timed_point(machine: Cluster, network: str, point: dict[str, Any]) -> dict[str, Any]:
    """Times one candidate at one size; `problem` is the reason if there is no time."""
    from towpath.collectives.call import Call

    source = ScheduleSource(**point["source"])
    call = Call(schedule_of(source))
    try:
        place = machine._place_for(call.schedule, source)
        place = place.changed(by_packets=network == "packets")
        time_us = simulated.time_us(place, call, point["size_bytes"])
    except DeadlockError as error:
        return {"time_us": None, "problem": str(error)}
    return {"time_us": time_us, "problem": None}
