# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
from collections import Counter

import pytest

from conftest import joined, refusal
from inside.machines import EthernetEnd, catalogue, shipped
from towpath import ConfigError

CLUSTERS = shipped.names("chip_cluster")
TEXT = """\
form: chip_cluster
name: pair
description: two chips
source: chosen
chips:
  - {chip: wormhole, x: 0, y: 0, host_link: true}
  - {chip: wormhole, x: 1, y: 0, rack: 2, shelf: 3, harvested: [1, 4]}
links:
  - [0/8, 1/0]
  - [0/9, 1/1]
dispatcher: {links: [1/0], source: chosen}
"""
GRID = """\
form: chip_cluster
name: grid
description: six chips
source: chosen
grid:
  chip: wormhole
  columns: 3
  rows: 2
  channels: {left: [0], right: [1], up: [2, 3], down: [4, 5]}
  mirrored_columns: [2]
  rings: none
"""


def spec_of(text):
    return catalogue.parse_chip_cluster(text, "pair.yaml")


def neighbours(spec):
    """How many links there are between each two chips that are joined."""
    return {pair: len(links) for pair, links in spec.links_by_pair().items()}


def test_chips_and_links_reach_the_core_unchanged():
    core = spec_of(TEXT).build()
    left, right = core.chips
    assert (left.x, left.y, left.rack, left.shelf, left.has_host_link) == (0, 0, 0, 0, True)
    assert (right.x, right.y, right.rack, right.shelf, right.has_host_link) == (1, 0, 2, 3, False)
    assert (left.chip.name, left.chip.worker_rows) == ("wormhole", 8)
    assert right.chip.worker(0, 0) == (1, 2)
    assert [link.ends for link in core.links] == [((0, 8), (1, 0)), ((0, 9), (1, 1))]
    assert [link.is_reserved for link in core.links] == [True, False]
    assert core.connected((1, 1)) == (0, 9)
    assert core.connected((1, 2)) is None
    assert core.link_at((1, 1)) == 1
    assert core.active_channels(0) == [9]
    assert core.active_channels(0, with_reserved=True) == [8, 9]
    assert core.channels_to(1, 0) == [1]


def test_a_channel_is_a_place_in_the_chips_list_of_ethernet_tiles():
    spec = spec_of(TEXT)
    core = spec.build()
    for end in spec.link_of_end:
        assert core.core_of(end) == spec.core_of(end)
    assert core.core_of((0, 8)) == (9, 6)
    assert core.core_of((1, 0)) == (9, 0)


def test_chips_that_are_alike_are_one_chip():
    core = catalogue.shipped_chip_cluster("t3000").build()
    spec = catalogue.shipped_chip_cluster("t3000")
    assert len({id(placed.chip) for placed in spec.chips}) == 1
    assert len(core.chips) == 8


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("[0/9, 1/1]", "[0/9, 1/0]", "pair.yaml:10: links[1]: joins channel 0 of chip 1, wh"),
        ("[0/9, 1/1]", "[0/9, 0/9]", "pair.yaml:10: links[1]: joins channel 9 of chip 0 to"),
        ("[0/9, 1/1]", "[0/9, 2/1]", "links[1]: joins channel 1 of chip 2: has no chip 2; it has"),
        ("[0/9, 1/1]", "[0/16, 1/1]", "chip 0 has no Ethernet channel 16; it has 0 to 15"),
        ("[0/9, 1/1]", "[0/9, 1-1]", "links[1][1]: is '1-1'; it must be an end as chip/channel"),
        ("[0/9, 1/1]", "[0/9]", "links[1]: has no field '1'"),
        ("[0/9, 1/1]", "0/9", "links[1]: is '0/9'; it must be a valid tuple"),
        ("links: [1/0]", "links: [1/2]", "pair.yaml:11: dispatcher.links[0]: is 1/2, where no lin"),
        ("x: 1, y: 0, rack: 2, shelf: 3", "x: 0, y: 0", "pair.yaml:7: chips[1]: sits where chip 0"),
        ("{chip: wormhole, x: 0", "{chip: warmhole, x: 0", "chips[0].chip: there is no file or ch"),
        ("harvested: [1, 4]", "harvested: [6]", "chips[1].harvested: names row 6, which has no wo"),
        ("harvested: [1, 4]", "harvested_ethernet: [16]", "harvested_ethernet: has no Ethernet ch"),
        ("harvested: [1, 4]", "harvested_ethernet: [3, 3]", "channel 3 is harvested twice"),
        ("x: 1", "x: -1", "chips[1].x: is -1; it must be greater than or equal to 0"),
        ("x: 1", "x: 1.0", "chips[1].x: is 1.0; it must be a valid integer"),
        ("host_link: true", "host_link: 1", "chips[0].host_link: is 1; it must be a valid boolean"),
        ("host_link: true", "pcie: 1", "chips[0]: has no field 'pcie'; choose one of chip, x, y"),
        ("source: chosen\nchips", "chips", "the spec: has no field 'source'"),
        ("form: chip_cluster", "form: chips", "is not a cluster of chips; it must be a "),
    ],
)  # fmt: skip
def test_a_wrong_cluster_is_refused_by_name_and_line(old, new, expected):
    assert old in TEXT
    assert expected in refusal(spec_of, TEXT.replace(old, new, 1))


