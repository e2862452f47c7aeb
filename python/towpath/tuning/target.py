# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Where `towpath tune COLLECTIVE` times its candidates, and which make sense there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from towpath.collectives import live
from towpath.errors import ConfigError
from towpath.tuning.collective import (
    Simulator,
    Tuning,
    candidates,
    live_timings,
    simulated_timings,
)
from towpath.tuning.sites import Numbers, Options, Words

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from towpath.schedules.schedule_source import ScheduleSource
    from towpath.studies.sweep import SweepOptions

# Options of `towpath.load` that say how large a machine is, and what is other than in its file.
_SIZES = ("hosts", "ranks", "ranks_per_host", "complete_from", "settings", "without")
_LIVE_CHANNELS = (1, 2, 4)


@dataclass(frozen=True)
class TuneRequest:
    """What to tune for, as asked; None leaves a choice to the target."""

    machine: str | None = None
    live: int | None = None
    hosts: int | None = None
    ranks: int | None = None
    ranks_per_host: int | None = None
    complete_from: str | None = None
    settings: tuple[str, ...] | None = None
    without: tuple[str, ...] | None = None
    channels: tuple[int, ...] | None = None
    protocols: tuple[str, ...] | None = None
    network: str | None = None


@dataclass(frozen=True)
class TuneTarget:
    """A place.

    Attributes:
        name: short, for a folder.
        text: for people.
        options: what candidates are made of.
        simulator: None for processes of this host.
        has_nccl: whether NCCL could run there.
    """

    name: str
    text: str
    options: Options
    simulator: Simulator | None = None
    has_nccl: bool = False

    @property
    def kind(self) -> str:
        return "live" if self.simulator is None else "simulated"


def find_target(request: TuneRequest, collective: str | None = None) -> TuneTarget:
    """What the options name.

    Args:
        request: the options.
        collective: what is to be tuned.

    Raises:
        ConfigError: there is no such place, or an option is not for it.
    """
    if (request.machine is None) == (request.live is None):
        raise ConfigError("say where: either --machine NAME simulates or --live RANKS runs here")
    if request.machine is None:
        return _live(request)
    given = {name: getattr(request, name) for name in _SIZES}
    sized = tuple((name, value) for name, value in given.items() if value is not None)
    simulator = Simulator(request.machine, sized, request.network or "flits")
    return simulated_target(simulator, request.channels, request.protocols, collective)


def simulated_target(
    simulator: Simulator, channels: Numbers, protocols: Words, collective: str | None = None
) -> TuneTarget:
    """A described machine.

    Args:
        simulator: it.
        channels: numbers of channels to try; None leaves them to the machine, as below.
        protocols: protocols to try.
        collective: what they run.

    Raises:
        ConfigError: there is no such machine, or an option is not for its kind.
    """
    site = simulator.site
    site.check_network(simulator.network)
    options = site.options_for(channels, protocols, collective)
    where = site.where(options.ranks)
    if simulator.network == "packets":
        where += ", networks on chips packet by packet"
    return TuneTarget(site.spec.name, where, options, simulator, site.has_nccl)


def _live(request: TuneRequest) -> TuneTarget:
    for name in (*_SIZES, "network"):
        if getattr(request, name) is not None:
            raise ConfigError(f"{name} is for a machine, not for processes here", field=name)
    ranks = request.live or 0
    live.check_ranks(ranks)
    options = Options(ranks, request.channels or _LIVE_CHANNELS, request.protocols or ("Simple",))
    return TuneTarget(f"live-{ranks}", f"{ranks} processes of this host", options)


def tune(
    target: TuneTarget,
    collective: str,
    sizes_bytes: Iterable[int],
    file: Path,
    options: SweepOptions,
    *,
    live_options: live.LiveOptions | None = None,
    sources: list[ScheduleSource] | None = None,
) -> Tuning:
    """Time every candidate on a target.

    Args:
        target: from `find_target`.
        collective: its name.
        sizes_bytes: sizes of the whole array.
        file: keeps what is simulated, a line per point; a later call continues from it.
        options: how to simulate; its progress also shows live runs.
        live_options: how to measure live.
        sources: the candidates; None: all that can be written.

    Returns:
        All timings, and the notes about what could not be timed.

    Raises:
        ConfigError: no schedule cuts an array of one of the sizes.
        LiveError: a live rank failed.
    """
    notes: list[str] = []
    if sources is None:
        sources, notes = candidates(collective, target.options)
    sizes = sorted(set(sizes_bytes))
    if target.simulator is not None:
        timings, problems = simulated_timings(target.simulator, sources, sizes, file, options)
        notes = notes + problems
    else:
        timings = []
        with options.progress("live", len(sources) * len(sizes)) as update:
            for timing in live_timings(sources, sizes, live_options or live.LiveOptions()):
                timings.append(timing)
                update(len(timings))
    return Tuning(collective, target.text, target.kind, len(sources), timings, notes)
