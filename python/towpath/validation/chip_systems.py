# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Clusters of chips for the rows of measured tables, built by rule.

A row gives the number, architecture and form of its chips, or names a system such as `p150_x8` or
`wh_galaxy_32`, which determines them. If a shipped machine matches, it is used. Any other system is
a grid of the shipped chip.
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Literal

from towpath import _core
from towpath.errors import quoted
from towpath.specs import catalogue
from towpath.specs.chip_cluster_spec import ChipClusterSpec, SideChannels
from towpath.validation.table_kind import CannotSimulate, Row, whole

Form = Literal["line", "ring", "mesh", "torus"]

CHIPS_MAX = 64
LINKS_MAX = 4
# How tables spell forms, in lower case, without what is not a letter.
_FORMS: dict[str, Form] = {
    "line": "line", "linear": "line", "pair": "line", "pairs": "line", "neighborexchange": "line",
    "neighbourexchange": "line", "ring": "ring", "fullring": "ring", "halfring": "ring",
    "mesh": "mesh", "grid": "mesh", "torus": "torus", "torusxy": "torus", "torusx": "torus",
    "torusy": "torus",
}  # fmt: skip
_ARCHITECTURES = {
    "wormhole": "wormhole", "wormholeb": "wormhole", "wh": "wormhole", "blackhole": "blackhole",
    "bh": "blackhole",
}  # fmt: skip
# Links that a side of a Blackhole has in a grid. No description of such a system is shipped: which
# of its channels they are is assumed.
_BLACKHOLE_GRID = SideChannels(left=(0, 1, 4), right=(2, 3, 5), up=(6, 7, 8), down=(9, 10, 11))
# In a row of chips both other sides are free.
_BLACKHOLE_ROW = SideChannels(left=(0, 1, 4, 5), right=(2, 3, 6, 7))


@lru_cache(maxsize=1)
def _galaxy_channels() -> SideChannels:
    """Number of links on a side of a Wormhole in a Galaxy, whose first chip has two neighbors."""
    pairs = catalogue.shipped_chip_cluster("galaxy").links_by_pair()
    beside, below = (links for (first, _), links in pairs.items() if first == 0)
    return SideChannels(
        left=tuple(link.other.channel for link in beside),
        right=tuple(link.one.channel for link in beside),
        up=tuple(link.other.channel for link in below),
        down=tuple(link.one.channel for link in below),
    )


def _channels_of(chip: str, rows: int) -> SideChannels:
    """Number of links on a side of a chip, in a grid of this many rows."""
    if chip == "wormhole":
        return _galaxy_channels()
    return _BLACKHOLE_GRID if rows > 1 else _BLACKHOLE_ROW


@dataclass(frozen=True)
class Family:
    """Systems of one kind: their chip, their default number of chips, and their links.

    Attributes:
        pattern: pattern found in the system's name.
        chip: the shipped chip.
        chips: number of chips of a system of this name.
        chips_per_board: number of chips per unit of the number in the name.
        links: parallel links between neighbors that the fabric uses.
        line_rate_gb_per_s: rate of a link; None: the value in the chip's spec.
    """

    pattern: str
    chip: str
    chips: int
    chips_per_board: int = 1
    links: int = 1
    line_rate_gb_per_s: float | None = None


# tt-metal, CCL_bandwidth: links of Blackhole Galaxies run at half of their rate, which is the
# chip's in the shipped spec; cards of p150 and p300 run at the full one.
_FAMILIES = (
    Family(r"bh.*galaxy|blackhole.*galaxy|galaxy.*(bh|blackhole)", "blackhole", 32, links=2),
    Family(r"p300", "blackhole", 2, chips_per_board=2, links=2, line_rate_gb_per_s=50),
    Family(r"p1[05]0|bh|blackhole|quietbox2", "blackhole", 8, links=2, line_rate_gb_per_s=50),
    Family(r"n300", "wormhole", 2, chips_per_board=2),
    Family(r"t3k|t3000|loudbox|quietbox", "wormhole", 8),
    Family(r"galaxy|6u|tg|wh|wormhole", "wormhole", 32, links=4),
)


