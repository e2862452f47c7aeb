# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""The description of a cluster of chips: their positions, and the Ethernet cores that each link
joins.

A file lists chips and links, or contains the rule for a grid. An end of a link is written
'chip/channel'; channel n is the n-th Ethernet tile of that chip.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Literal, NamedTuple

from pydantic import Field, PlainSerializer, PlainValidator, model_validator
from pydantic_core import PydanticCustomError

from towpath.errors import ConfigError, DescriptionError
from towpath.specs.chip_spec import ChipSpec, Coordinate, Position
from towpath.specs.input_file import YamlDocument
from towpath.specs.spec_model import Frozen, Name, Text, error_at, errors_at, validated, wrong

if TYPE_CHECKING:
    from towpath._core import ChipCluster

CHIPS_MAX = 1024
CHANNELS_MAX = 256
_LINKS_MAX = CHIPS_MAX * 16

_END = re.compile(r"([0-9]{1,5})/([0-9]{1,4})\Z", re.ASCII)


class EthernetEnd(NamedTuple):
    """One end of a link."""

    chip: int
    channel: int

    def __str__(self) -> str:
        return f"{self.chip}/{self.channel}"


def _end(value: object) -> EthernetEnd:
    if isinstance(value, EthernetEnd):
        return value
    match = _END.match(value) if isinstance(value, str) else None
    if match is None:
        raise PydanticCustomError("end", "it must be an end as chip/channel, such as 0/8")
    return EthernetEnd(int(match[1]), int(match[2]))


EndName = Annotated[EthernetEnd, PlainValidator(_end), PlainSerializer(str)]
Channel = Annotated[int, Field(strict=True, ge=0, lt=CHANNELS_MAX)]
Channels = Annotated[tuple[Channel, ...], Field(max_length=CHANNELS_MAX)]
Place = Annotated[int, Field(strict=True, ge=0, lt=CHIPS_MAX)]
GridSide = Annotated[int, Field(strict=True, ge=1, le=64)]
ChipName = Annotated[str, Field(strict=True, min_length=1, max_length=200)]
Harvested = Annotated[tuple[Position, ...], Field(max_length=64)] | None


# --- as resolved ------------------------------------------------------------------------------


@dataclass(frozen=True)
class PlacedChip:
    """A chip of a cluster. `has_host_link` is True if the host reaches it over PCIe."""

    chip: ChipSpec
    x: int
    y: int
    rack: int = 0
    shelf: int = 0
    has_host_link: bool = False


class EthernetLink(NamedTuple):
    """A link. Reserved links belong to the dispatcher, and kernels cannot use them."""

    one: EthernetEnd
    other: EthernetEnd
    is_reserved: bool = False


@dataclass(frozen=True)
class ChipClusterSpec:
    """A cluster of chips. Immutable; `source` is the source of the places and links."""

    name: str
    description: str
    source: str
    chips: tuple[PlacedChip, ...]
    links: tuple[EthernetLink, ...]
    dispatcher_source: str = ""
    notes: tuple[str, ...] = ()

    @cached_property
    def link_of_end(self) -> dict[EthernetEnd, EthernetLink]:
        """The link of each end, for all ends with a link."""
        return {end: link for link in self.links for end in (link.one, link.other)}

    def connected(self, end: EthernetEnd) -> EthernetEnd | None:
        """The opposite end of the link at `end`, if there is one."""
        link = self.link_of_end.get(end)
        if link is None:
            return None
        return link.other if link.one == end else link.one

    def core_of(self, end: EthernetEnd) -> Coordinate:
        """The tile of an end."""
        return self.chips[end.chip].chip.tiles.ethernet[end.channel]

    def channels_of(self, chip: int) -> list[EthernetEnd]:
        """Every Ethernet channel of a chip, with a link or without."""
        count = len(self.chips[chip].chip.tiles.ethernet)
        return [EthernetEnd(chip, channel) for channel in range(count)]

    def links_by_pair(self) -> dict[tuple[int, int], list[EthernetLink]]:
        """The links between each two chips that are joined, lower chip first."""
        pairs: dict[tuple[int, int], list[EthernetLink]] = {}
        for link in self.links:
            one, other = sorted((link.one, link.other))
            same = pairs.setdefault((one.chip, other.chip), [])
            same.append(EthernetLink(one, other, link.is_reserved))
        return {pair: sorted(pairs[pair]) for pair in sorted(pairs)}

    def data(self) -> dict[str, object]:
        """Data for the core: chips with one spec share a kind, and values have no sources."""
        kinds = {id(placed.chip): placed.chip for placed in self.chips}
        number_of = {chip: number for number, chip in enumerate(kinds)}
        return {
            "form": "chip_cluster",
            "name": self.name,
            "kinds": [chip.data() for chip in kinds.values()],
            "chips": [
                {
                    "kind": number_of[id(placed.chip)], "x": placed.x, "y": placed.y,
                    "rack": placed.rack, "shelf": placed.shelf,
                    "has_host_link": placed.has_host_link,
                }
                for placed in self.chips
            ],
            "links": [
                {"ends": [list(link.one), list(link.other)], "is_reserved": link.is_reserved}
                for link in self.links
            ],
        }  # fmt: skip

    def build(self) -> ChipCluster:
        """Builds the ChipCluster for simulations."""
        from towpath import _core

        return _core.parse_chip_cluster(json.dumps(self.data()), f"cluster '{self.name}'")


