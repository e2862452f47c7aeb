# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Where `towpath tune COLLECTIVE` times its candidates, and which make sense there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from towpath import _core
from towpath.collectives import fabric, live
from towpath.collectives.gpus import channels_to_fill, gpus_used, hosts_of
from towpath.errors import ConfigError, quoted
from towpath.specs import catalogue
from towpath.tuning.collective import (
    Options,
    Simulator,
    Tuning,
    candidates,
    live_timings,
    mailboxes_of,
    simulated_timings,
)

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from towpath.studies.sweep import SweepOptions

PROTOCOLS: tuple[str, ...] = _core.PROTOCOLS
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
    channels: tuple[int, ...] | None = None
    protocols: tuple[str, ...] | None = None


@dataclass(frozen=True)
class TuneTarget:
    """A place.

    Attributes:
        name: short, for a folder.
        text: for people.
        options: what candidates are made of.
        simulator: None for processes of this host.
        is_gpus: whether NCCL could run there.
    """

    name: str
    text: str
    options: Options
    simulator: Simulator | None = None
    is_gpus: bool = False

    @property
    def kind(self) -> str:
        return "live" if self.simulator is None else "simulated"


def find_target(request: TuneRequest) -> TuneTarget:
    """What the options name.

    Raises:
        ConfigError: there is no such place, or an option is not for it.
    """
    if (request.machine is None) == (request.live is None):
        raise ConfigError("say where: either --machine NAME simulates or --live RANKS runs here")
    if request.machine is None:
        return _live(request)
    kind = catalogue.kind_of(request.machine)
    if kind == "chip_cluster":
        return _chips(request, request.machine)
    return _mailboxes(request, request.machine) if kind == "mailbox_cluster" else _gpus(
        request, request.machine
    )  # fmt: skip


def _refuse(request: TuneRequest, names: tuple[str, ...], place: str) -> None:
    for name in names:
        if getattr(request, name) is not None:
            raise ConfigError(
                f"--{name.replace('_', '-')} is for a machine of GPUs, not for {place}"
            )


def _live(request: TuneRequest) -> TuneTarget:
    _refuse(
        request, ("hosts", "ranks", "ranks_per_host", "complete_from"), "processes of this host"
    )
    ranks = request.live or 0
    live.check_ranks(ranks)
    options = Options(ranks, request.channels or _LIVE_CHANNELS, request.protocols or ("Simple",))
    return TuneTarget(f"live-{ranks}", f"{ranks} processes of this host", options)


def _chips(request: TuneRequest, machine: str) -> TuneTarget:
    _refuse(request, ("hosts", "ranks", "ranks_per_host", "complete_from"), "chips")
    spec = catalogue.load_chip_cluster(machine)
    cluster = spec.build()
    fabric.check_linked(machine, cluster)
    try:
        ring, mesh = (fabric.layout_of(cluster, on_grid) for on_grid in (False, True))
    except ValueError as error:
        raise ConfigError(f"--machine is {quoted(machine)}: {error}") from None
    options = Options(
        len(ring.places), request.channels or powers_to(2 * fabric.planes(cluster)),
        request.protocols or ("Simple",), (False, True),
        grid=fabric.grid_of(mesh.shape) if fabric.is_grid(mesh.shape) else {},
    )  # fmt: skip
    text = f"{spec.name}, {len(ring.places)} chips"
    return TuneTarget(spec.name, text, options, Simulator(machine))


def _mailboxes(request: TuneRequest, machine: str) -> TuneTarget:
    _refuse(request, ("hosts", "ranks_per_host", "complete_from"), "a cluster with mailboxes")
    spec = mailboxes_of(machine, request.ranks)
    nodes = spec.nodes.value
    options = Options(nodes, request.channels or (1,), request.protocols or ("Simple",))
    simulator = Simulator(machine, (None, request.ranks, None))
    return TuneTarget(spec.name, f"{spec.name}, {nodes} nodes", options, simulator)


def _gpus(request: TuneRequest, machine: str) -> TuneTarget:
    sized = (request.hosts, request.ranks, request.complete_from)
    spec = catalogue.load(machine, *sized)
    gpus = gpus_used(spec, request.ranks_per_host)
    options = Options(
        len(gpus), request.channels or powers_to(channels_to_fill(spec)),
        request.protocols or PROTOCOLS, hosts=hosts_of(spec, gpus),
    )  # fmt: skip
    hosts = "1 host" if spec.host_count == 1 else f"{spec.host_count} hosts"
    text = f"{spec.name}, {len(gpus)} of {spec.ranks} GPUs on {hosts}"
    simulator = Simulator(machine, sized, tuple(gpus))
    return TuneTarget(spec.name, text, options, simulator, is_gpus=True)


def powers_to(most: int) -> tuple[int, ...]:
    """1, 2, 4 and so on, and the last one itself.

    >>> powers_to(24)
    (1, 2, 4, 8, 16, 24)
    """
    return tuple(sorted({*(1 << power for power in range(most.bit_length())), most}))


def tune(
    target: TuneTarget,
    collective: str,
    sizes_bytes: Iterable[int],
    file: Path,
    options: SweepOptions,
    *,
    live_options: live.LiveOptions | None = None,
) -> Tuning:
    """Time every candidate on a target.

    Args:
        target: from `find_target`.
        collective: its name.
        sizes_bytes: sizes of the whole array.
        file: keeps what is simulated, a line per point; a later call continues from it.
        options: how to simulate; its progress also shows live runs.
        live_options: how to measure live.

    Returns:
        All timings, and the notes about what could not be timed.

    Raises:
        ConfigError: no schedule cuts an array of one of the sizes.
        LiveError: a live rank failed.
    """
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