def test_a_cluster_lists_its_chips_or_has_a_rule_for_them():
    both = TEXT + GRID[GRID.index("grid:") :]
    neither = TEXT[: TEXT.index("chips:")]
    for text in (both, neither):
        assert "chips: or grid must be given, but not both" in refusal(spec_of, text)
    with_links = GRID + "links: [[0/1, 1/0]]\n"
    assert "links: cannot be listed with grid, which generates them" in refusal(spec_of, with_links)
    empty = "form: chip_cluster\nname: a\ndescription: b\nsource: c\nchips: []\n"
    assert "chips: is []" in refusal(spec_of, empty)


def test_both_ends_of_a_link_speak_the_same_ethernet():
    text = TEXT.replace("{chip: wormhole, x: 0", "{chip: blackhole, x: 0")
    expected = "joins a blackhole to a wormhole; line and delivery rates, frames and words of both"
    assert f"links[0]: {expected}" in refusal(spec_of, text)


def test_a_chip_may_be_a_file_beside_that_of_the_cluster(tmp_path):
    wormhole = (shipped.folder() / "wormhole.yaml").read_text()
    rate = "line_rate_gb_per_s: {value: 12.5"
    assert rate in wormhole
    chip = wormhole.replace(rate, "line_rate_gb_per_s: {value: 25").replace(
        "name: w", "name: fast-w"
    )
    (tmp_path / "fast.yaml").write_text(chip)
    cluster = tmp_path / "cluster.yaml"
    cluster.write_text(TEXT.replace("chip: wormhole", "chip: fast.yaml"))
    core = catalogue.load_chip_cluster(cluster).build()
    assert [one.chip.name for one in core.chips] == ["fast-wormhole"] * 2
    assert core.chips[0].chip.ethernet["line_rate_gb_per_s"] == 25
    (tmp_path / "fast.yaml").write_text(chip.replace("axis: rows", "axis: tiles"))
    with pytest.raises(ConfigError, match=r"cluster.yaml:6: chips\[0\].chip: .*fast.yaml:\d+: har"):
        catalogue.load_chip_cluster(cluster)


def test_a_grid_is_joined_to_the_right_and_downwards_row_by_row():
    assert joined(spec_of(GRID)) == [
        "0/1 1/0", "0/4 3/2", "0/5 3/3",
        "1/1 2/1", "1/4 4/2", "1/5 4/3",  # column 2 is mirrored: its right is its left
        "2/4 5/2", "2/5 5/3",
        "3/1 4/0", "4/1 5/1",
    ]  # fmt: skip
    assert [(chip.x, chip.y) for chip in spec_of(GRID).chips] == [
        (0, 0), (1, 0), (2, 0), (0, 1), (1, 1), (2, 1)
    ]  # fmt: skip