# --- as written -------------------------------------------------------------------------------


class ListedChip(Frozen):
    """A chip: a shipped one by name, or a chip's file. `harvested` lists rows or columns of it."""

    chip: ChipName
    x: Place
    y: Place
    rack: Place = 0
    shelf: Place = 0
    host_link: bool = Field(strict=True, default=False)
    harvested: Harvested = None
    harvested_ethernet: Channels = ()


class SideChannels(Frozen):
    """The channels that join a chip to its neighbors in a grid."""

    left: Channels = ()
    right: Channels = ()
    up: Channels = ()
    down: Channels = ()

    @model_validator(mode="after")
    def _check(self) -> SideChannels:
        seen: dict[int, str] = {}
        for side in ("left", "right", "up", "down"):
            for channel in getattr(self, side):
                if channel in seen:
                    problem = f"names channel {channel}, which {seen[channel]} names already"
                    raise wrong(f"grid.channels.{side}", problem)
                seen[channel] = side
        for side, opposite in (("left", "right"), ("up", "down")):
            here, there = len(getattr(self, side)), len(getattr(self, opposite))
            if here != there:
                problem = f"has {there} channels; it must have {here}, as many as {side}"
                raise wrong(f"grid.channels.{opposite}", problem)
        return self


class GridRule(Frozen):
    """Chips of one kind in rows and columns, numbered row by row, each joined to its neighbors.

    In mirrored columns left and right are swapped, and in mirrored rows up and down, as on boards
    that face each other. `rings` closes every row (x), every column (y), or both.
    """

    chip: ChipName
    columns: GridSide
    rows: GridSide
    channels: SideChannels
    mirrored_columns: Annotated[tuple[Position, ...], Field(max_length=64)] = ()
    mirrored_rows: Annotated[tuple[Position, ...], Field(max_length=64)] = ()
    rings: Literal["none", "x", "y", "both"] = "none"
    host_link: bool = Field(strict=True, default=False)
    harvested: Harvested = None
    harvested_ethernet: Channels = ()

    @model_validator(mode="after")
    def _check(self) -> GridRule:
        if self.columns * self.rows > CHIPS_MAX:
            problem = f"is {self.rows}, which makes {self.rows * self.columns} chips"
            raise wrong("grid.rows", f"{problem}; at most {CHIPS_MAX} are allowed")
        for axis, name, count in (("x", "columns", self.columns), ("y", "rows", self.rows)):
            if self.rings in (axis, "both") and count < 2:
                problem = f"is '{self.rings}', but {name} is 1; a ring needs two chips"
                raise wrong("grid.rings", problem)
            for number, one in enumerate(getattr(self, f"mirrored_{name}")):
                if one >= count:
                    problem = f"is {one}; the {name} are 0 to {count - 1}"
                    raise wrong(f"grid.mirrored_{name}[{number}]", problem)
        return self

    def chip_list(self) -> list[ListedChip]:
        """The chips, row by row."""
        return [
            ListedChip(
                chip=self.chip, x=column, y=row, host_link=self.host_link,
                harvested=self.harvested, harvested_ethernet=self.harvested_ethernet,
            )
            for row in range(self.rows)
            for column in range(self.columns)
        ]  # fmt: skip

    def links(self) -> Iterator[tuple[EthernetEnd, EthernetEnd]]:
        """The links, chip by chip: first those to the right, then the downward ones."""
        for row in range(self.rows):
            for column in range(self.columns):
                if column + 1 < self.columns or self.rings in ("x", "both"):
                    yield from self._joined(column, row, (column + 1) % self.columns, row, "right")
                if row + 1 < self.rows or self.rings in ("y", "both"):
                    yield from self._joined(column, row, column, (row + 1) % self.rows, "down")

    def _joined(
        self, column: int, row: int, to_column: int, to_row: int, side: str
    ) -> Iterator[tuple[EthernetEnd, EthernetEnd]]:
        opposite = {"right": "left", "down": "up"}[side]
        here = self._side(side, column, row)
        there = self._side(opposite, to_column, to_row)
        chip, other = row * self.columns + column, to_row * self.columns + to_column
        for channel, other_channel in zip(here, there, strict=True):
            yield EthernetEnd(chip, channel), EthernetEnd(other, other_channel)

    def _side(self, side: str, column: int, row: int) -> tuple[int, ...]:
        """The channels on a side of a chip, in its orientation."""
        opposite = {"left": "right", "right": "left", "up": "down", "down": "up"}[side]
        is_across = side in ("left", "right")
        is_mirrored = column in self.mirrored_columns if is_across else row in self.mirrored_rows
        return getattr(self.channels, opposite if is_mirrored else side)


class Dispatcher(Frozen):
    """The dispatcher's links, each named by either of its ends."""

    links: Annotated[tuple[EndName, ...], Field(max_length=_LINKS_MAX)]
    source: Text


