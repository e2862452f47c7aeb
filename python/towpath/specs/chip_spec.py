# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""The description of a chip: a grid of tiles, and the costs of moving data on it.

Every quantity has a value in the unit in the name of its field, and a source. The blocks of
parameters come from the tables of the C++ core (src/towpath/machine/chip_parameters.cpp). Tiles are
named 'x-y' in the coordinates of NoC 0: x to the right, y downward.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Literal, NamedTuple

from pydantic import Field, PlainSerializer, PlainValidator, model_validator
from pydantic_core import PydanticCustomError

from towpath.errors import ConfigError, quoted
from towpath.specs.input_file import YamlDocument
from towpath.specs.parameter_models import from_table, quantity_model
from towpath.specs.spec_model import (
    Block,
    Frozen,
    Name,
    Quantity,
    Text,
    errors_of_core,
    validated,
    values_of,
    wrong,
)

if TYPE_CHECKING:
    from towpath._core import Chip

# What kernels in source form are compiled for, as tt-metal spells it.
Architecture = Literal["wormhole_b0", "blackhole"]

SIDE_MAX = 64
TILES_MAX = SIDE_MAX * SIDE_MAX

_COORDINATE = re.compile(r"([0-9]{1,4})-([0-9]{1,4})\Z", re.ASCII)


class Coordinate(NamedTuple):
    """A tile's position on the grid."""

    x: int
    y: int

    def __str__(self) -> str:
        return f"{self.x}-{self.y}"


def _coordinate(value: object) -> Coordinate:
    match = _COORDINATE.match(value) if isinstance(value, str) else None
    if isinstance(value, Coordinate):
        return value
    if match is None:
        raise PydanticCustomError("coordinate", "it must be a tile as x-y, such as 3-7")
    return Coordinate(int(match[1]), int(match[2]))


TileName = Annotated[Coordinate, PlainValidator(_coordinate), PlainSerializer(str)]
TileList = Annotated[tuple[TileName, ...], Field(max_length=TILES_MAX)]
TileKindName = Literal["worker", "dram", "ethernet", "pcie", "arc", "router_only", "harvested"]
Side = Annotated[int, Field(strict=True, ge=1, le=SIDE_MAX)]
Position = Annotated[int, Field(strict=True, ge=0, lt=SIDE_MAX)]
if TYPE_CHECKING:
    ClockMhz = Quantity[float]
    L1Bytes = Quantity[int]
    EthernetL1Bytes = Quantity[int]
else:
    ClockMhz = quantity_model("chip", "clock_mhz")
    L1Bytes = quantity_model("chip", "l1_bytes")
    EthernetL1Bytes = quantity_model("chip", "ethernet_l1_bytes")


@from_table("chip", "router")
class RouterParameters(Block):
    """Routers and the links between them. Delays are in cycles of the chip's clock."""


@from_table("chip", "niu")
class NiuParameters(Block):
    """The network interface of a tile."""


@from_table("chip", "dram")
class DramParameters(Block):
    """The channels behind a group of DRAM tiles."""


@from_table("chip", "ethernet")
class EthernetParameters(Block):
    """The Ethernet subsystem of a tile, and its link."""


@from_table("chip", "pcie.windows")
class WindowParameters(Block):
    """Windows of one size that the chip maps into the host's address space."""


@from_table("chip", "pcie")
class PcieParameters(Block):
    """The chip's side of the host link."""

    windows: Annotated[tuple[WindowParameters, ...], Field(min_length=1, max_length=16)]


@from_table("chip", "alignment")
class AlignmentParameters(Block):
    """Moduli with which the addresses of a transfer must be congruent."""


class Grid(Frozen):
    """Size of the grid in tiles."""

    width: Side
    height: Side
    source: Text


class ListedTile(NamedTuple):
    """A tile in the form of a file."""

    field: str
    kind: TileKindName
    at: Coordinate


