# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Reads the cluster descriptors of Tenstorrent's drivers: chips, their positions, and their links.

Rules supply missing values: the costs come from the shipped chip of the same architecture, and the
dispatcher's links follow from the chips on PCIe.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Iterator
from pathlib import PurePath
from typing import Annotated, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, model_validator

from towpath.errors import ConfigError, quoted
from towpath.specs import shipped
from towpath.specs.chip_cluster_spec import (
    CHANNELS_MAX,
    CHIPS_MAX,
    ChipClusterSpec,
    EthernetEnd,
    EthernetLink,
    ListedLink,
    PlacedChip,
    check_links,
    check_places,
)
from towpath.specs.chip_spec import ChipSpec
from towpath.specs.importers.host_draft import machine_name
from towpath.specs.importers.mesh_places import mesh_places
from towpath.specs.importers.soc_descriptor import CHIP_OF_ARCHITECTURE
from towpath.specs.input_file import YamlDocument
from towpath.specs.spec_model import error_at, errors_at, validated, wrong

# Clusters may name an architecture without its stepping.
_CHIP_OF_ARCHITECTURE = CHIP_OF_ARCHITECTURE | {"wormhole": "wormhole"}
_IDS_MAX = 99_999

ChipId = Annotated[str, Field(strict=True, pattern="^(0|[1-9][0-9]{0,4})$")]
Number = Annotated[int, Field(strict=True, ge=0, le=_IDS_MAX)]
Place = Annotated[int, Field(strict=True, ge=0, lt=CHIPS_MAX)]
Mask = Annotated[int, Field(strict=True, ge=0, lt=1 << 32)]


class _Lenient(BaseModel):
    """Immutable; unknown fields are ignored."""

    model_config = ConfigDict(frozen=True, defer_build=True, extra="ignore")


class _ConnectionPart(_Lenient):
    """An end of a connection, or a remark about it."""

    chip: Number | None = None
    chan: Annotated[int, Field(strict=True, ge=0, lt=CHANNELS_MAX)] | None = None


class _Harvesting(_Lenient):
    harvest_mask: Mask = 0
    eth_harvesting_mask: Mask = 0
    dram_harvesting_mask: Mask = 0


_Connection = Annotated[tuple[_ConnectionPart, ...], Field(min_length=2, max_length=8)]


class _ClusterDescriptor(_Lenient):
    arch: Annotated[dict[ChipId, str], Field(min_length=1, max_length=CHIPS_MAX)]
    chips: dict[ChipId, tuple[Place, Place, Place, Place]] = {}
    ethernet_connections: Annotated[tuple[_Connection, ...], Field(max_length=CHIPS_MAX * 16)]
    ethernet_connections_to_remote_devices: tuple[object, ...] = ()
    chips_with_mmio: tuple[dict[ChipId, object] | Number, ...]
    harvesting: dict[ChipId, _Harvesting] = {}
    boards: tuple[tuple[dict[str, object], ...], ...] = ()

    @model_validator(mode="after")
    def _check(self) -> _ClusterDescriptor:
        for chip, architecture in self.arch.items():
            if architecture.lower() not in _CHIP_OF_ARCHITECTURE:
                known = ", ".join(_CHIP_OF_ARCHITECTURE)
                problem = f"has chip {chip} as {quoted(architecture)}; known are {known}"
                raise wrong("arch", problem)
        if self.chips and (missing := set(self.arch) - set(self.chips)):
            problem = f"has no place of chip {min(missing, key=int)}; arch has that chip"
            raise wrong("chips", f"{problem}, and all or none must have one")
        for field, chips in (("chips_with_mmio", self.on_pcie), ("harvesting", self.harvesting)):
            if unknown := [chip for chip in chips if chip not in self.arch]:
                raise wrong(field, f"names chip {unknown[0]}, which is not in arch")
        for number, connection in enumerate(self.ethernet_connections):
            for part in connection[:2]:
                if part.chip is None or part.chan is None:
                    problem = "has an end without chip or chan; both ends need both"
                    raise wrong(f"ethernet_connections[{number}]", problem)
                if str(part.chip) not in self.arch:
                    problem = f"names chip {part.chip}, which arch does not"
                    raise wrong(f"ethernet_connections[{number}]", problem)
        return self

    @property
    def ids(self) -> list[str]:
        """The chips in the order of their numbers."""
        return sorted(self.arch, key=int)

    @property
    def on_pcie(self) -> list[str]:
        """The chips that the host reaches over PCIe."""
        listed = self.chips_with_mmio
        return [
            chip for one in listed for chip in ([str(one)] if isinstance(one, int) else list(one))
        ]

    def listed_links(self) -> Iterator[ListedLink]:
        """The connections, with chips as their indices in `ids`."""
        number_of = {int(chip): number for number, chip in enumerate(self.ids)}
        for number, connection in enumerate(self.ethernet_connections):
            ends = [
                EthernetEnd(number_of[part.chip or 0], part.chan or 0) for part in connection[:2]
            ]
            yield ListedLink(f"ethernet_connections[{number}]", *ends)

    def board_types(self) -> Counter[str]:
        """Number of boards of each type."""
        types = (part.get("board_type") for board in self.boards for part in board)
        return Counter(one[:64] for one in types if isinstance(one, str))


