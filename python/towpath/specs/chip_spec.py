# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""The description of a chip: a grid of tiles, and what moving data on it costs.

As in a machine, every quantity is a Figure: a value in the unit its field names, and where the
value is from. Tiles are named 'x-y' in the coordinates of NoC 0: x to the right, y downwards.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Literal, NamedTuple

from pydantic import Field, PlainSerializer, PlainValidator, model_validator
from pydantic_core import PydanticCustomError

from towpath.errors import ConfigError
from towpath.specs.input_file import YamlDocument
from towpath.specs.machine_spec import Name
from towpath.specs.spec_model import DataRate, Duration, Figure, Frozen, Text, validated, wrong

if TYPE_CHECKING:
    from towpath._core import Chip

SIDE_MAX = 64
TILES_MAX = SIDE_MAX * SIDE_MAX

_COORDINATE = re.compile(r"([0-9]{1,4})-([0-9]{1,4})\Z", re.ASCII)


class Coordinate(NamedTuple):
    """A tile's place on the grid."""

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
Mhz = Figure[Annotated[float, Field(strict=True, ge=1, le=1e6, allow_inf_nan=False)]]
BytesPerCycle = Figure[
    Annotated[float, Field(strict=True, ge=1 / 256, le=1e6, allow_inf_nan=False)]
]
Cycles = Figure[Annotated[int, Field(strict=True, ge=0, le=1_000_000)]]
CyclesNotZero = Figure[Annotated[int, Field(strict=True, ge=1, le=1_000_000)]]
LinkCycles = Figure[Annotated[int, Field(strict=True, ge=1, le=60)]]
Count = Figure[Annotated[int, Field(strict=True, ge=1, le=65_536)]]
CountOrZero = Figure[Annotated[int, Field(strict=True, ge=0, le=65_536)]]
Initiators = Figure[Annotated[int, Field(strict=True, ge=1, le=4)]]
TransactionIds = Figure[Annotated[int, Field(strict=True, ge=1, le=16)]]
TxQueues = Figure[Annotated[int, Field(strict=True, ge=1, le=16)]]
ResendTimeout = Figure[Annotated[float, Field(strict=True, ge=1, le=1e9, allow_inf_nan=False)]]
FrameBytes = Figure[Annotated[int, Field(strict=True, ge=0, le=65_536)]]
PoolFlits = Figure[Annotated[int, Field(strict=True, ge=0, le=65_536)]]
FlitBytes = Figure[Annotated[int, Field(strict=True, ge=1, le=4096)]]
Classes = Figure[Annotated[int, Field(strict=True, ge=1, le=4)]]
Generation = Figure[Annotated[int, Field(strict=True, ge=1, le=6)]]
Lanes = Figure[Annotated[int, Field(strict=True, ge=1, le=32)]]
Truth = Figure[Annotated[bool, Field(strict=True)]]
MemoryBytes = Figure[Annotated[int, Field(strict=True, ge=1, le=1 << 40)]]
AlignmentBytes = Figure[Literal[1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096]]


class Grid(Frozen):
    """How many tiles there are."""

    width: Side
    height: Side
    source: Text


class ListedTile(NamedTuple):
    """A tile as a file lists it."""

    field: str
    kind: TileKindName
    at: Coordinate


class Tiles(Frozen):
    """Every tile of the grid, by kind; DRAM tiles in groups that share the channels behind them."""

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
    """Rows or columns whose workers are switched off; their routers go on working.

    A harvest mask has a bit for each row (or column) that has workers, the lowest for the first.
    `ethernet` are the channels of the whole chip that are off, which `tiles` does not list as such.
    """

    axis: Literal["rows", "columns"]
    harvested: Annotated[tuple[Position, ...], Field(max_length=SIDE_MAX)]
    ethernet: Annotated[tuple[Position, ...], Field(max_length=SIDE_MAX)] = ()
    source: Text


class RouterFigures(Frozen):
    """Routers and the links between them. Delays are in cycles of the chip's clock."""

    flit_bytes: FlitBytes
    packet_data_flits_max: Count
    hop_cycles: LinkCycles
    niu_to_router_cycles: LinkCycles
    router_to_niu_cycles: LinkCycles
    credit_return_cycles: LinkCycles
    classes: Classes
    pool_flits: PoolFlits
    pool_flits_per_vc_max: PoolFlits
    pool_flits_reserved: PoolFlits
    vc_release_cycles: LinkCycles
    has_dateline: bool = Field(strict=True, default=True)


