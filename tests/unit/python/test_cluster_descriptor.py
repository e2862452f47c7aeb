# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
import random

import pytest

from conftest import joined, refusal
from inside.machines import EthernetEnd, catalogue, mesh_places, reserved_links

TEXT = """\
arch: {0: wormhole_b0, 1: Wormhole, 5: WORMHOLE_B0}
chips:
  0: [0, 0, 0, 0]
  1: [1, 0, 2, 3]
  5: [2, 0, 0, 0]
chip_unique_ids: {0: 1, 1: 2, 5: 3}
ethernet_connections:
  - [{chip: 0, chan: 9}, {chip: 1, chan: 1}]
  - [{chip: 0, chan: 8}, {chip: 1, chan: 0}]
  - - chip: 5
      chan: 0
    - chip: 1
      chan: 2
    - routing_enabled: true
ethernet_connections_to_remote_devices:
  - [{chip: 0, chan: 4}, {remote_chip_id: 77, chan: 4}]
chips_with_mmio: [0: 0]
harvesting:
  0: {noc_translation: true, harvest_mask: 65}
  1: {noc_translation: true, harvest_mask: 5, dram_harvesting_mask: 1}
boards:
  - [{board_id: 1}, {board_type: n300}, {chips: [0, 1]}]
  - [{board_id: 2}, {board_type: n150}, {chips: [5]}]
"""


def spec_of(text):
    return catalogue.parse_chip_cluster(text, "folder/cluster.yaml")


def test_a_descriptor_says_chips_places_links_and_harvesting():
    spec = spec_of(TEXT)
    assert spec.name == "cluster"
    assert spec.description.endswith("cluster.yaml, a cluster descriptor: 1 n300, 1 n150")
    places = [(chip.x, chip.y, chip.rack, chip.shelf) for chip in spec.chips]
    assert places == [(0, 0, 0, 0), (1, 0, 2, 3), (2, 0, 0, 0)]
    assert [chip.has_host_link for chip in spec.chips] == [True, False, False]
    assert joined(spec) == ["0/9 1/1", "0/8 1/0", "2/0 1/2"]
    harvested = [chip.chip.harvesting.harvested for chip in spec.chips]
    assert harvested == [(1, 8), (1, 3), (5, 11)]  # the last one is in no list
    assert spec.build().connected((2, 0)) == (1, 2)


def test_what_a_descriptor_does_not_say_is_in_the_notes():
    notes = " ".join(spec_of(TEXT).notes)
    assert "What moving data costs is that of wormhole" in notes
    assert "Chips are numbered without gaps here; the descriptor has 0, 1, 5" in notes
    assert "1 connections to chips outside of the descriptor are left out" in notes
    assert "Some DRAM is harvested" in notes


def test_the_dispatcher_takes_the_lowest_channel_on_its_way():
    spec = spec_of(TEXT)
    assert [link.is_reserved for link in spec.links] == [False, True, True]
    assert "derived" in spec.dispatcher_source


def ends(*links):
    return [tuple(EthernetEnd(*end) for end in link) for link in links]


def test_chips_on_pcie_need_no_dispatcher_between_them():
    links = ends(((0, 0), (1, 0)), ((0, 1), (2, 0)), ((1, 1), (3, 0)), ((2, 1), (3, 1)))
    assert reserved_links([True, True, False, False], links) == {1, 2}
    assert reserved_links([True] * 4, links) == frozenset()
    assert reserved_links([False] * 4, links) == frozenset()


def test_a_chip_is_reached_through_the_nearest_one_on_pcie():
    line = ends(((0, 1), (1, 0)), ((1, 1), (2, 0)), ((2, 1), (3, 0)), ((3, 1), (4, 0)))
    assert reserved_links([True, False, False, False, True], line) == {0, 1, 3}


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("0: wormhole_b0", "0: grayskull", "cluster.yaml:1: arch: has chip 0 as 'grayskull'; know"),
        ("chip: 0, chan: 9", "chip: 7, chan: 9", "ethernet_connections[0]: names chip 7, which ar"),
        ("chip: 0, chan: 9", "chan: 9", "cluster.yaml:8: ethernet_connections[0]: has an end with"),
        ("chip: 0, chan: 9", "chip: 0, chan: 16", "chip 0 has no Ethernet channel 16; it has 0 to"),
        ("chip: 0, chan: 9", "chip: 0, chan: 8", "[1]: joins channel 8 of chip 0, which already"),
        ("chip: 0, chan: 9", "chip: 1, chan: 1", "[0]: joins channel 1 of chip 1 to itself; a lin"),
        ("  5: [2, 0, 0, 0]\n", "", "cluster.yaml:2: chips: has no place of chip 5; arch has that"),
        ("[2, 0, 0, 0]", "[0, 0, 0, 0]", "chips: sits where chip 0 does"),
        ("[2, 0, 0, 0]", "[2, 0, 0]", "chips.'5': has no field '3'"),
        ("mmio: [0: 0]", "mmio: [9: 0]", "chips_with_mmio: names chip 9, which is not in arch"),
        ("harvest_mask: 65", "harvest_mask: 1024", "harvesting: of chip 0: harvest mask is 1024; "),
        ("harvest_mask: 65", "harvest_mask: -1", "is -1; it must be greater than or equal to 0"),
        ("harvest_mask: 65", "eth_harvesting_mask: 65536", "of chip 0: has no Ethernet channel 16"),
        ("chips_with_mmio: [0: 0]\n", "", "the spec: has no field 'chips_with_mmio'"),
    ],
)  # fmt: skip
def test_a_wrong_descriptor_is_refused_by_name_and_line(old, new, expected):
    assert old in TEXT
    assert expected in refusal(spec_of, TEXT.replace(old, new, 1))