def test_rings_close_rows_or_columns():
    along = joined(spec_of(GRID.replace("none", "x")))
    assert set(along) - set(joined(spec_of(GRID))) == {"2/0 0/0", "5/0 3/0"}
    down = joined(spec_of(GRID.replace("none", "y")))
    new = {"3/4 0/2", "3/5 0/3", "4/4 1/2", "4/5 1/3", "5/4 2/2", "5/5 2/3"}
    assert set(down) - set(joined(spec_of(GRID))) == new
    assert set(joined(spec_of(GRID.replace("none", "both")))) == set(along) | set(down)


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("right: [1]", "right: [0]", "channels.right: names channel 0, which left names already"),
        ("right: [1]", "right: [1, 6]", "channels.right: has 2 channels; it must have 1, as many"),
        ("down: [4, 5]", "down: [4, 16]", "grid.channels: joins channel 16 of chip 0: chip 0"),
        ("mirrored_columns: [2]", "mirrored_columns: [3]", "mirrored_columns[0]: is 3; the column"),
        ("rows: 2", "rows: 65", "grid.rows: is 65; it must be less than or equal to 64"),
        ("columns: 3\n  rows: 2", "columns: 64\n  rows: 64", "makes 4096 chips; at most 1024 are"),
        ("rings: none", "rings: z", "grid.rings: is 'z'; it must be 'none', 'x', 'y' or 'both'"),
        ("rows: 2", "rows: 1\n  host_link: no", "grid.host_link: is 'no'; it must be a valid bool"),
    ],
)  # fmt: skip
def test_a_wrong_grid_is_refused_by_name(old, new, expected):
    assert old in GRID
    assert expected in refusal(spec_of, GRID.replace(old, new, 1))


def test_a_ring_needs_two_chips():
    text = GRID.replace("rows: 2", "rows: 1").replace("rings: none", "rings: both")
    assert "grid.rings: is 'both', but rows is 1; a ring needs two chips" in refusal(spec_of, text)


# --- the shipped ones ---


@pytest.mark.parametrize("name", CLUSTERS)
def test_shipped_clusters_build_and_say_where_they_are_from(name):
    spec = catalogue.shipped_chip_cluster(name)
    core = spec.build()
    assert core.name == spec.name == name
    assert len(spec.source) > 5
    assert bool(spec.dispatcher_source) == any(link.is_reserved for link in spec.links)
    for link in spec.links:
        assert core.connected(link.one) == link.other
        assert core.connected(link.other) == link.one


def test_the_n300_has_two_links_and_leaves_one_to_kernels():
    spec = catalogue.shipped_chip_cluster("n300")
    assert joined(spec) == ["0/8 1/0", "0/9 1/1"]
    assert [chip.has_host_link for chip in spec.chips] == [True, False]
    assert spec.build().active_channels(1) == [1]


def test_the_t3000_is_a_mesh_of_four_by_two():
    spec = catalogue.shipped_chip_cluster("t3000")
    assert [chip.has_host_link for chip in spec.chips] == [True] * 4 + [False] * 4
    assert set(neighbours(spec).values()) == {2}
    assert neighbours(spec).keys() == mesh_pairs(spec) and len(spec.links) == 20
    reserved = [link.one.chip for link in spec.links if link.is_reserved]
    assert reserved == [0, 1, 2, 3]


def mesh_pairs(spec):
    places = [(chip.x, chip.y) for chip in spec.chips]
    return {
        (one, other)
        for one, (x, y) in enumerate(places)
        for other, (other_x, other_y) in enumerate(places)
        if one < other and abs(x - other_x) + abs(y - other_y) == 1
    }


# The rings of tt-metal's Basic Ethernet Multichip, chip after chip.
RINGS = [
    [0, 1],
    [0, 1, 2, 3],
    [0, 4, 5, 1, 2, 6, 7, 3],
    [0, 4, 5, 1, 2, 3, 0, 1, 2, 6, 7, 3],
]


@pytest.mark.parametrize("ring", RINGS, ids=len)
def test_every_ring_of_the_t3000_has_a_link_of_its_own_for_each_hop(ring):
    core = catalogue.shipped_chip_cluster("t3000").build()
    visits = Counter()
    taken = set()
    for chip, following in zip(ring, ring[1:] + ring[:1], strict=True):
        channels = core.channels_to(chip, following)
        assert visits[chip, following] < len(channels)
        taken.add(core.link_at((chip, channels[visits[chip, following]])))
        visits[chip, following] += 1
    assert not any(core.links[link].is_reserved for link in taken)
    if len(ring) > 2:  # 0 to 1 and back may share a link: it carries both ways
        assert len(taken) == len(ring)


def test_the_galaxy_is_a_mesh_with_four_links_between_neighbours():
    spec = catalogue.shipped_chip_cluster("galaxy")
    assert len(spec.chips) == 32 and len(spec.links) == 208
    assert neighbours(spec).keys() == mesh_pairs(spec)
    assert set(neighbours(spec).values()) == {4}
    used = Counter(len(spec.build().active_channels(chip)) for chip in range(32))
    assert used == {8: 4, 12: 16, 16: 12}  # corners, edges, the others


