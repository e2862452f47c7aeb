# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""`towpath routes`: static routes over a cluster of chips, as the commands of its Ethernet cores.

A core executes one command per timestep, in the order of its list, and routes are added to the
lists one by one. The order of the routes determines the total number of timesteps. With packets of
a size the lists also run as kernels, which takes time.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from towpath import _core
from towpath.errors import ConfigError, quoted
from towpath.specs.chip_cluster_spec import EthernetEnd

if TYPE_CHECKING:
    from towpath.specs.chip_cluster_spec import ChipClusterSpec

ROUTES_MAX = 1000
_CHIPS_MAX = 1000
_ROUTE = re.compile(r"[0-9]{1,4}(-[0-9]{1,4})+\Z", re.ASCII)
_COLUMNS = 100


@dataclass(frozen=True)
class RouteSchedule:
    """Routes added in one order: the commands of every Ethernet core with their timesteps."""

    order: list[int]
    timesteps: int
    # By core: (timestep, "send" or "receive", route, hop), in the order of its list.
    commands: dict[EthernetEnd, list[tuple[int, str, int, int]]]
    # A packet over each route, in simulated time; None if none was asked for.
    time_us: float | None = None

    @property
    def length(self) -> str:
        """The duration as text."""
        time = "" if self.time_us is None else f", {self.time_us:.2f} us"
        return f"{self.timesteps} timesteps{time}"

    def table(self) -> str:
        """A row per core, a column per timestep: `2>` sends for route 2, `>2` receives for it.

        Cells that do not fit continue on further rows.
        """
        width = max(len(str(self.timesteps)), len(str(max(self.order, default=0))) + 1) + 1
        first_columns = 12
        fitting = max((_COLUMNS - first_columns) // width, 1)
        blocks = []
        for start in range(0, self.timesteps, fitting):
            steps = range(start + 1, min(start + fitting, self.timesteps) + 1)
            lines = [f"{'core':<{first_columns}}" + "".join(f"{step:>{width}}" for step in steps)]
            for core, commands in self.commands.items():
                at = {step: _cell(kind, route) for step, kind, route, _ in commands}
                cells = "".join(f"{at.get(step, '.'):>{width}}" for step in steps)
                lines.append(f"{f'{core.chip} E{core.channel}':<{first_columns}}{cells}")
            blocks.append("\n".join(lines))
        return "\n\n".join(blocks)

    def to_dict(self) -> dict[str, Any]:
        """Returns it as plain data for JSON."""
        commands = [
            {"core": str(core), "timestep": step, "command": kind, "route": route, "hop": hop}
            for core, listed in self.commands.items()
            for step, kind, route, hop in listed
        ]
        return {
            "order": self.order, "timesteps": self.timesteps, "time_us": self.time_us,
            "commands": commands,
        }  # fmt: skip


@dataclass(frozen=True)
class StaticRoutes:
    """Routes on a cluster: in the given order, and in the best order found."""

    cluster: str
    chip_lists: list[list[int]]
    given: RouteSchedule
    best: RouteSchedule
    is_best: bool  # no order takes fewer timesteps
    timesteps_min: int
    packet_bytes: int | None = None

    def text(self) -> str:
        """The result for people."""
        hops = sum(len(chips) - 1 for chips in self.chip_lists)
        known = "no order takes fewer" if self.is_best else f"at least {self.timesteps_min}"
        order = " ".join(map(str, self.best.order))
        packets = f", a packet of {self.packet_bytes} bytes each" if self.packet_bytes else ""
        lines = [f"{len(self.chip_lists)} routes of {hops} hops on {self.cluster}{packets}"]
        lines += [
            f"  route {number}: {'-'.join(map(str, chips))}"
            for number, chips in enumerate(self.chip_lists)
        ]
        lines += ["", f"in the given order: {self.given.length}", self.given.table()]
        if self.best.timesteps < self.given.timesteps:
            lines += [
                "",
                f"in the order {order}: {self.best.length} ({known})",
                self.best.table(),
            ]
        else:
            lines += ["", f"no better order was found ({known})"]
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """Returns it as plain data for JSON."""
        return {
            "cluster": self.cluster,
            "routes": self.chip_lists,
            "given": self.given.to_dict(),
            "best": self.best.to_dict(),
            "is_best": self.is_best,
            "timesteps_min": self.timesteps_min,
            "packet_bytes": self.packet_bytes,
        }


def _cell(kind: str, route: int) -> str:
    return f"{route}>" if kind == "send" else f">{route}"


def parse_routes(texts: Sequence[str]) -> list[list[int]]:
    """Lists of chips, each written as 0-1-2.

    Raises:
        ConfigError: a list has another form, or there are too many.
    """
    if not 1 <= len(texts) <= ROUTES_MAX:
        raise ConfigError(f"there are {len(texts)} routes; there must be 1 to {ROUTES_MAX}")
    routes = []
    for text in texts:
        chips = text.split("-")
        if not _ROUTE.match(text) or len(chips) > _CHIPS_MAX:
            problem = f"route {quoted(text)} must be two chips or more, such as 0-1-2"
            raise ConfigError(problem)
        routes.append([int(chip) for chip in chips])
    return routes


def plan_routes(
    spec: ChipClusterSpec,
    chip_lists: list[list[int]],
    *,
    buffers_per_core: int = 1,
    candidates_max: int = 20_000,
    seed: int = 1,
    packet_bytes: int | None = None,
) -> StaticRoutes:
    """Plans static routes over the links of a cluster that the dispatcher does not use.

    Args:
        spec: the cluster.
        chip_lists: the chips of each route, from producer to consumer.
        buffers_per_core: number of packets that an Ethernet core can store.
        candidates_max: number of orders to try if trying all of them takes too long.
        seed: seed of that search.
        packet_bytes: size of a packet over each route, which the lists move as kernels; None: only
            a plan.

    Raises:
        ConfigError: two consecutive chips are not joined, or a packet does not fit.
    """
    try:
        chips = spec.build()
        routes = _core.route_over_links(chips, chip_lists)
        found = _core.find_route_order(
            routes, buffers_per_core=buffers_per_core, candidates_max=candidates_max, seed=seed
        )
        given = _schedule(routes, list(range(len(routes))), buffers_per_core)
        best = _schedule(routes, found.order, buffers_per_core)
        if packet_bytes is not None:
            given, best = (
                _timed(chips, routes, schedule, packet_bytes, buffers_per_core)
                for schedule in (given, best)
            )
    except ValueError as error:
        raise ConfigError(str(error)) from None
    least = _core.timesteps_min(routes)
    return StaticRoutes(spec.name, chip_lists, given, best, found.is_best, least, packet_bytes)


def _timed(
    chips: Any, routes: Any, schedule: RouteSchedule, packet_bytes: int, buffers_per_core: int
) -> RouteSchedule:
    lists = _core.commands_in_order(routes, schedule.order)
    time_ns, _, wrong = _core.run_route_lists(chips, routes, lists, packet_bytes, buffers_per_core)
    assert wrong == 0
    return replace(schedule, time_us=time_ns / 1e3)


def _schedule(routes: Any, order: list[int], buffers_per_core: int) -> RouteSchedule:
    lists = _core.commands_in_order(routes, order)
    outcome, deadlock = _core.execute_routes(routes, lists, buffers_per_core)
    assert not deadlock  # routes that are added whole never do
    commands = {
        EthernetEnd(*one.core): [
            (outcome.timestep_of[command.route][command.hop], command.kind.name, command.route,
             command.hop)
            for command in one.commands
        ]
        for one in lists
    }  # fmt: skip
    return RouteSchedule(order, outcome.timesteps, commands)