class Tiles(Frozen):
    """Every tile of the grid, by kind; DRAM tiles are in groups that share channels."""

    source: Text
    worker: Annotated[TileList, Field(min_length=1)]
    dram: Annotated[tuple[Annotated[TileList, Field(min_length=1)], ...], Field(max_length=64)] = ()
    ethernet: TileList = ()
    pcie: TileList = ()
    arc: TileList = ()
    router_only: TileList = ()

    def listed(self) -> Iterator[ListedTile]:
        """Every tile with its kind and the field that lists it."""
        for group, tiles in enumerate(self.dram):
            for number, at in enumerate(tiles):
                yield ListedTile(f"tiles.dram[{group}][{number}]", "dram", at)
        lists: tuple[tuple[TileKindName, TileList], ...] = (
            ("worker", self.worker), ("ethernet", self.ethernet), ("pcie", self.pcie),
            ("arc", self.arc), ("router_only", self.router_only),
        )  # fmt: skip
        for kind, tiles in lists:
            for number, at in enumerate(tiles):
                yield ListedTile(f"tiles.{kind}[{number}]", kind, at)


class Harvesting(Frozen):
    """Rows or columns whose workers are switched off; their routers still work.

    A harvest mask has a bit for each row (or column) with workers, the lowest for the first.
    `ethernet` lists the channels of the whole chip that are off, and `dram` the groups of DRAM
    tiles. `tiles` does not list either of them.
    """

    axis: Literal["rows", "columns"]
    harvested: Annotated[tuple[Position, ...], Field(max_length=SIDE_MAX)]
    ethernet: Annotated[tuple[Position, ...], Field(max_length=SIDE_MAX)] = ()
    dram: Annotated[tuple[Position, ...], Field(max_length=SIDE_MAX)] = ()
    source: Text


_BLOCKS = ("router", "niu", "dram", "ethernet", "pcie", "alignment")


_MASKS = ("tensix", "dram", "eth")