def test_the_galaxy_torus_is_the_mesh_and_what_its_edges_left_unused():
    mesh, torus = (catalogue.shipped_chip_cluster(name) for name in ("galaxy", "galaxy-torus"))
    assert set(mesh.links) < set(torus.links)
    assert all(len(torus.build().active_channels(chip)) == 16 for chip in range(32))
    assert torus.connected(EthernetEnd(0, 4)) == EthernetEnd(7, 4)
    assert torus.connected(EthernetEnd(31, 3)) == EthernetEnd(7, 3)
    assert set(neighbours(torus).values()) == {4}


def test_two_galaxies_are_joined_by_what_their_facing_edges_left_unused():
    one, two = (catalogue.shipped_chip_cluster(name) for name in ("galaxy", "two-galaxies"))
    assert len(two.chips) == 64 and len(two.links) == 2 * len(one.links) + 4 * 4
    assert set(neighbours(two).values()) == {4}
    edge = EthernetEnd(7, 4)  # the first Galaxy's right edge
    assert edge.channel not in one.build().active_channels(7)
    assert two.connected(edge) == EthernetEnd(8, 4)
    # Within each, the links are those of the Galaxy.
    assert two.connected(EthernetEnd(0, 8)) == one.connected(EthernetEnd(0, 8))


def test_the_p150_is_one_blackhole_with_twelve_ethernet_cores():
    spec = catalogue.shipped_chip_cluster("p150")
    chip = spec.build().chips[0].chip
    assert len(chip.ethernet_cores) == 12
    assert spec.links == () and spec.build().active_channels(0, with_reserved=True) == []
    blackhole = shipped.chip("blackhole").tiles.ethernet
    assert chip.ethernet_cores == [tuple(at) for n, at in enumerate(blackhole) if n not in (5, 8)]


def test_the_line_of_blackholes_has_two_links_between_neighbours():
    spec = catalogue.shipped_chip_cluster("blackhole-line")
    assert neighbours(spec) == {(chip, chip + 1): 2 for chip in range(7)}
    assert spec.connected(EthernetEnd(0, 2)) == EthernetEnd(1, 0)


# --- the core's own checks ---


def core_of(chips, links):
    from inside import _core

    chip = shipped.chip("wormhole").build()
    return _core.ChipCluster(
        name="made",
        chips=[_core.ClusterChip(chip) for _ in range(chips)],
        links=[_core.EthernetLink(*ends) for ends in links],
    )


@pytest.mark.parametrize(
    ("chips", "links", "expected"),
    [
        (0, [], "cluster 'made': has no chips; it needs at least one"),
        (1, [((0, 0), (1, 0))], "has no chip 1; it has 0 to 0"),
        (2, [((0, 0), (1, 99))], "chip 1 has no Ethernet channel 99; it has 0 to 15"),
        (2, [((0, 0), (1, 0)), ((1, 1), (0, 0))], "channel 0 of chip 0, which already has link 0"),
    ],
)
def test_the_core_refuses_what_cannot_be_joined(chips, links, expected):
    with pytest.raises(ValueError, match="^.+$") as caught:
        core_of(chips, links)
    assert expected in str(caught.value)


def test_a_cluster_of_chips_is_no_machine_and_no_chip(tmp_path):
    with pytest.raises(
        ConfigError, match="n300.yaml:1: is a cluster of chips, not a cluster of GPUs"
    ):
        catalogue.load("n300")
    with pytest.raises(ConfigError, match="n300.yaml:1: is not a chip"):
        catalogue.load_chip("n300")
    with pytest.raises(ConfigError, match="wormhole.yaml:1: is not a cluster of chips"):
        catalogue.load_chip_cluster("wormhole")
    with pytest.raises(ConfigError, match="'n400'; choose one of blackhole-line, galaxy, "):
        catalogue.load_chip_cluster("n400")
    with pytest.raises(ConfigError, match="there is no cluster of chips 'ring'"):
        catalogue.shipped_chip_cluster("ring")
    file = tmp_path / "mine.yaml"
    file.write_text(TEXT)
    assert catalogue.kind_of(file) == catalogue.kind_of("galaxy") == "chip_cluster"