def parse_cluster_descriptor(document: YamlDocument, file: str) -> ChipClusterSpec:
    """The cluster that a descriptor describes, with the parameters of the shipped chips.

    Raises:
        ConfigError: the text is not such a descriptor, or its content is wrong.
    """
    descriptor = validated(_ClusterDescriptor, document, file)
    source = f"{PurePath(file).name}, a cluster descriptor"[:1000]
    specs = _chip_specs(descriptor, source, document, file)
    listed = list(descriptor.listed_links())
    chips = _placed(descriptor, specs, listed)
    with errors_at(document, file):
        if descriptor.chips:
            check_places(chips, "chips")
    on_pcie = [chip.has_host_link for chip in chips]
    reserved = reserved_links(on_pcie, [(link.one, link.other) for link in listed])
    boards = ", ".join(f"{count} {name}" for name, count in descriptor.board_types().items())
    spec = ChipClusterSpec(
        name=machine_name(file),
        description=f"Imported from {source}{f': {boards}' if boards else ''}"[:1000],
        source=source,
        chips=tuple(chips),
        links=tuple(
            EthernetLink(link.one, link.other, number in reserved)
            for number, link in enumerate(listed)
        ),
        dispatcher_source=_DISPATCHER_SOURCE if reserved else "",
        notes=tuple(_notes(descriptor)),
    )
    with errors_at(document, file):
        check_links(spec, listed)
    return spec


_DISPATCHER_SOURCE = (
    "derived, a descriptor does not say: between each two chips on the way from PCIe to the chips "
    "without it, the link of the lowest channel"
)


def _notes(descriptor: _ClusterDescriptor) -> Iterator[str]:
    ids = descriptor.ids
    names = sorted({_CHIP_OF_ARCHITECTURE[name.lower()] for name in descriptor.arch.values()})
    yield f"What moving data costs is that of {' and '.join(names)}: the descriptor has none"
    if not descriptor.chips:
        yield "The descriptor has no places; those here follow from which chips are joined"
    if ids != [str(number) for number in range(len(ids))]:
        yield f"Chips are numbered without gaps here; the descriptor has {', '.join(ids)[:500]}"
    if descriptor.chips and _lacks_side(
        descriptor, [(link.one.chip, link.other.chip) for link in descriptor.listed_links()]
    ):
        yield "Some neighbors have no link, so that the chips are placed in a line"
    outside = len(descriptor.ethernet_connections_to_remote_devices)
    if outside:
        yield f"{outside} connections to chips outside of the descriptor are left out"
    if any(one.dram_harvesting_mask for one in descriptor.harvesting.values()):
        yield "Some DRAM is harvested according to the descriptor; here all of it works"


class _Kind(NamedTuple):
    name: str
    harvesting: _Harvesting | None

    def key(self) -> tuple[object, ...]:
        masks = self.harvesting
        return (self.name, masks and (masks.harvest_mask, masks.eth_harvesting_mask))