class ChipSpec(Frozen):
    """A chip. Immutable; methods with names that start with `with_` return a changed copy.

    A chip without Ethernet tiles may omit `ethernet`, and a chip whose host link is not simulated
    may omit `pcie`. `architecture` is the architecture of the cores: the target of kernels in
    source form, and the key of the costs of calls. Without it, kernels in source form do not run,
    and calls have the costs of Wormhole.
    """

    form: Literal["chip"]
    name: Name
    description: Text
    architecture: Architecture | None = None
    notes: Annotated[tuple[Text, ...], Field(max_length=100)] = ()
    grid: Grid
    clock_mhz: ClockMhz
    tiles: Tiles
    harvesting: Harvesting
    l1_bytes: L1Bytes
    ethernet_l1_bytes: EthernetL1Bytes
    router: RouterParameters
    niu: NiuParameters
    dram: DramParameters
    ethernet: EthernetParameters | None = None
    pcie: PcieParameters | None = None
    alignment: AlignmentParameters

    @model_validator(mode="after")
    def _check(self) -> ChipSpec:
        check_tiles(self.tiles.listed(), self.grid.width, self.grid.height, "tiles")
        check_worker_grid(self.tiles.worker, "tiles.worker")
        if problem := self._harvesting_problem(self.harvesting.harvested):
            raise wrong("harvesting.harvested", problem)
        if self.tiles.ethernet and self.ethernet is None:
            problem = "lists Ethernet tiles, so the chip needs the block ethernet"
            raise wrong("tiles.ethernet", problem)
        with errors_of_core(self):
            self.build()
        return self

    def harvestable(self) -> list[int]:
        """The rows, or columns, with workers, including harvested ones; bit n of a mask is the
        n-th.

        They are numbers on the grid.
        """
        return sorted({self._line_of(at) for at in self.tiles.worker})

    def with_harvested(self, lines: Sequence[int], source: str = "asked for") -> ChipSpec:
        """Returns this chip with the given rows, or columns, harvested; `lines` are their numbers
        on the grid.

        `source` is the reason.

        Raises:
            ConfigError: one of them cannot be harvested, or no worker would be left.
        """
        if problem := self._harvesting_problem(lines):
            raise ConfigError(problem, field=f"chip '{self.name}'")
        update = {"harvested": tuple(sorted(lines)), "source": source}
        return self.model_copy(update={"harvesting": self.harvesting.model_copy(update=update)})

    def with_harvest_mask(self, mask: int, source: str = "asked for") -> ChipSpec:
        """Returns this chip with the rows, or columns, harvested whose bit in `mask` is set.

        `source` is the reason.

        Raises:
            ConfigError: a bit has no row or column, or no worker would be left.
        """
        lines = self.harvestable()
        if not 0 <= mask < 1 << len(lines):
            axis, bits = self.harvesting.axis, len(lines)
            problem = f"harvest mask is {mask}; its {bits} {axis} with workers allow 0 to"
            raise ConfigError(f"{problem} {(1 << bits) - 1}", field=f"chip '{self.name}'")
        harvested = [line for n, line in enumerate(lines) if mask >> n & 1]
        return self.with_harvested(harvested, source)

    def with_harvested_ethernet(self, channels: Sequence[int]) -> ChipSpec:
        """Returns this chip without some Ethernet tiles; `channels` are their indices in
        `tiles.ethernet`.

        Their routers still work. The remaining channels are numbered without gaps.

        Raises:
            ConfigError: there is no such channel, or one is named twice.
        """
        tiles = self.tiles.ethernet
        self._check_numbers(channels, len(tiles), "Ethernet channel")
        gone = tuple(tiles[channel] for channel in channels)
        update: dict[str, object] = {
            "ethernet": tuple(at for at in tiles if at not in gone),
            "router_only": self.tiles.router_only + gone,
        }
        off = _also_off(self.harvesting.ethernet, channels, len(tiles))
        return self._with_tiles(update, {"ethernet": off})

    def with_harvested_dram(self, groups: Sequence[int]) -> ChipSpec:
        """Returns this chip without some groups of DRAM tiles; `groups` are their indices in
        `tiles.dram`.

        Their routers still work. The remaining groups are numbered without gaps.

        Raises:
            ConfigError: there is no such group, or one is named twice.
        """
        tiles = self.tiles.dram
        self._check_numbers(groups, len(tiles), "DRAM group")
        gone = tuple(at for group in groups for at in tiles[group])
        update: dict[str, object] = {
            "dram": tuple(group for n, group in enumerate(tiles) if n not in groups),
            "router_only": self.tiles.router_only + gone,
        }
        return self._with_tiles(
            update, {"dram": _also_off(self.harvesting.dram, groups, len(tiles))}
        )

    def with_masks(self, text: str) -> ChipSpec:
        """Returns this chip with the masks of tt-umd's log: 'tensix=0x1020, dram=0x8, eth=0x3fff'.

        A bit represents a row or column, a group of DRAM tiles or an Ethernet core in this chip's
        order. A missing mask changes nothing.

        Raises:
            ConfigError: the text is not such a list, or an element cannot be harvested.
        """
        chip = self
        for word in text.split(","):
            kind, _, number = (part.strip() for part in word.partition("="))
            if kind not in _MASKS or not re.fullmatch(r"0x[0-9a-fA-F]{1,16}|[0-9]{1,19}", number):
                kinds = ", ".join(_MASKS)
                problem = f"harvesting is {quoted(text)}; it must be masks of {kinds}"
                raise ConfigError(f"{problem}, such as tensix=0x1020", field=f"chip '{self.name}'")
            mask = int(number, 16 if number.startswith("0x") else 10)
            bits = [bit for bit in range(mask.bit_length()) if mask >> bit & 1]
            if kind == "tensix":
                chip = chip.with_harvest_mask(mask)
            elif kind == "dram":
                chip = chip.with_harvested_dram(bits)
            else:
                chip = chip.with_harvested_ethernet(bits)
        return chip

    def tile_kinds(self) -> dict[Coordinate, TileKindName]:
        """The kind of every tile after harvesting, row by row."""
        kind_at = {listed.at: listed.kind for listed in self.tiles.listed()}
        for at in self.tiles.worker:
            if self._line_of(at) in self.harvesting.harvested:
                kind_at[at] = "harvested"
        return {at: kind_at[at] for at in sorted(kind_at, key=lambda at: (at.y, at.x))}

    def workers(self) -> list[Coordinate]:
        """The remaining workers, in logical order: row by row."""
        return [at for at, kind in self.tile_kinds().items() if kind == "worker"]

    def worker_grid(self) -> tuple[int, int]:
        """Columns and rows of the logical grid."""
        workers = self.workers()
        return len({at.x for at in workers}), len({at.y for at in workers})

    def data(self) -> dict[str, object]:
        """Data for the core: values without sources, after harvesting."""
        kinds = iter(self.tile_kinds().values())
        data: dict[str, object] = {
            "form": "chip",
            "name": self.name,
            "width": self.grid.width,
            "height": self.grid.height,
            "tiles": [list(islice(kinds, self.grid.width)) for _ in range(self.grid.height)],
            "dram_tiles": [[n, *at] for n, group in enumerate(self.tiles.dram) for at in group],
            "ethernet_cores": [list(at) for at in self.tiles.ethernet],
            "harvested_ethernet": list(self.harvesting.ethernet),
            "harvested_dram": list(self.harvesting.dram),
        }
        if self.architecture is not None:
            data["architecture"] = self.architecture
        for name in ("clock_mhz", "l1_bytes", "ethernet_l1_bytes"):
            data[name] = getattr(self, name).value
        for name in _BLOCKS:
            if (block := getattr(self, name)) is not None:
                data[name] = values_of(block)
        if self.pcie is not None:
            windows = [values_of(window) for window in self.pcie.windows]
            data["pcie"] = values_of(self.pcie) | {"windows": windows}
        return data

    def build(self) -> Chip:
        """Builds the Chip for simulations."""
        from towpath import _core

        return _core.parse_chip(json.dumps(self.data()), f"chip '{self.name}'")

    def _line_of(self, at: Coordinate) -> int:
        return at.y if self.harvesting.axis == "rows" else at.x

    def _with_tiles(self, tiles: dict[str, object], harvesting: dict[str, object]) -> ChipSpec:
        return self.model_copy(
            update={
                "tiles": self.tiles.model_copy(update=tiles),
                "harvesting": self.harvesting.model_copy(update=harvesting),
            }
        )

    def _check_numbers(self, numbers: Sequence[int], count: int, what: str) -> None:
        for position, number in enumerate(numbers):
            if not 0 <= number < count:
                known = f"0 to {count - 1}" if count else "none"
                problem = f"has no {what} {number}; it has {known}"
                raise ConfigError(problem, field=f"chip '{self.name}'")
            if number in numbers[:position]:
                problem = f"{what} {number} is harvested twice"
                raise ConfigError(problem, field=f"chip '{self.name}'")

    def _harvesting_problem(self, lines: Sequence[int]) -> str | None:
        allowed = self.harvestable()
        line = self.harvesting.axis.removesuffix("s")
        for number, one in enumerate(lines):
            if one not in allowed:
                known = ", ".join(map(str, allowed))
                return f"names {line} {one}, which has no worker; {known} have some"
            if one in lines[:number]:
                return f"names {line} {one} a second time"
        if len(lines) == len(allowed):
            return f"names every {line} with workers; at least one must be left"
        return None