# --- places ---


def shuffled_mesh(columns, rows, seed):
    """Chips in random order: pairs that are joined, and the place of each."""
    places = [(x, y) for y in range(rows) for x in range(columns)]
    random.Random(seed).shuffle(places)
    chip_at = {place: chip for chip, place in enumerate(places)}
    pairs = [
        (chip, chip_at[near])
        for chip, (x, y) in enumerate(places)
        for near in ((x + 1, y), (x, y + 1))
        if near in chip_at
    ]
    return pairs, places


@pytest.mark.parametrize(("columns", "rows"), [(1, 1), (2, 1), (5, 1), (2, 2), (4, 2), (8, 4)])
@pytest.mark.parametrize("seed", range(5))
def test_places_of_a_mesh_follow_from_its_links(columns, rows, seed):
    pairs, _ = shuffled_mesh(columns, rows, seed)
    places = mesh_places(columns * rows, pairs)
    assert sorted(places) == [(x, y) for x in range(columns) for y in range(rows)]
    for one, other in pairs:
        (x, y), (other_x, other_y) = places[one], places[other]
        assert abs(x - other_x) + abs(y - other_y) == 1


@pytest.mark.parametrize(
    "pairs",
    [[], [(0, 1), (1, 2), (2, 3), (3, 4), (4, 0)], [(0, 1), (1, 2), (2, 0), (3, 4)]],
    ids=["none", "a ring", "not connected"],
)
def test_without_a_mesh_chips_stand_row_by_row(pairs):
    assert mesh_places(5, pairs) == [(0, 0), (1, 0), (2, 0), (0, 1), (1, 1)]


# --- descriptors of the drivers ---


def published(data_folder, name):
    return catalogue.load_chip_cluster(data_folder / "topologies" / "tenstorrent" / name)


def wires(spec, only_reserved=False):
    """Every link by the places and channels of its ends."""
    return {
        frozenset(
            ((spec.chips[end.chip].x, spec.chips[end.chip].y), end.channel)
            for end in (link.one, link.other)
        )
        for link in spec.links
        if link.is_reserved or not only_reserved
    }


@pytest.mark.parametrize(
    ("file", "name"),
    [
        ("wormhole_N300.yaml", "n300"),
        ("t3k_cluster_desc.yaml", "t3000"),
        ("6u_cluster_desc.yaml", "galaxy"),
        ("blackhole_P150.yaml", "p150"),
    ],
)
def test_published_descriptors_are_wired_as_the_shipped_machines(data_folder, file, name):
    imported, shipped = published(data_folder, file), catalogue.shipped_chip_cluster(name)
    assert wires(imported) == wires(shipped)
    assert wires(imported, only_reserved=True) == wires(shipped, only_reserved=True)
    on_pcie = [
        {(chip.x, chip.y) for chip in spec.chips if chip.has_host_link}
        for spec in (imported, shipped)
    ]
    assert on_pcie[0] == on_pcie[1]
    assert len(imported.build().links) == len(shipped.links)


def test_harvesting_of_published_descriptors_is_that_of_each_chip(data_folder):
    n300 = published(data_folder, "wormhole_N300.yaml")
    assert [chip.chip.harvesting.harvested for chip in n300.chips] == [(1, 8), (1, 3)]
    p150 = published(data_folder, "blackhole_P150.yaml")
    assert len(p150.chips[0].chip.tiles.ethernet) == 12
    assert p150.chips[0].chip == catalogue.shipped_chip_cluster("p150").chips[0].chip.model_copy(
        update={"harvesting": p150.chips[0].chip.harvesting}
    )