class _Written(Frozen):
    form: Literal["chip_cluster"]
    name: Name
    description: Text
    source: Text
    notes: Annotated[tuple[Text, ...], Field(max_length=100)] = ()
    chips: Annotated[tuple[ListedChip, ...], Field(min_length=1, max_length=CHIPS_MAX)] | None = (
        None
    )
    links: Annotated[tuple[tuple[EndName, EndName], ...], Field(max_length=_LINKS_MAX)] = ()
    grid: GridRule | None = None
    dispatcher: Dispatcher | None = None

    @model_validator(mode="after")
    def _check(self) -> _Written:
        if (self.chips is None) == (self.grid is None):
            raise wrong("chips", "or grid must be given, but not both")
        if self.grid is not None and self.links:
            raise wrong("links", "cannot be listed with grid, which generates them")
        return self


def parse_chip_cluster_spec(
    document: YamlDocument, file: str, chip_named: Callable[[str], ChipSpec]
) -> ChipClusterSpec:
    """Parses the spec of a YAML document.

    Args:
        document: the file's content.
        file: name of the file, for errors.
        chip_named: returns the chip of a name or file; raises ConfigError if there is none.

    Raises:
        ConfigError: a field is missing, unknown or out of bounds; only the first one is named.
    """
    written = validated(_Written, document, file)
    chips = _placed_chips(written, document, file, chip_named)
    if written.grid is None:
        links = [ListedLink(f"links[{number}]", *ends) for number, ends in enumerate(written.links)]
    else:
        links = [ListedLink("grid.channels", *ends) for ends in written.grid.links()]
    with errors_at(document, file):
        check_places(chips, "chips[{}]")
        reserved = _reserved_ends(written.dispatcher, links)
    spec = ChipClusterSpec(
        name=written.name,
        description=written.description,
        source=written.source,
        chips=tuple(chips),
        links=tuple(
            EthernetLink(one, other, one in reserved or other in reserved)
            for _, one, other in links
        ),
        dispatcher_source=written.dispatcher.source if written.dispatcher else "",
        notes=written.notes,
    )
    with errors_at(document, file):
        check_links(spec, links)
    return spec


def _placed_chips(
    written: _Written, document: YamlDocument, file: str, chip_named: Callable[[str], ChipSpec]
) -> list[PlacedChip]:
    """The chips; equal chips share one ChipSpec."""
    listed = written.chips or (written.grid.chip_list() if written.grid else ())
    specs: dict[tuple[object, ...], ChipSpec] = {}
    placed = []
    for number, one in enumerate(listed):
        where = "grid" if written.grid else f"chips[{number}]"
        kind = (one.chip, one.harvested, one.harvested_ethernet)
        if kind not in specs:
            specs[kind] = _chip_of(one, where, document, file, chip_named)
        placed.append(PlacedChip(specs[kind], one.x, one.y, one.rack, one.shelf, one.host_link))
    return placed


def _chip_of(
    listed: ListedChip,
    where: str,
    document: YamlDocument,
    file: str,
    chip_named: Callable[[str], ChipSpec],
) -> ChipSpec:
    field = f"{where}.chip"
    try:
        chip = chip_named(listed.chip)
        field = f"{where}.harvested"
        if listed.harvested is not None:
            chip = chip.with_harvested(listed.harvested, "the cluster's spec")
        field = f"{where}.harvested_ethernet"
        return chip.with_harvested_ethernet(listed.harvested_ethernet)
    except ConfigError as error:
        problem = str(error) if error.file else error.problem
        raise error_at(field, problem, document, file) from None


def _reserved_ends(
    dispatcher: Dispatcher | None, links: Sequence[ListedLink]
) -> frozenset[EthernetEnd]:
    if dispatcher is None:
        return frozenset()
    joined = {end for link in links for end in (link.one, link.other)}
    for number, end in enumerate(dispatcher.links):
        if end not in joined:
            problem = f"is {end}, where no link ends; it must be an end of a link"
            raise wrong(f"dispatcher.links[{number}]", problem)
    return frozenset(dispatcher.links)


# --- what every source of clusters must meet --------------------------------------------------


class ListedLink(NamedTuple):
    """A link in the form of a file."""

    field: str
    one: EthernetEnd
    other: EthernetEnd


def check_places(chips: Sequence[PlacedChip], field: str) -> None:
    """Rejects two chips at the same place; `field` is a format string for the n-th chip's field."""
    taken: dict[tuple[int, ...], int] = {}
    for number, chip in enumerate(chips):
        place = (chip.x, chip.y, chip.rack, chip.shelf)
        if place in taken:
            problem = f"sits where chip {taken[place]} does; each has its own x, y, rack and shelf"
            raise wrong(field.format(number), problem)
        taken[place] = number


def check_links(spec: ChipClusterSpec, links: Sequence[ListedLink]) -> None:
    """Checks that the core can build the cluster; an error names the link that does not fit."""
    try:
        spec.build()
    except DescriptionError as error:
        match = re.match(r"links\[([0-9]+)\]", error.field)
        field = links[int(match[1])].field if match else error.field
        raise wrong(field, error.problem) from None