class NiuFigures(Frozen):
    """The network interface of a tile."""

    initiators: Initiators
    transaction_ids: TransactionIds
    outstanding_per_id_max: Count
    request_cycles: Cycles
    read_response_cycles: Cycles
    acknowledge_cycles: Cycles
    port_rate_bytes_per_cycle: BytesPerCycle
    request_stream_rate_bytes_per_cycle: BytesPerCycle
    request_streams: Count
    response_stream_rate_bytes_per_cycle: BytesPerCycle
    backoff_cycles_min: CyclesNotZero
    backoff_cycles_max: CyclesNotZero


class DramFigures(Frozen):
    """The channels behind a group of DRAM tiles."""

    channels_per_group: Count
    channel_rate_bytes_per_cycle: BytesPerCycle
    read_cycles: Cycles
    write_cycles: Cycles
    channel_bytes: MemoryBytes


class SoftwareFigures(Frozen):
    """What software on a worker's data-movement core pays per call."""

    write_cycles: Cycles
    read_cycles: Cycles
    write_with_state_cycles: Cycles
    read_with_state_cycles: Cycles
    read_held_up_cycles: Cycles
    set_state_cycles: Cycles
    multicast_cycles: Cycles
    inline_write_cycles: Cycles
    atomic_cycles: Cycles
    poll_cycles: CyclesNotZero
    call_cycles: Cycles
    write_destination_cycles: Cycles
    read_destination_cycles: Cycles
    reduce_bytes_per_cycle: CyclesNotZero
    reduce_latency_cycles: Cycles


class EthernetFigures(Frozen):
    """The Ethernet subsystem of a tile, and the link behind it."""

    tx_queues: TxQueues
    tx_queues_for_kernels: TxQueues
    queue_commands_max: Count
    command_time_ns: Duration
    read_rate_gb_per_s: DataRate
    word_bytes: AlignmentBytes
    frame_payload_bytes_max: Count
    frame_overhead_bytes: FrameBytes
    line_rate_gb_per_s: DataRate
    path_time_ns: Duration
    frames_unacknowledged_max: Count
    resend_timeout_ns: ResendTimeout
    training_time_ns: Duration


class EthernetSoftwareFigures(Frozen):
    """What software on an Ethernet core pays per call, besides what it costs on a worker."""

    send_cycles: Cycles
    poll_cycles: CyclesNotZero
    routing_firmware_cycles: Cycles
    fabric_loop_cycles: CyclesNotZero
    fabric_send_cycles: Cycles
    fabric_receive_cycles: Cycles
    fabric_cores: Figure[Annotated[int, Field(strict=True, ge=1, le=2)]]
    fabric_payload_bytes: Figure[Annotated[int, Field(strict=True, ge=64, le=65_472)]]


class WindowSize(Frozen):
    """Windows of one size that the chip maps into the host's address space."""

    size_bytes: MemoryBytes
    count: Count
    reserved: CountOrZero


class PcieFigures(Frozen):
    """The chip's side of the host link; `reserved` windows are the driver's."""

    generation: Generation
    lanes: Lanes
    windows: Annotated[tuple[WindowSize, ...], Field(min_length=1, max_length=16)]
    dynamic_window_bytes: MemoryBytes
    tile_time_ns: Duration
    posted_buffer_bytes: MemoryBytes
    writes_outstanding: Count
    strict_time_ns: Duration
    axi_burst_bytes: AlignmentBytes
    dma_to_device: Truth
    dma_from_device: Truth
    dma_reads_outstanding: Count
    dma_alignment_bytes: AlignmentBytes
    dma_transfer_bytes_max: MemoryBytes
    dma_window_bytes: MemoryBytes


class Alignment(Frozen):
    """What addresses of a transfer must be congruent by."""

    l1_bytes: AlignmentBytes
    dram_read_bytes: AlignmentBytes
    dram_write_bytes: AlignmentBytes