def _also_off(before: Sequence[int], numbers: Sequence[int], left: int) -> tuple[int, ...]:
    """The numbers on the whole chip that are off, when `numbers` of the `left` ones are also
    switched off.
    """
    whole = [n for n in range(left + len(before)) if n not in before]
    return tuple(sorted((*before, *(whole[number] for number in numbers))))


def check_tiles(listed: Iterable[ListedTile], width: int, height: int, field: str) -> None:
    """Checks that every tile of the grid is listed exactly once.

    Args:
        listed: the tiles in the form of a file.
        width: width of the grid.
        height: height of the grid.
        field: field to name in the error for a tile that is not listed.
    """
    kind_at: dict[Coordinate, str] = {}
    for name, kind, at in listed:
        if at.x >= width or at.y >= height:
            problem = f"{at} is off the grid, which ends at {width - 1}-{height - 1}"
            raise wrong(name, problem)
        if at in kind_at:
            problem = f"lists {at} as {kind}, but it already is {kind_at[at]}; it must be listed"
            raise wrong(name, f"{problem} once")
        kind_at[at] = kind
    everything = (Coordinate(x, y) for y in range(height) for x in range(width))
    missing = next((at for at in everything if at not in kind_at), None)
    if missing is not None:
        raise wrong(field, f"leaves out {missing}; every tile of the grid must be in a list")


def check_worker_grid(workers: Sequence[Coordinate], field: str) -> None:
    """Checks that the logical grid has no gaps: every row with workers must have the
    same columns.
    """
    columns_of: dict[int, set[int]] = {}
    for at in workers:
        columns_of.setdefault(at.y, set()).add(at.x)
    first = min(columns_of)
    for row in sorted(columns_of):
        if columns_of[row] != columns_of[first]:
            problem = f"has row {row} in other columns than row {first}; rows with workers must"
            raise wrong(field, f"{problem} have the same")


def parse_chip_spec(document: YamlDocument, file: str) -> ChipSpec:
    """Parses the spec of a YAML document.

    Raises:
        ConfigError: a field is missing, unknown or out of bounds; only the first one is named.
    """
    return validated(ChipSpec, document, file)
