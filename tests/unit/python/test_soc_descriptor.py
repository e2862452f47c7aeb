# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
import pytest

from conftest import refusal
from inside.machines import catalogue, shipped, soc_descriptor_of

DESCRIPTOR = """\
grid:
  x_size: 4
  y_size: 3
arc:
  [ 0-2 ]
pcie:
  []
dram:
  [[0-0, 0-1], [3-0]]
eth: [1-0]
functional_workers: [1-1, 2-1]
harvested_workers: [1-2, 2-2]
router_only: [2-0]
security: [3-1]
l2cpu: [3-2]
worker_l1_size: 1000000
dram_bank_size: 2147483648
eth_l1_size: 200000
arch_name: WORMHOLE_B0
features: {overlay: {version: 2}}
"""


def spec_of(text):
    return catalogue.parse_chip(text, "soc.yaml")


def test_a_descriptor_is_completed_with_the_figures_of_its_architecture():
    wormhole = shipped.chip("wormhole")
    spec = spec_of(DESCRIPTOR)
    assert (spec.name, spec.router, spec.niu) == ("soc", wormhole.router, wormhole.niu)
    assert "that of wormhole" in spec.notes[0]
    assert spec.l1_bytes.value == 1_000_000
    assert spec.ethernet_l1_bytes.value == 200_000
    assert "soc.yaml" in spec.l1_bytes.source
    chip = spec.build()
    kinds = "dram ethernet router_only dram dram worker worker router_only arc harvested harvested"
    assert [kind.name for kind in chip.tiles] == [*kinds.split(), "router_only"]
    assert chip.dram_groups == [[(0, 0), (0, 1)], [(3, 0)]]
    assert chip.workers == [(1, 1), (2, 1)]


def test_a_mask_replaces_the_harvested_workers():
    assert spec_of(DESCRIPTOR).harvesting.harvested == (2,)
    assert spec_of(DESCRIPTOR).with_harvest_mask(1).harvesting.harvested == (1,)
    assert len(spec_of(DESCRIPTOR).with_harvest_mask(0).build().workers) == 4


def test_a_bank_is_a_group_or_a_channel_when_groups_are_listed_twice():
    once = spec_of(DESCRIPTOR).dram
    assert (once.channels_per_group.value, once.channel_bytes.value) == (2, 1 << 30)
    text = DESCRIPTOR.replace("[[0-0, 0-1], [3-0]]", "[[0-0, 0-1], [3-0], [0-0, 0-1], [3-0]]")
    twice = spec_of(text)
    assert twice.dram.channels_per_group.value == 2
    assert twice.dram.channel_bytes.value == 2 << 30
    assert twice.build().dram_groups == [[(0, 0), (0, 1)], [(3, 0)]]


def test_a_descriptor_may_lack_what_a_simulated_chip_does_not_have():
    text = DESCRIPTOR.replace("[[0-0, 0-1], [3-0]]", "[]").replace("[2-0]", "[2-0,0-0,0-1,3-0,1-0]")
    text = text.replace("eth: [1-0]\n", "").replace("eth_l1_size: 200000\n", "")
    chip = spec_of(text).build()
    assert chip.dram_groups == []
    assert chip.ethernet_l1_bytes > 0


