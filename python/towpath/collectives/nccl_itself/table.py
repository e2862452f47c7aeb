# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Decision tables: the choices that NCCL and RCCL make on the shipped machines.

A file per release in decisions/ has the date, and for each kind of host and number of nodes the
channels, the rings in a node, and per collective the choice from each size on. The name of a host
is the digest of its topology file. A user's machine with the same topology has the same table.
"""

from __future__ import annotations

import hashlib
import json
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from towpath.collectives.nccl_itself.decide import COLLECTIVES, Decision, Decisions
from towpath.collectives.nccl_itself.host import NcclHost
from towpath.collectives.nccl_itself.source import RCCL_PREFIX, release_order

FOLDER = Path(__file__).parent / "decisions"
_DIGITS = 16
_FLOAT_BYTES = 4
# Two sizes per power of two, 8 B to 8 GiB.
GRID = (*(base << power for power in range(2, 32) for base in (2, 3)), 8 << 30)


@dataclass(frozen=True)
class TableChoice:
    """A choice of NCCL from a size on."""

    algorithm: str
    protocol: str
    channels: int
    threads: int


@dataclass(frozen=True)
class TableEntry:
    """The decisions of a release for one number of equal nodes.

    Attributes:
        release: such as "2.28.9".
        date: of the run of NCCL. None: it ran for this call.
        channels: of rings and trees.
        nvls_channels: of the switch.
        orders: the GPUs of a node in the order of each channel's ring.
        is_alternating: every second node has them in the opposite order.
        choices: by collective, from each size in bytes on.
    """

    release: str
    date: str | None
    channels: int
    nvls_channels: int
    orders: tuple[tuple[int, ...], ...]
    is_alternating: bool
    choices: Mapping[str, tuple[tuple[int, TableChoice], ...]]

    def rings(self, nodes: int, gpus: int, channels: int) -> list[list[int]]:
        """The ranks of the rings of the first channels, none if they are not known."""
        if len(self.orders) < channels:
            return []
        return [
            [
                node * gpus + gpu
                for node in range(nodes)
                for gpu in (order[::-1] if self.is_alternating and node % 2 else order)
            ]
            for order in self.orders[:channels]
        ]

    def choice(self, collective: str, size_bytes: int) -> TableChoice | None:
        """The choice at the largest size of the table that is not above this one."""
        rows = self.choices.get(collective)
        if not rows:
            return None
        place = bisect_right([start for start, _ in rows], size_bytes)
        return rows[max(0, place - 1)][1]


def host_digest(host: NcclHost) -> str:
    """The name of a host in tables."""
    text = f"{host.topology}\n{host.description}"
    return hashlib.sha256(text.encode()).hexdigest()[:_DIGITS]


def releases(is_rccl: bool = False) -> list[str]:
    """The releases of NCCL or RCCL with tables, the newest last."""
    found = [file.stem for file in FOLDER.glob("*.json")]
    own = [release for release in found if release.startswith(RCCL_PREFIX) == is_rccl]
    return sorted(own, key=release_order)


def nearest_release(version: str) -> str | None:
    """The newest release of NCCL with tables and the major and minor number of a version.

    >>> nearest_release("2.29.2"), nearest_release("2.4.7")
    ('2.29.7', None)
    """
    series = version.split(".")[:2]
    return next((own for own in reversed(releases()) if own.split(".")[:2] == series), None)


def find_entry(host: NcclHost, nodes: int, release: str | None = None) -> TableEntry | None:
    """The table of a host. None if no shipped machine has this host or size.

    Args:
        host: each node.
        nodes: how many there are.
        release: such as "2.28.9". None: the newest one with tables.
    """
    known = releases(host.is_of_amd)
    if release is None:
        if not known:
            return None
        release = known[-1]
    elif release not in known:
        return None
    data = _file(release)
    found = data["entries"].get(f"{host_digest(host)} {nodes}")
    if found is None:
        return None
    return TableEntry(
        release=release,
        date=data["date"],
        channels=found["channels"],
        nvls_channels=found["nvls_channels"],
        orders=_orders(data["orders"][found["orders"]]),
        is_alternating=found.get("alternating", False),
        choices={name: _rows(data["rows"][found[name]]) for name in COLLECTIVES if name in found},
    )


def entry_of(found: Decisions, nodes: int) -> TableEntry:
    """The decisions of a run as an entry.

    Args:
        found: for the calls of `operations`.
        nodes: how many there were.
    """
    texts = {
        name: [one for one in found.decisions if one.collective == name] for name in COLLECTIVES
    }
    orders, is_alternating = node_orders(found.rings, found.ranks // nodes, nodes)
    return TableEntry(
        release=found.release,
        date=None,
        channels=found.channels,
        nvls_channels=found.nvls_channels,
        orders=orders,
        is_alternating=is_alternating,
        choices={name: _rows(_text(rows)) for name, rows in texts.items() if rows},
    )


@lru_cache(maxsize=8)
def _file(release: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((FOLDER / f"{release}.json").read_text(encoding="utf-8"))
    return found


def _rows(text: str) -> tuple[tuple[int, TableChoice], ...]:
    """Such as "8 ring/LL 1 96, 64 ring/LL 2 96"."""
    rows = []
    for part in text.split(", "):
        size, name, channels, threads = part.split()
        algorithm, protocol = name.split("/")
        rows.append((int(size), TableChoice(algorithm, protocol, int(channels), int(threads))))
    return tuple(rows)


def _orders(text: str) -> tuple[tuple[int, ...], ...]:
    return tuple(tuple(map(int, part.split())) for part in text.split(", ")) if text else ()


# --- writing --------------------------------------------------------------------------------------
def operations(ranks: int) -> list[tuple[str, int]]:
    """The calls that fill a table."""
    return [
        (name, size_bytes)
        for name in COLLECTIVES
        for size_bytes in GRID
        if size_bytes >= _FLOAT_BYTES * (ranks if name in ("all_gather", "reduce_scatter") else 1)
    ]


class TableWriter:
    """Collects the decisions of a release."""

    def __init__(self, release: str, date: str) -> None:
        self._data: dict[str, object] = {"release": release, "date": date}
        self._entries: dict[str, dict[str, object]] = {}
        self._rows: dict[str, int] = {}
        self._orders: dict[str, int] = {}

    def add(self, host: NcclHost, nodes: int, machine: str, found: Decisions) -> None:
        """Adds the decisions of a machine."""
        orders, is_alternating = node_orders(found.rings, found.ranks // nodes, nodes)
        entry: dict[str, object] = {
            "machines": [],
            "channels": found.channels,
            "nvls_channels": found.nvls_channels,
            "orders": _index(self._orders, ", ".join(" ".join(map(str, one)) for one in orders)),
        }
        if is_alternating:
            entry["alternating"] = True
        for name in COLLECTIVES:
            rows = [one for one in found.decisions if one.collective == name]
            if rows:
                entry[name] = _index(self._rows, _text(rows))
        self._entries[f"{host_digest(host)} {nodes}"] = entry
        self.add_name(host, nodes, machine)

    def add_name(self, host: NcclHost, nodes: int, machine: str) -> None:
        """Adds a machine whose hosts are in the table."""
        names = self._entries[f"{host_digest(host)} {nodes}"]["machines"]
        assert isinstance(names, list)
        if machine not in names:
            names.append(machine)

    def has(self, host: NcclHost, nodes: int) -> bool:
        """True if a machine with these hosts was added."""
        return f"{host_digest(host)} {nodes}" in self._entries

    def text(self) -> str:
        """The file."""
        lines = json.dumps(
            {**self._data, "rows": list(self._rows), "orders": list(self._orders),
             "entries": self._entries},
            indent=0, separators=(",", ":"),
        )  # fmt: skip
        return lines + "\n"


def node_orders(
    rings: Sequence[tuple[int, ...]], gpus: int, nodes: int
) -> tuple[tuple[tuple[int, ...], ...], bool]:
    """The order of the first node's GPUs in each ring, and whether every second node reverses it.

    There are no orders if the rings are not made of the same order in each node.
    """
    orders = [_first_order(ring, gpus, nodes) for ring in rings]
    for is_alternating in (False, True):
        expected = [
            tuple(
                node * gpus + gpu
                for node in range(nodes)
                for gpu in (order[::-1] if is_alternating and node % 2 else order)
            )
            for order in orders
        ]
        if all(_is_turned(ring, one) for ring, one in zip(rings, expected, strict=True)):
            return tuple(orders), is_alternating
    return (), False


def _first_order(ring: tuple[int, ...], gpus: int, nodes: int) -> tuple[int, ...]:
    """The first node's GPUs from the one at which a ring enters the node."""
    start = 0
    if nodes > 1:
        start = next(place for place in range(len(ring)) if ring[place] < gpus <= ring[place - 1])
    return (ring[start:] + ring[:start])[:gpus]


def _is_turned(ring: tuple[int, ...], other: tuple[int, ...]) -> bool:
    """True if two rings are the same from another rank on."""
    start = ring.index(other[0]) if other and other[0] in ring else 0
    return ring[start:] + ring[:start] == other


def _text(rows: Sequence[Decision]) -> str:
    parts: list[str] = []
    last = ""
    for one in rows:
        choice = f"{one.name} {one.channels} {one.threads}"
        if choice != last:
            parts.append(f"{one.size_bytes} {choice}")
        last = choice
    return ", ".join(parts)


def _index(table: dict[str, int], text: str) -> int:
    return table.setdefault(text, len(table))
