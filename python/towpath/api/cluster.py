# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""What all machines have on which collectives run: `run` and `tune`."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from towpath import _core
from towpath.api.machine import Machine
from towpath.api.request import SYNTHESIS, Request, checked_request
from towpath.api.run import Choice, OnRow, ignore, place_for, quick_place_for, run_simulated
from towpath.api.schedule import Schedule
from towpath.api.sizes import Sizes, sizes_of
from towpath.errors import ConfigError
from towpath.schedules.words import collective_named, protocol_named
from towpath.specs.kinds import KINDS
from towpath.tuning.collective import Simulator

if TYPE_CHECKING:
    from towpath.api.auto import Chooser
    from towpath.api.result import RunResult
    from towpath.collectives.link_faults import LinkFault
    from towpath.collectives.nccl.imitation import Library
    from towpath.collectives.result import LinkLoad
    from towpath.schedules.schedule_source import ScheduleSource
    from towpath.studies.progress import Progress
    from towpath.tuning.collective import Tuning

__all__ = ["Cluster", "checked_request"]


class Cluster(Machine):
    """A machine on whose ranks collectives run."""

    def __init__(self, simulator: Simulator) -> None:
        """Wraps a described machine; users call `load`."""
        super().__init__(simulator.site.spec)
        self._simulator = simulator
        self._site = simulator.site
        self._choosers: dict[tuple[object, ...], Chooser] = {}

    @classmethod
    def _open(cls, name_or_file: str, **options: Any) -> Cluster:
        return cls(Simulator(name_or_file, tuple(options.items())))

    @property
    def ranks(self) -> int:
        """How many ranks it has room for: GPUs in use, chips or nodes."""
        return self._site.ranks

    @property
    def ranks_per_host(self) -> int:
        """Ranks that share a host, and so stores; 0 where all of them do."""
        return 0

    def run(
        self,
        collective_or_schedule: str | Schedule = "all_reduce",
        *,
        size_bytes: Sizes,
        dtype: str = "float32",
        op: str = "sum",
        root: int = 0,
        algorithm: str | None = "auto",
        protocol: str = "auto",
        channels: int | None = None,
        data: bool = True,
        fold: bool = True,
        threads: int | None = None,
        network: str = "flits",
        link_faults: Iterable[str | LinkFault] = (),
        library: str | Library | None = None,
        on_row: OnRow = ignore,
    ) -> RunResult:
        """Simulates a collective on all ranks, and checks every byte that they receive.

        Args:
            collective_or_schedule: "all_reduce", "all_gather", "reduce_scatter", "broadcast",
                "reduce", "all_to_all", or a schedule of your own.
            size_bytes: the whole array: bytes (64 << 20), a text ("64M"), several of them, or a
                range ("8:1G:4" from, to, factor).
            dtype: the element type, "int8" to "float64", "float16", "bfloat16".
            op: the reduction: "sum", "prod", "min", "max", "avg".
            root: the root rank of broadcast and reduce.
            algorithm: "auto" takes the fastest candidate for each size; a name ("ring", "tree")
                takes that one; "synthesis" writes one for the machine, on GPUs; None takes the
                collective's first. See `algorithms`.
            protocol: "auto", "Simple", "LL" or "LL128".
            channels: parallel channels; None: what the machine needs.
            data: whether to carry and check data; without, only time is simulated.
            fold: without data, ranks that do the same at the same time are simulated once, which
                changes no result; False simulates all of them.
            threads: that run one simulation, which changes no result; None: one per processor, and
                one where other processes simulate at the same time.
            network: how the networks on chips are simulated: "flits", one by one, or "packets",
                several times as fast and a few percent off (docs/fabric.md says how much).
            link_faults: links between chips that fail, such as "0:9,every=100us,training=5us".
            library: "nccl" or "rccl" runs what that library would run on GPUs; a `Library` has its
                variables and files, too; None: Towpath chooses.
            on_row: called with the run and None before its first row, and with each row as it
                comes.

        Returns:
            A row per size: time, bandwidths, wrong elements, and the schedule that was chosen.

        Raises:
            ConfigError: an option is wrong, or the machine cannot run it.
            DeadlockError: the schedule hangs.
        """
        request = checked_request(
            collective_or_schedule, sizes_of(size_bytes), dtype=dtype, op=op, root=root,
            algorithm=algorithm, protocol=protocol, channels=channels, data=data, fold=fold,
            threads=threads, network=network, link_faults=link_faults, library=library,
        )  # fmt: skip
        self._check(request)
        return run_simulated(self._site, request, self._choose, self._draw_loads, on_row)

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
    ) -> Tuning:
        """Times every schedule that can be written for a collective, at each size.

        Args:
            collective: as for `run`.
            size_bytes: as for `run`.
            channels: numbers of channels to try; None: powers of two up to what the machine needs.
            protocols: protocols to try; None: all that make sense on the machine.
            file: keeps what is measured, a line of JSON per point; a later call continues from it.
            jobs: processes that simulate; 0: one per core.
            scheduler: the address of a dask scheduler whose workers simulate instead.
            progress: a display for long work; see `towpath.studies.progress`.
            network: networks on chips, as for `run`.

        Returns:
            All timings, the fastest at each size, and what the rule of docs/tune.md chooses.

        Raises:
            ConfigError: an option is wrong, or no schedule cuts an array of one of the sizes.
        """
        from towpath.studies.progress import silent
        from towpath.studies.sweep import SweepOptions
        from towpath.tuning.collective import Tuning, candidates, simulated_timings
        from towpath.tuning.target import simulated_target

        name = collective_named(collective)
        numbers = None if channels is None else tuple(sorted(set(channels)))
        words = None if protocols is None else tuple(map(protocol_named, protocols))
        simulator = replace(self._simulator, network=network)
        target = simulated_target(simulator, numbers, words, collective)
        sources, notes = candidates(name, target.options)
        sizes = sorted(set(sizes_of(size_bytes)))
        options = SweepOptions(jobs=jobs, scheduler=scheduler, progress=progress or silent)
        with tempfile.TemporaryDirectory(prefix="towpath-") as folder:
            points = Path(folder, "points.jsonl") if file is None else Path(file)
            timings, problems = simulated_timings(simulator, sources, sizes, points, options)
        return Tuning(name, target.text, target.kind, len(sources), timings, notes + problems)

    def _draw_loads(self, links: list[LinkLoad]) -> str | None:
        """The machine as an SVG drawing with the load of each link; None: there is none."""
        return None

    def _check(self, request: Request) -> None:
        """Refuses options that have no effect on this kind of machine.

        Raises:
            ConfigError: one is there.
        """
        if request.link_faults and not self._site.has_link_faults:
            raise ConfigError(
                f"links between chips may fail, such as those of t3000; '{self.name}' has none",
                field="link_faults",
            )
        self._site.check_network(request.network)
        if request.protocol not in ("auto", *self._site.protocols):
            raise ConfigError(
                f"protocol is {request.protocol}; on a {self.kind} all protocols cost the same, so "
                f"only {', '.join(self._site.protocols)} is allowed"
            )

    def _imitated(self, request: Request, library: Library, size_bytes: int) -> Choice:
        """What a library would run at a size.

        Raises:
            ConfigError: this is not a cluster of GPUs, or there is no schedule of it.
        """
        raise ConfigError(f"library is for clusters of GPUs; '{self.name}' is a {self.kind}")

    def _choose(self, request: Request, size_bytes: int) -> Choice:
        """The fastest schedule for a size."""
        if request.library is not None:
            return self._imitated(request, request.library, size_bytes)
        if request.algorithm == SYNTHESIS:
            return self._synthesised(request, size_bytes)
        return self._fastest_listed(request, size_bytes)

    def _synthesised(self, request: Request, size_bytes: int) -> Choice:
        """A schedule that is written for this machine and a size.

        Raises:
            ConfigError: it is not a machine for which schedules are written.
        """
        raise ConfigError(
            f"algorithm is synthesis; schedules are written for clusters of GPUs, and "
            f"'{self.name}' is a {KINDS[self.kind].words}"
        )

    def _fastest_listed(
        self, request: Request, size_bytes: int
    ) -> tuple[ScheduleSource, str | None]:
        """The fastest of the listed algorithms for a size."""
        from towpath.api.auto import Chooser
        from towpath.collectives.threads import threads_for

        key = (
            request.collective, request.algorithm, request.protocol, request.channels,
            request.dtype, request.root, request.fold, request.network, request.link_faults,
        )  # fmt: skip
        is_quick = request.network == "packets" or not self._site.has_networks_on_chip
        if key not in self._choosers:
            named = request.algorithm
            if named is None:
                named = _core.algorithm_names(_core.collective_from(request.collective))[0]
            self._choosers[key] = Chooser(
                request.collective,
                self._site.options_for(
                    (request.channels,) if request.channels else None,
                    None if request.protocol == "auto" else (request.protocol,),
                    request.collective,
                ),
                partial(quick_place_for, self._site, request),
                algorithm=None if named == "auto" else named,
                type_name=request.dtype,
                root=request.root,
                bytes_max=self._site.simulated_bytes_max,
                threads=threads_for(request.threads),
                full_place_of=None if is_quick else partial(place_for, self._site, request),
            )
        return self._choosers[key].choose(size_bytes)