class ChipSpec(Frozen):
    """A chip. Immutable; what starts with `with_` returns another one.

    `ethernet` and `ethernet_software` may be left out of a chip without Ethernet tiles, `pcie` of
    one whose host link nobody simulates.
    """

    form: Literal["chip"]
    name: Name
    description: Text
    notes: Annotated[tuple[Text, ...], Field(max_length=100)] = ()
    grid: Grid
    clock_mhz: Mhz
    tiles: Tiles
    harvesting: Harvesting
    l1_bytes: MemoryBytes
    ethernet_l1_bytes: MemoryBytes
    router: RouterFigures
    niu: NiuFigures
    dram: DramFigures
    software: SoftwareFigures
    ethernet: EthernetFigures | None = None
    ethernet_software: EthernetSoftwareFigures | None = None
    pcie: PcieFigures | None = None
    alignment: Alignment

    @model_validator(mode="after")
    def _check(self) -> ChipSpec:
        check_tiles(self.tiles.listed(), self.grid.width, self.grid.height, "tiles")
        check_worker_grid(self.tiles.worker, "tiles.worker")
        if problem := self._harvesting_problem(self.harvesting.harvested):
            raise wrong("harvesting.harvested", problem)
        for name in ("pool_flits_per_vc_max", "pool_flits_reserved"):
            value, most = getattr(self.router, name).value, self.router.pool_flits.value
            if value > most:
                problem = f"is {value}; it must be 0 to {most}, the flits of the pool"
                raise wrong(f"router.{name}.value", problem)
        least, most = self.niu.backoff_cycles_min.value, self.niu.backoff_cycles_max.value
        if most < least:
            problem = f"is {most}; it must be at least {least}, backoff_cycles_min"
            raise wrong("niu.backoff_cycles_max.value", problem)
        self._check_ethernet()
        self._check_pcie()
        return self

    def _check_pcie(self) -> None:
        if self.pcie is None:
            return
        sizes_bytes = [window.size_bytes.value for window in self.pcie.windows]
        if sizes_bytes != sorted(set(sizes_bytes)):
            raise wrong("pcie.windows", "must list each size once, smallest first")
        for number, window in enumerate(self.pcie.windows):
            if window.reserved.value > window.count.value:
                problem = f"is {window.reserved.value}; it must be 0 to {window.count.value}"
                raise wrong(f"pcie.windows[{number}].reserved.value", f"{problem}, the count")
        for name in ("dynamic_window_bytes", "dma_window_bytes"):
            if (given := getattr(self.pcie, name).value) not in sizes_bytes:
                known = ", ".join(map(str, sizes_bytes))
                problem = f"is {given}; the chip has windows of {known} bytes"
                raise wrong(f"pcie.{name}.value", problem)

    def _check_ethernet(self) -> None:
        for name in ("ethernet", "ethernet_software"):
            if self.tiles.ethernet and getattr(self, name) is None:
                problem = f"lists Ethernet tiles, so the chip needs the block {name}"
                raise wrong("tiles.ethernet", problem)
        if self.ethernet is None:
            return
        queues, word = self.ethernet.tx_queues.value, self.ethernet.word_bytes.value
        if (given := self.ethernet.tx_queues_for_kernels.value) > queues:
            problem = f"is {given}; it must be 1 to {queues}, the tx_queues"
            raise wrong("ethernet.tx_queues_for_kernels.value", problem)
        if (given := self.ethernet.frame_payload_bytes_max.value) < word:
            problem = f"is {given}; it must be at least {word}, the word_bytes"
            raise wrong("ethernet.frame_payload_bytes_max.value", problem)

    def harvestable(self) -> list[int]:
        """The rows, or columns, with workers, harvested ones included; bit n of a mask is the n-th.

        They are numbers on the grid.
        """
        return sorted({self._line_of(at) for at in self.tiles.worker})

    def with_harvested(self, lines: Sequence[int], source: str = "asked for") -> ChipSpec:
        """This chip with other rows, or columns, harvested; `lines` are their numbers on the grid.

        `source` says why these.

        Raises:
            ConfigError: one of them cannot be harvested, or no worker would be left.
        """
        if problem := self._harvesting_problem(lines):
            raise ConfigError(problem, field=f"chip '{self.name}'")
        update = {"harvested": tuple(sorted(lines)), "source": source}
        return self.model_copy(update={"harvesting": self.harvesting.model_copy(update=update)})

    def with_harvest_mask(self, mask: int, source: str = "asked for") -> ChipSpec:
        """This chip with the rows, or columns, harvested whose bit in `mask` is set.

        `source` says why these.

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
        """This chip without some Ethernet tiles; `channels` are their places in `tiles.ethernet`.

        Their routers go on working. The channels that are left are numbered without gaps.

        Raises:
            ConfigError: there is no such channel, or one is named twice.
        """
        tiles = self.tiles.ethernet
        for number, channel in enumerate(channels):
            if not 0 <= channel < len(tiles):
                known = f"0 to {len(tiles) - 1}" if tiles else "none"
                problem = f"has no Ethernet channel {channel}; it has {known}"
                raise ConfigError(problem, field=f"chip '{self.name}'")
            if channel in channels[:number]:
                problem = f"Ethernet channel {channel} is harvested a second time"
                raise ConfigError(problem, field=f"chip '{self.name}'")
        gone = tuple(tiles[channel] for channel in channels)
        update = {
            "ethernet": tuple(at for at in tiles if at not in gone),
            "router_only": self.tiles.router_only + gone,
        }
        before = self.harvesting.ethernet
        whole = [n for n in range(len(tiles) + len(before)) if n not in before]
        off = tuple(sorted((*before, *(whole[channel] for channel in channels))))
        return self.model_copy(
            update={
                "tiles": self.tiles.model_copy(update=update),
                "harvesting": self.harvesting.model_copy(update={"ethernet": off}),
            }
        )

    def tile_kinds(self) -> dict[Coordinate, TileKindName]:
        """The kind of every tile, row by row, as harvesting leaves them."""
        kind_at = {listed.at: listed.kind for listed in self.tiles.listed()}
        for at in self.tiles.worker:
            if self._line_of(at) in self.harvesting.harvested:
                kind_at[at] = "harvested"
        return {at: kind_at[at] for at in sorted(kind_at, key=lambda at: (at.y, at.x))}

    def workers(self) -> list[Coordinate]:
        """The workers that are left, in logical order: row by row."""
        return [at for at, kind in self.tile_kinds().items() if kind == "worker"]

    def worker_grid(self) -> tuple[int, int]:
        """Columns and rows of the logical grid."""
        workers = self.workers()
        return len({at.x for at in workers}), len({at.y for at in workers})

    def core(self) -> Chip:
        """The Chip that simulations run on."""
        from towpath import _core

        kinds = self.tile_kinds().values()
        return _core.Chip(
            name=self.name,
            width=self.grid.width,
            height=self.grid.height,
            clock_mhz=self.clock_mhz.value,
            tiles=[_core.TileKind[kind] for kind in kinds],
            dram_groups=[list(group) for group in self.tiles.dram],
            ethernet_cores=list(self.tiles.ethernet),
            l1_bytes=self.l1_bytes.value,
            ethernet_l1_bytes=self.ethernet_l1_bytes.value,
            router=values_of(self.router),
            niu=values_of(self.niu),
            dram=values_of(self.dram),
            software=values_of(self.software),
            ethernet=values_of(self.ethernet),
            ethernet_software=values_of(self.ethernet_software),
            alignment=values_of(self.alignment),
            pcie={name: value for name, value in values_of(self.pcie).items() if name != "windows"},
            pcie_windows=[
                (one.size_bytes.value, one.count.value, one.reserved.value)
                for one in (self.pcie.windows if self.pcie else ())
            ],
            harvested_ethernet=sum(1 << channel for channel in self.harvesting.ethernet),
        )

    def _line_of(self, at: Coordinate) -> int:
        return at.y if self.harvesting.axis == "rows" else at.x

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


def check_tiles(listed: Iterable[ListedTile], width: int, height: int, field: str) -> None:
    """Every tile of the grid must be listed, and once.

    Args:
        listed: the tiles as a file lists them.
        width: of the grid.
        height: of the grid.
        field: what to name where a tile is in no list.
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
        raise wrong(field, f"leaves out {missing}; every tile of the grid must be in some list")


def check_worker_grid(workers: Sequence[Coordinate], field: str) -> None:
    """The logical grid has no gaps: every row with workers must have the same columns."""
    columns_of: dict[int, set[int]] = {}
    for at in workers:
        columns_of.setdefault(at.y, set()).add(at.x)
    first = min(columns_of)
    for row in sorted(columns_of):
        if columns_of[row] != columns_of[first]:
            problem = f"has row {row} in other columns than row {first}; rows with workers must"
            raise wrong(field, f"{problem} have the same")


def parse_chip_spec(document: YamlDocument, file: str) -> ChipSpec:
    """The spec that a YAML document holds.

    Raises:
        ConfigError: a field is missing, unknown or out of bounds; only the first one is named.
    """
    return validated(ChipSpec, document, file)


def values_of(block: Frozen | None) -> dict[str, object]:
    """A block's figures without their sources; none of a block that was left out."""
    if block is None:
        return {}
    fields = ((name, getattr(block, name)) for name in type(block).model_fields)
    return {name: value.value if isinstance(value, Figure) else value for name, value in fields}