@dataclass(frozen=True)
class ChipSystem:
    """Chips of one kind in a form.

    Attributes:
        chip: the shipped chip.
        form: form in which they are joined.
        columns, rows: size of the grid; a line or ring has one row.
        links: parallel links between neighbors.
        line_rate_gb_per_s: rate of a link; None: the value in the chip's spec.
        machine: a shipped machine or a file that is used instead; its fabric has this form.
    """

    chip: str
    form: Form
    columns: int
    rows: int = 1
    links: int = 1
    line_rate_gb_per_s: float | None = None
    machine: str | None = None

    @property
    def chips(self) -> int:
        """The number of chips."""
        return self.columns * self.rows

    @property
    def goes_round(self) -> bool:
        """True if its ends are joined, so that there are two paths from chip to chip."""
        return self.form in ("ring", "torus") and self.chips > 2

    @property
    def link_gb_per_s(self) -> float:
        """The line rate of a link."""
        parameters = _spec(self).chips[0].chip.ethernet
        assert parameters is not None  # its chips are joined
        return float(parameters.line_rate_gb_per_s.value)

    def line_share(self, payload_bytes: int, header_bytes: int) -> float:
        """The part of a line's rate that is payload of packets, without headers and frames.

        Args:
            payload_bytes: payload of a packet; 0: the value in the chip's spec.
            header_bytes: header of a packet.
        """
        chip = _spec(self).chips[0].chip
        if chip.ethernet is None:
            return 1.0
        size_bytes = payload_bytes or _core.fabric_payload_bytes(chip.build())
        packet_bytes = size_bytes + header_bytes
        frames = math.ceil(packet_bytes / chip.ethernet.frame_payload_bytes_max.value)
        on_wire = packet_bytes + frames * chip.ethernet.frame_overhead_bytes.value
        return size_bytes / on_wire

    @property
    def name(self) -> str:
        """The system as one word, such as "wormhole-ring-8"."""
        if self.machine is not None:
            return self.machine
        size = f"{self.columns}x{self.rows}" if self.rows > 1 else str(self.columns)
        return f"{self.chip}-{self.form}-{size}"

    def cluster(self) -> _core.ChipCluster:
        """The cluster for simulations."""
        return _built(self)

    def shape(self) -> _core.FabricShape:
        """The fabric that joins its chips in this form.

        Raises:
            CannotSimulate: the named machine has fewer chips.
        """
        cluster = self.cluster()
        if self.form in ("mesh", "torus"):
            return _core.FabricShape.mesh(cluster)
        chips = _core.FabricShape.usual(cluster).chips
        if len(chips) < self.chips:
            raise CannotSimulate(
                f"{self.name} has {len(chips)} chips; the row's {self.form} has {self.chips}"
            )
        if self.form == "line":
            return _core.FabricShape.line(chips[: self.chips])
        return _core.FabricShape.ring(chips[: self.chips])


@lru_cache(maxsize=32)
def _spec(system: ChipSystem) -> ChipClusterSpec:
    if system.machine is not None:
        return catalogue.load_chip_cluster(system.machine)
    along = {"ring": "x", "torus": "both"}.get(system.form, "none")
    channels = _channels_of(system.chip, system.rows)
    sides = {
        side: list(getattr(channels, side))[: system.links]
        for side in ("left", "right", "up", "down")
    }
    grid = {
        "chip": system.chip, "columns": system.columns, "rows": system.rows,
        "channels": sides, "rings": along, "host_link": True,
    }  # fmt: skip
    text = json.dumps({
        "form": "chip_cluster", "name": system.name, "grid": grid,
        "description": f"{system.chips} chips of a measured row", "source": "built by rule",
    })  # fmt: skip
    spec = catalogue.parse_chip_cluster(text, system.name)
    return _at_rate(spec, system.line_rate_gb_per_s)


def _at_rate(spec: ChipClusterSpec, line_rate_gb_per_s: float | None) -> ChipClusterSpec:
    """The cluster with other links; chips of one kind still share a spec."""
    chip = spec.chips[0].chip
    if line_rate_gb_per_s is None or chip.ethernet is None:
        return spec
    rate = chip.ethernet.line_rate_gb_per_s.model_copy(update={"value": line_rate_gb_per_s})
    ethernet = chip.ethernet.model_copy(update={"line_rate_gb_per_s": rate})
    faster = chip.model_copy(update={"ethernet": ethernet})
    return replace(spec, chips=tuple(replace(placed, chip=faster) for placed in spec.chips))


@lru_cache(maxsize=32)
def _built(system: ChipSystem) -> _core.ChipCluster:
    return _spec(system).build()


# --- from a row -----------------------------------------------------------------------------------


def letters_of(text: str) -> str:
    """A word in the spelling of tables: lower case, only letters."""
    return re.sub(r"[^a-z]", "", text.lower())


def form_of(row: Row, column: str = "topology") -> Form:
    """The form named by a field.

    Raises:
        CannotSimulate: the field does not name a form.
    """
    text = row[column].strip()
    form = _FORMS.get(letters_of(text))
    if form is None:
        allowed = "line, ring, mesh or torus"
        raise CannotSimulate(f"{column} is {quoted(text)}; it must be {allowed}")
    return form


