# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Reads the SoC descriptors of Tenstorrent's drivers.

A SoC descriptor contains the tiles of a chip and the sizes of its memories, but not the costs of
moving data. The costs come from the shipped chip of the same architecture.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import PurePath
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, model_validator

from towpath.errors import quoted
from towpath.specs import shipped
from towpath.specs.chip_spec import (
    ChipSpec,
    Coordinate,
    DramParameters,
    EthernetL1Bytes,
    Grid,
    Harvesting,
    L1Bytes,
    ListedTile,
    Side,
    TileKindName,
    TileList,
    Tiles,
    check_tiles,
    check_worker_grid,
)
from towpath.specs.importers.host_draft import machine_name
from towpath.specs.input_file import YamlDocument
from towpath.specs.spec_model import validated, wrong

# The shipped chip that has the parameters of an architecture, by its name in small letters.
CHIP_OF_ARCHITECTURE = {"wormhole_b0": "wormhole", "blackhole": "blackhole"}

Size = Annotated[int, Field(strict=True, ge=0, le=1 << 40)]


class _Lenient(BaseModel):
    """Immutable; unknown fields are ignored."""

    model_config = ConfigDict(frozen=True, defer_build=True, extra="ignore")


class _Grid(_Lenient):
    x_size: Side
    y_size: Side


# Lists of tiles that are only passed through: nothing here runs on them.
_ROUTERS = ("router_only", "security", "l2cpu", "harvested_dram", "harvested_eth")


class _SocDescriptor(_Lenient):
    grid: _Grid
    functional_workers: Annotated[TileList, Field(min_length=1)]
    harvested_workers: TileList = ()
    dram: Annotated[tuple[Annotated[TileList, Field(min_length=1)], ...], Field(max_length=64)] = ()
    eth: TileList = ()
    pcie: TileList = ()
    arc: TileList = ()
    router_only: TileList = ()
    security: TileList = ()
    l2cpu: TileList = ()
    harvested_dram: TileList = ()
    harvested_eth: TileList = ()
    worker_l1_size: Annotated[Size, Field(ge=1)]
    dram_bank_size: Annotated[Size, Field(ge=1 << 12)]
    eth_l1_size: Size = 0
    arch_name: Annotated[str, Field(strict=True, max_length=64)]

    @model_validator(mode="after")
    def _check(self) -> _SocDescriptor:
        if self.arch_name.lower() not in CHIP_OF_ARCHITECTURE:
            known = ", ".join(CHIP_OF_ARCHITECTURE)
            raise wrong("arch_name", f"is {quoted(self.arch_name)}; choose one of {known}")
        check_tiles(self._listed(), self.grid.x_size, self.grid.y_size, "grid")
        check_worker_grid(self.workers, "functional_workers")
        self._check_harvested()
        self._check_memories()
        return self

    @property
    def donor(self) -> ChipSpec:
        """The shipped chip that supplies missing values."""
        return shipped.chip(CHIP_OF_ARCHITECTURE[self.arch_name.lower()])

    @property
    def workers(self) -> TileList:
        """All workers, including harvested ones."""
        return self.functional_workers + self.harvested_workers

    @property
    def harvested(self) -> tuple[int, ...]:
        """The rows or columns of harvested workers."""
        return tuple(sorted({self._line_of(at) for at in self.harvested_workers}))

    @property
    def groups(self) -> Counter[TileList]:
        """DRAM groups, and the number of times that each is listed: some descriptors list a group
        once per channel.
        """
        return Counter(self.dram)

    def _line_of(self, at: Coordinate) -> int:
        return at.y if self.donor.harvesting.axis == "rows" else at.x

    def _listed(self) -> Iterator[ListedTile]:
        for number, group in enumerate(self.groups):
            for at in group:
                yield ListedTile(f"dram[{number}]", "dram", at)
        kinds: tuple[tuple[str, TileKindName], ...] = (
            ("functional_workers", "worker"), ("harvested_workers", "harvested"),
            ("eth", "ethernet"), ("pcie", "pcie"), ("arc", "arc"),
            *((name, "router_only") for name in _ROUTERS),
        )  # fmt: skip
        for name, kind in kinds:
            for number, at in enumerate(getattr(self, name)):
                yield ListedTile(f"{name}[{number}]", kind, at)

    def _check_harvested(self) -> None:
        axis = self.donor.harvesting.axis
        for number, at in enumerate(self.functional_workers):
            if self._line_of(at) in self.harvested:
                problem = f"is {at}, beside harvested workers; whole {axis} are harvested"
                raise wrong(f"functional_workers[{number}]", problem)

    def _check_memories(self) -> None:
        if len(set(self.groups.values())) > 1:
            problem = "lists some groups more often than others; it must be once, or once a channel"
            raise wrong("dram", problem)
        if self.eth and self.eth_l1_size == 0:
            raise wrong("eth_l1_size", "is 0, but eth lists tiles; it must be positive")


def parse_soc_descriptor(document: YamlDocument, file: str) -> ChipSpec:
    """Parses the chip of a SoC descriptor, with the parameters of the shipped one.

    Rows or columns are harvested if the descriptor lists harvested workers.

    Raises:
        ConfigError: the text is not such a descriptor, or its content is wrong.
    """
    descriptor = validated(_SocDescriptor, document, file)
    donor = descriptor.donor
    source = f"{PurePath(file).name}, a SoC descriptor"[:1000]
    routers = (at for name in _ROUTERS for at in getattr(descriptor, name))
    changes: dict[str, object] = {
        "name": machine_name(file),
        "description": f"Imported from {source}"[:1000],
        "notes": (f"What moving data costs is that of {donor.name}: the descriptor has none",),
        "grid": Grid(width=descriptor.grid.x_size, height=descriptor.grid.y_size, source=source),
        "tiles": Tiles(
            source=source,
            worker=descriptor.workers,
            dram=tuple(descriptor.groups),
            ethernet=descriptor.eth,
            pcie=descriptor.pcie,
            arc=descriptor.arc,
            router_only=tuple(routers),
        ),
        "harvesting": Harvesting(
            axis=donor.harvesting.axis, harvested=descriptor.harvested, source=source
        ),
        "l1_bytes": L1Bytes(value=descriptor.worker_l1_size, source=source),
        "dram": _with_sizes(donor.dram, descriptor, source),
    }
    if descriptor.eth:
        changes["ethernet_l1_bytes"] = EthernetL1Bytes(value=descriptor.eth_l1_size, source=source)
    return donor.model_copy(update=changes)


def _with_sizes(dram: DramParameters, descriptor: _SocDescriptor, source: str) -> DramParameters:
    """Adds the sizes. A bank is a whole group, or one channel if groups are listed once per
    channel.
    """
    if not descriptor.dram:
        return dram
    listed = descriptor.groups.most_common(1)[0][1]
    channels = dram.channels_per_group
    if listed != 1:
        channels = channels.model_copy(update={"value": listed, "source": source})
    bank_bytes = {
        "value": descriptor.dram_bank_size * listed // channels.value,
        "source": source,
    }
    update = {
        "channels_per_group": channels,
        "channel_bytes": dram.channel_bytes.model_copy(update=bank_bytes),
    }
    return dram.model_copy(update=update)