def _chip_specs(
    descriptor: _ClusterDescriptor, source: str, document: YamlDocument, file: str
) -> list[ChipSpec]:
    """The spec of every chip; equal chips share one spec."""
    specs: dict[tuple[object, ...], ChipSpec] = {}
    of_chip = []
    for chip in descriptor.ids:
        name = _CHIP_OF_ARCHITECTURE[descriptor.arch[chip].lower()]
        kind = _Kind(name, descriptor.harvesting.get(chip))
        if kind.key() not in specs:
            try:
                specs[kind.key()] = _harvested(kind, source)
            except ConfigError as error:
                problem = f"of chip {chip}: {error.problem}"
                raise error_at("harvesting", problem, document, file) from None
        of_chip.append(specs[kind.key()])
    return of_chip


def _harvested(kind: _Kind, source: str) -> ChipSpec:
    chip = shipped.chip(kind.name)
    if kind.harvesting is None:
        return chip
    mask = kind.harvesting.eth_harvesting_mask
    channels = [channel for channel in range(mask.bit_length()) if mask >> channel & 1]
    chip = chip.with_harvest_mask(kind.harvesting.harvest_mask, source)
    return chip.with_harvested_ethernet(channels)


def _placed(
    descriptor: _ClusterDescriptor, specs: list[ChipSpec], links: Iterable[ListedLink]
) -> list[PlacedChip]:
    ids, on_pcie = descriptor.ids, set(descriptor.on_pcie)
    pairs = [(link.one.chip, link.other.chip) for link in links]
    if descriptor.chips and not _lacks_side(descriptor, pairs):
        places = [descriptor.chips[chip] for chip in ids]
    else:
        places = [(x, y, 0, 0) for x, y in mesh_places(len(ids), pairs)]
    return [
        PlacedChip(spec, *place, chip in on_pcie)
        for chip, spec, place in zip(ids, specs, places, strict=True)
    ]


def _lacks_side(descriptor: _ClusterDescriptor, pairs: list[tuple[int, int]]) -> bool:
    """True if the descriptor's chips are a line of joined chips, which its places do not show.

    The places of a square with a missing side make neighbors of chips that no link joins.
    """
    ids = descriptor.ids
    joined = {(min(pair), max(pair)) for pair in pairs if pair[0] != pair[1]}
    degrees = Counter(chip for pair in joined for chip in pair)
    is_line = len(joined) == len(ids) - 1 and sorted(degrees.values()) == [1, 1] + [2] * (
        len(ids) - 2
    )
    if not is_line:
        return False
    places = {descriptor.chips[chip]: number for number, chip in enumerate(ids)}
    for (x, y, z, rack), one in places.items():
        for beside in ((x + 1, y, z, rack), (x, y + 1, z, rack)):
            other = places.get(beside)
            if other is not None and (min(one, other), max(one, other)) not in joined:
                return True
    return False


def reserved_links(
    on_pcie: list[bool], links: list[tuple[EthernetEnd, EthernetEnd]]
) -> frozenset[int]:
    """The dispatcher's links, by number.

    The host reaches a chip without PCIe through the nearest chip with PCIe. On that path each two
    neighbors have one link for it: the link of the lowest channel of the lower chip.
    """
    near: list[set[int]] = [set() for _ in on_pcie]
    for a, b in links:
        near[a.chip].add(b.chip)
        near[b.chip].add(a.chip)
    distance = {chip: 0 for chip, is_there in enumerate(on_pcie) if is_there}
    gateway = {chip: chip for chip in distance}
    queue = deque(distance)
    while queue:
        chip = queue.popleft()
        for other in sorted(near[chip]):
            if other not in distance:
                distance[other] = distance[chip] + 1
                gateway[other] = gateway[chip]
                queue.append(other)
    taken: dict[tuple[int, int], int] = {}
    for number in sorted(range(len(links)), key=lambda number: sorted(links[number])):
        chip, other = sorted(end.chip for end in links[number])
        same_way = chip in gateway and gateway[chip] == gateway.get(other)
        if same_way and distance[chip] != distance[other]:
            taken.setdefault((chip, other), number)
    return frozenset(taken.values())