def chip_of(row: Row) -> str:
    """The shipped chip of the architecture in a row.

    Raises:
        CannotSimulate: the row does not name an architecture.
    """
    text = row["arch"].strip()
    chip = _ARCHITECTURES.get(letters_of(text))
    if chip is None:
        raise CannotSimulate(f"arch is {quoted(text)}; choose wormhole_b0 or blackhole")
    return chip


def sides_of(chips: int) -> tuple[int, int]:
    """Columns and rows of a mesh of this many chips: as square as possible, and wide.

    >>> sides_of(32)
    (8, 4)
    """
    rows = max(rows for rows in range(1, chips + 1) if chips % rows == 0 and rows * rows <= chips)
    return chips // rows, rows


def system_of(chip: str, form: Form, chips: int, links: int) -> ChipSystem:
    """The system of a row with these values; a ring or torus of two chips is a line.

    Raises:
        CannotSimulate: its chips have fewer channels.
    """
    if form in ("mesh", "torus"):
        columns, rows = sides_of(chips)
        most = len(_channels_of(chip, rows).left)
    else:
        columns, rows = chips, 1
        most = len(_channels_of(chip, rows).left)
    if links > most:
        problem = f"a {form} of {chips} {chip}s has {links} links in each direction"
        raise CannotSimulate(f"{problem}; its chips have channels for {most}")
    if rows == 1 and form in ("mesh", "torus"):
        form = "line" if form == "mesh" else "ring"
    if chips == 2:
        form = "line"
    if (chip, form, chips, links) == ("wormhole", "ring", 8, 1):
        return ChipSystem(chip, form, 8, machine="t3000")
    return ChipSystem(chip, form, columns, rows, links)


def named_system(row: Row, form: Form) -> ChipSystem:
    """The system named by a row, joined in a form.

    Raises:
        CannotSimulate: systems of that name are unknown, or their chips are not joined.
    """
    text = row["system"].strip()
    name = text.lower()
    chip = chip_of(row) if "arch" in row else ""
    # A name alone may be that of a system with either chip, such as galaxy_32.
    family = next((one for one in _FAMILIES if re.search(one.pattern, f"{chip} {name}")), None)
    if family is None:
        known = "t3k_8, n300, p150_x8, p300_x2, wh_galaxy_32, bh_galaxy_32"
        raise CannotSimulate(f"system is {quoted(text)}; use a name like {known}")
    if chip not in ("", family.chip):
        raise CannotSimulate(f"system is {quoted(text)}, whose chips are {family.chip}s")
    count = _count_in(name, family)
    if not 2 <= count <= CHIPS_MAX:
        problem = f"system is {quoted(text)}, which has {count} chips"
        raise CannotSimulate(f"{problem}; 2 to {CHIPS_MAX} are simulated")
    if family.chip == "wormhole" and count <= 8 and form != "torus":
        return _on_t3000(form, count)
    made = system_of(family.chip, form, count, family.links)
    return replace(made, line_rate_gb_per_s=family.line_rate_gb_per_s)


def _count_in(name: str, family: Family) -> int:
    match = re.search(r"(?:^|[-_ ])(?:x)?([0-9]{1,3})(?:x([0-9]{1,3}))?$", name)
    if match is None:
        return family.chips
    if match[2] is not None:
        return int(match[1]) * int(match[2])
    return int(match[1]) * family.chips_per_board


def _on_t3000(form: Form, chips: int) -> ChipSystem:
    """Up to eight Wormholes are chips of a T3000; a ring of fewer than eight is built by rule."""
    if chips == 2:
        return ChipSystem("wormhole", "line", 2, machine="n300")
    if form == "mesh" and chips == 8:
        return ChipSystem("wormhole", form, 4, 2, machine="t3000")
    if form == "line" or (form == "ring" and chips == 8):
        return ChipSystem("wormhole", form, chips, machine="t3000")
    return system_of("wormhole", form, chips, 1)


def counted_system(row: Row, form: Form) -> ChipSystem:
    """The system of a row that gives the number of chips and links.

    Raises:
        CannotSimulate: a count is out of range.
    """
    chips = whole(row, "n_devices", CHIPS_MAX, least=2)
    links = whole(row, "links_per_direction", LINKS_MAX)
    return system_of(chip_of(row), form, chips, links)


def on_machine(system: ChipSystem, machine: str | None) -> ChipSystem:
    """The same form on the machine that the caller names, if any."""
    return system if machine is None else replace(system, machine=machine)


def describe(system: ChipSystem) -> dict[str, Any]:
    """The simulated system, for the row's further columns."""
    return {"machine": system.name, "form": system.form}