def test_names_of_architectures_may_be_in_small_letters():
    assert spec_of(DESCRIPTOR.replace("WORMHOLE_B0", "wormhole_b0")).grid.width == 4
    text = DESCRIPTOR.replace("WORMHOLE_B0", "BLACKHOLE").replace("[1-1, 2-1]", "[1-1, 1-2]")
    text = text.replace("[1-2, 2-2]", "[2-1, 2-2]")
    spec = spec_of(text)
    assert (spec.harvesting.axis, spec.harvesting.harvested) == ("columns", (2,))
    assert spec.build().router["flit_bytes"] == 64


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("[2-0]", "[2-9]", "soc.yaml:13: router_only[0]: 2-9 is off the grid, which ends at 3-2"),
        ("[2-0]", "[1-0]", "router_only[0]: lists 1-0 as router_only, but it already is ethe"),
        ("[2-0]", "[]", "soc.yaml:1: grid: leaves out 2-0; every tile of the grid must be in a"),
        ("[1-1,", "[3-0,", "functional_workers[0]: lists 3-0 as worker, but it already is dram"),
        ("[1-1, 2-1]", "[]", "soc.yaml:11: functional_workers: is []"),
        ("[1-1, 2-1]", "{a: b}", "functional_workers: is {'a': 'b'}; it must be a valid tuple"),
        ("[1-1, 2-1]", "[1-1, 7]", "functional_workers[1]: is 7; it must be a tile as x-y"),
        ("[1-2, 2-2]", "[1-2]", "soc.yaml:1: grid: leaves out 2-2"),
        (
            "[1-1, 2-1]\nharvested_workers: [1-2, 2-2]",
            "[1-1, 2-1, 1-2]\nharvested_workers: [2-2]",
            "functional_workers[2]: is 1-2, beside harvested workers; whole rows are harvested",
        ),
        ("[2-0]", "[2-0, 2-2]", "router_only[1]: lists 2-2 as router_only, but it already is h"),
        ("[3-0]]", "[3-0], [3-0]]", "soc.yaml:8: dram: lists some groups more often than others"),
        ("[3-0]]", "[0-0]]", "soc.yaml:9: dram[1]: lists 0-0 as dram, but it already is dram"),
        ("x_size: 4", "x_size: four", "soc.yaml:2: grid.x_size: is 'four'; it must be a valid int"),
        ("x_size: 4", "x_size: 1000000", "grid.x_size: is 1000000; it must be less than or equal"),
        ("WORMHOLE_B0", "QUASAR", "soc.yaml:19: arch_name: is 'QUASAR'; choose one of"),
        ("eth_l1_size: 200000", "eth_l1_size: 0", "eth_l1_size: is 0, but eth lists tiles"),
        ("dram_bank_size: 2147483648", "dram_bank_size: -1", "dram_bank_size: is -1; it must be"),
        ("worker_l1_size: 1000000\n", "", "the spec: has no field 'worker_l1_size'"),
    ],
)  # fmt: skip
def test_a_wrong_descriptor_is_refused_by_name(old, new, expected):
    assert old in DESCRIPTOR
    assert expected in refusal(spec_of, DESCRIPTOR.replace(old, new, 1))


def test_the_descriptors_of_the_driver_describe_the_shipped_chips(data_folder):
    folder = data_folder / "topologies" / "tenstorrent"
    for file, name in (
        ("wormhole_b0_8x10.yaml", "wormhole"),
        ("blackhole_140_arch.yaml", "blackhole"),
    ):
        chip = shipped.chip(name)
        spec = catalogue.load_chip(folder / file)
        assert spec.harvesting.harvested == ()
        assert spec.l1_bytes.value == chip.l1_bytes.value
        assert spec.dram.channel_bytes.value == chip.dram.channel_bytes.value
        harvested = spec.with_harvested(chip.harvesting.harvested)
        assert harvested.tile_kinds() == chip.tile_kinds()
        assert harvested.build().dram_groups == chip.build().dram_groups


@pytest.mark.parametrize("name", ["blackhole", "wormhole"])
def test_a_chip_written_for_a_driver_is_the_same_chip_when_read_again(name):
    chip = shipped.chip(name)
    read = spec_of(soc_descriptor_of(chip))
    assert set(read.tiles.worker) == set(chip.tiles.worker)
    others = ("dram", "ethernet", "pcie", "arc", "router_only")
    assert all(getattr(read.tiles, kind) == getattr(chip.tiles, kind) for kind in others)
    assert read.harvesting.harvested == chip.harvesting.harvested
    assert read.dram.channel_bytes.value == chip.dram.channel_bytes.value
    assert read.l1_bytes.value == chip.l1_bytes.value


def test_a_chip_without_architecture_is_refused_to_drivers():
    chip = shipped.chip("blackhole").model_copy(update={"architecture": None})
    sentence = "chip 'blackhole' has no architecture, which a driver needs"
    assert refusal(soc_descriptor_of, chip) == sentence
