# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
import copy

import pytest
import yaml

from conftest import refusal
from inside import _core
from inside.machines import Coordinate, Quantity, catalogue, shipped, tables
from towpath import ConfigError

WORMHOLE = shipped.chip("wormhole")
TEXT = """\
form: chip
name: small
description: four workers
grid: {width: 4, height: 3, source: chosen}
clock_mhz: {value: 1000, source: chosen}
tiles:
  source: chosen
  worker: [1-0, 2-0, 1-1, 2-1]
  dram: [[0-0, 0-1], [3-0]]
  ethernet: [3-1]
  pcie: [0-2]
  arc: [1-2]
  router_only: [2-2, 3-2]
harvesting: {axis: columns, harvested: [], source: chosen}
""" + yaml.safe_dump(
    {
        field: value
        for field, value in WORMHOLE.model_dump(mode="json").items()
        if field in ("l1_bytes", "ethernet_l1_bytes", "router", "niu", "dram")
        or field in ("ethernet", "alignment")
    },
    sort_keys=False,
    default_flow_style=None,
    width=1000,
)


BLOCKS = ("router", "niu", "dram", "ethernet", "alignment")


def spec_of(text):
    return catalogue.parse_chip(text, "small.yaml")


def changed(change):
    data = copy.deepcopy(yaml.safe_load(TEXT))
    change(data)
    return yaml.safe_dump(data, sort_keys=False)


def quantities_in(model):
    if isinstance(model, Quantity):
        yield model
    elif hasattr(type(model), "model_fields"):
        for name in type(model).model_fields:
            yield from quantities_in(getattr(model, name))
    elif isinstance(model, tuple):
        for one in model:
            yield from quantities_in(one)


def test_tiles_and_parameters_reach_the_core_unchanged():
    chip = spec_of(TEXT).build()
    assert (chip.name, chip.width, chip.height, chip.clock_mhz) == ("small", 4, 3, 1000)
    kinds = "dram worker worker dram dram worker worker ethernet pcie arc router_only router_only"
    assert [kind.name for kind in chip.tiles] == kinds.split()
    assert chip.dram_groups == [[(0, 0), (0, 1)], [(3, 0)]]
    assert chip.workers == [(1, 0), (2, 0), (1, 1), (2, 1)]
    assert chip.worker(1, 1) == (2, 1)
    assert chip.ethernet_cores == [(3, 1)]
    for block in BLOCKS:
        given = getattr(spec_of(TEXT), block)
        for name, value in getattr(chip, block).items():
            quantity = getattr(given, name)
            expected = quantity.value if isinstance(quantity, Quantity) else quantity
            assert value == pytest.approx(expected, abs=1 / 512), name
        assert set(getattr(chip, block)) == set(type(given).model_fields)


def blocks_in(data, path):
    """The blocks of a file that a table describes; a list of them where each has the same."""
    for name in path.split(".") if path else ():
        data = data[name]
    return data if isinstance(data, list) else [data]


@pytest.mark.parametrize("name", shipped.names("chip"))
def test_every_parameter_of_a_shipped_chip_has_a_value_and_a_source_in_its_file(name):
    data = yaml.safe_load((shipped.folder() / f"{name}.yaml").read_text())
    stated = []
    for path, rows in tables()["chip"].items():
        for block in blocks_in(data, path):
            for row in rows:
                if row["form"] == "quantity" or isinstance(block.get(row["name"]), dict):
                    stated.append(block[row["name"]])
    every = list(quantities_in(shipped.chip(name)))
    read = [quantity for quantity in every if not quantity.source.startswith("default; ")]
    assert sorted((q.value, q.source) for q in read) == sorted(
        (parameter["value"], parameter["source"]) for parameter in stated
    )
    assert all(len(quantity.source) > 5 for quantity in every)


def test_the_shipped_chips_are_those_that_were_measured():
    wormhole, blackhole = (shipped.chip(name).build() for name in ("wormhole", "blackhole"))
    assert (wormhole.worker_columns, wormhole.worker_rows, len(wormhole.workers)) == (8, 8, 64)
    assert (blackhole.worker_columns, blackhole.worker_rows) == (12, 10)
    assert len(blackhole.workers) == 120
    assert wormhole.tiles.count(_core.TileKind.harvested) == 16
    assert blackhole.tiles.count(_core.TileKind.harvested) == 20
    assert catalogue.load_chip("wormhole", 528).workers() == WORMHOLE.workers()
    assert catalogue.load_chip("blackhole", 192).build().workers == blackhole.workers


def test_a_harvest_mask_counts_the_rows_with_workers():
    spec = catalogue.load_chip("wormhole", 0b1000100001)
    assert spec.harvesting.harvested == (1, 7, 11)
    core = spec.build()
    assert (core.worker_columns, core.worker_rows) == (8, 7)
    assert core.worker(0, 0) == (1, 2)
    assert core.worker(0, 4) == (1, 8)


def test_harvested_columns_stay_tiles_but_leave_the_logical_grid():
    spec = spec_of(TEXT).with_harvested([1])
    assert spec.tile_kinds()[Coordinate(1, 0)] == "harvested"
    assert spec.workers() == [Coordinate(2, 0), Coordinate(2, 1)]
    assert spec.worker_grid() == (1, 2)
    assert spec.build().worker(0, 1) == (2, 1)


@pytest.mark.parametrize(
    ("mask", "expected"),
    [
        (-1, "chip 'small': harvest mask is -1; its 2 columns with workers allow 0 to 3"),
        (4, "harvest mask is 4; its 2 columns with workers allow 0 to 3"),
        (3, "names every column with workers; at least one must be left"),
    ],
)
def test_an_impossible_harvest_mask_is_refused(mask, expected):
    with pytest.raises(ConfigError, match=expected):
        spec_of(TEXT).with_harvest_mask(mask)


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("[3-1]", "[4-1]", "small.yaml:10: tiles.ethernet[0]: 4-1 is off the grid, which ends at"),
        ("[3-1]", "[3-0]", "tiles.ethernet[0]: lists 3-0 as ethernet, but it already is dram; it"),
        ("[3-1]", "[]", "tiles: leaves out 3-1; every tile of the grid must be in a list"),
        ("1-1, 2-1]", "1-1, 1-1]", "small.yaml:8: tiles.worker[3]: lists 1-1 as worker, but it"),
        ("[3-0]]", "[]]", "small.yaml:9: tiles.dram[1]: is []"),
        ("2-1]", "two]", "tiles.worker[3]: is 'two'; it must be a tile as x-y, such as 3-7"),
        ("2-1]", "-1]", "tiles.worker[3]: is -1; it must be a tile as x-y"),
        ("2-1]", "[2, 1]]", "tiles.worker[3]: is [2, 1]; it must be a tile as x-y"),
        ("2-1]", "2-99999]", "it must be a tile as x-y"),
        ("width: 4", "width: 65", "small.yaml:4: grid.width: is 65; it must be less than or equal"),
        ("width: 4", "width: 4.0", "grid.width: is 4.0; it must be a valid integer"),
        ("harvested: []", "harvested: [3]", "harvesting.harvested: names column 3, which has no"),
        ("harvested: []", "harvested: [1, 1]", "names column 1 a second time"),
        ("harvested: []", "harvested: [1, 2]", "names every column with workers"),
        ("axis: columns", "axis: tiles", "harvesting.axis: is 'tiles'; it must be 'rows' or 'col"),
        ("form: chip", "form: chips", "small.yaml:1: is not a chip; it must be a spec whose form"),
        ("axis:", "mask: 3, axis:", "harvesting: has no field 'mask'; choose one of axis, "
            "harvested"),
    ],
)  # fmt: skip
def test_a_wrong_chip_is_refused_by_name(old, new, expected):
    assert old in TEXT
    assert expected in refusal(spec_of, TEXT.replace(old, new, 1))


@pytest.mark.parametrize(
    ("block", "parameter", "value", "expected"),
    [
        ("router", "hop_cycles", 61, "is 61; it must be less than or equal to 60"),
        ("router", "classes", 5, "is 5; it must be less than or equal to 4"),
        ("router", "pool_flits_per_vc_max", 60_000, "is 60000; it must be at most 48"),
        ("router", "pool_flits_reserved", 60_000, "is 60000; it must be at most 48"),
        ("niu", "backoff_cycles_max", 1, "is 1; it must be at least"),
        ("niu", "initiators", 5, "is 5; it must be less than or equal to 4"),
        ("niu", "transaction_ids", 17, "is 17; it must be less than or equal to 16"),
        ("ethernet", "tx_queues_for_kernels", 3, "is 3; it must be at most 2, the tx_queues"),
        ("ethernet", "frame_payload_bytes_max", 15, "is 15; it must be at least 16, the word_byt"),
        ("ethernet", "line_rate_gb_per_s", 0, "is 0; it must be greater than or equal to 0.001"),
        ("ethernet", "resend_timeout_ns", 0, "is 0; it must be greater than or equal to 1"),
        ("ethernet", "path_time_ns", -1, "is -1; it must be greater than or equal to 0"),
        ("niu", "initiators", True, "is True; it must be a valid integer"),
        ("niu", "port_rate_bytes_per_cycle", 0, "is 0; it must be greater than or equal to"),
        ("niu", "port_rate_bytes_per_cycle", 1e9, "is 1000000000.0; it must be less than"),
        ("dram", "channel_bytes", 1.5, "is 1.5; it must be a valid integer"),
        ("alignment", "l1_bytes", 24, "is 24; it must be a power of two, 1 to 4096"),
    ],
)  # fmt: skip
def test_a_parameter_out_of_bounds_is_refused_by_name(block, parameter, value, expected):
    text = changed(lambda data: data[block][parameter].update(value=value))
    assert f"{block}.{parameter}.value: " in refusal(spec_of, text)
    assert expected in refusal(spec_of, text)


def test_a_dateline_is_there_or_not():
    text = changed(lambda data: data["router"].update(has_dateline=1))
    assert "router.has_dateline: is 1; it must be a valid boolean" in refusal(spec_of, text)
    text = changed(lambda data: data["router"].update(has_dateline=False))
    assert spec_of(text).build().router["has_dateline"] is False


def test_rows_with_workers_have_the_same_columns():
    text = TEXT.replace("1-1, 2-1]", "1-1]").replace("[2-2,", "[2-1, 2-2,")
    expected = "tiles.worker: has row 1 in other columns than row 0; rows with workers must"
    assert expected in refusal(spec_of, text)


@pytest.mark.parametrize("block", BLOCKS)
def test_a_missing_or_unknown_parameter_is_named(block):
    name = next(iter(yaml.safe_load(TEXT)[block]))
    assert f"{block}: has no field '{name}'" in refusal(
        spec_of, changed(lambda d: d[block].pop(name))
    )
    text = changed(lambda d: d[block].update(other={"value": 1, "source": "chosen"}))
    assert f"{block}: has no field 'other'; choose one of {name}" in refusal(spec_of, text)


def test_a_chip_needs_ethernet_parameters_when_it_has_such_tiles():
    expected = "tiles.ethernet: lists Ethernet tiles, so the chip needs the block ethernet"
    assert expected in refusal(spec_of, changed(lambda data: data.pop("ethernet")))

    def without_tiles(data):
        data.pop("ethernet")
        data["tiles"]["router_only"] += data["tiles"].pop("ethernet")

    chip = spec_of(changed(without_tiles)).build()
    assert chip.ethernet_cores == []


def test_harvested_ethernet_tiles_only_route_and_leave_no_gap():
    chip = WORMHOLE.with_harvested_ethernet([0, 2])
    tiles = WORMHOLE.tiles.ethernet
    assert chip.tiles.ethernet == (tiles[1], *tiles[3:])
    assert chip.tile_kinds()[tiles[0]] == chip.tile_kinds()[tiles[2]] == "router_only"
    assert chip.build().ethernet_cores[0] == tiles[1]
    assert chip.harvesting.ethernet == (0, 2)
    assert chip.with_harvested_ethernet([0, 13]).harvesting.ethernet == (0, 1, 2, 15)


def test_the_host_link_reaches_the_core_unchanged():
    for spec in (WORMHOLE, shipped.chip("blackhole")):
        chip = spec.build()
        for name, value in chip.pcie.items():
            figure = getattr(spec.pcie, name)
            assert value == (figure if isinstance(figure, bool) else figure.value), name
        assert set(chip.pcie) | {"windows"} == set(type(spec.pcie).model_fields)
        assert [window[0] for window in chip.pcie_windows] == [
            window.size_bytes.value for window in spec.pcie.windows
        ]


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda pcie: pcie["windows"].reverse(), "pcie.windows: must list each size once"),
        (lambda pcie: pcie["dynamic_window_bytes"].update(value=4096),
         "pcie.dynamic_window_bytes.value: is 4096; the chip has windows of 1048576, 2097152, 16"),
        (lambda pcie: pcie["windows"][2]["reserved"].update(value=21),
         r"pcie.windows\[2\].reserved.value: is 21; it must be at most 20, the count"),
        (lambda pcie: pcie["dma_to_device"].update(value=1), "pcie.dma_to_device.value: is 1; it"),
        (lambda pcie: pcie["generation"].update(value=7), "pcie.generation.value: is 7; it"),
    ],
)  # fmt: skip
def test_a_host_link_that_does_not_fit_is_refused(change, expected):
    data = WORMHOLE.model_dump(mode="json")
    change(data["pcie"])
    with pytest.raises(ConfigError, match=expected):
        catalogue.parse_chip(yaml.safe_dump(data), "chip.yaml")


@pytest.mark.parametrize(
    ("channels", "expected"),
    [([16], "has no Ethernet channel 16; it has 0 to 15"), ([-1], "has no Ethernet channel -1"),
     ([1, 1], "Ethernet channel 1 is harvested twice")],
)  # fmt: skip
def test_impossible_harvested_ethernet_is_refused(channels, expected):
    with pytest.raises(ConfigError, match=f"chip 'wormhole': {expected}"):
        WORMHOLE.with_harvested_ethernet(channels)


def test_a_quantity_needs_a_source():
    text = changed(lambda data: data["router"]["hop_cycles"].pop("source"))
    assert "router.hop_cycles: has no field 'source'" in refusal(spec_of, text)


def test_a_chip_is_not_a_machine_and_a_machine_is_not_a_chip(tmp_path):
    with pytest.raises(ConfigError, match="wormhole.yaml:1: is a chip, not a cluster of GPUs"):
        catalogue.load("wormhole")
    with pytest.raises(ConfigError, match="ring.yaml:1: is not a chip"):
        catalogue.load_chip("ring")
    with pytest.raises(ConfigError, match="no file or chip 'warmhole'; choose one of blackhole"):
        catalogue.load_chip("warmhole")
    assert not set(shipped.names("gpu_cluster")) & set(shipped.names("chip"))
    file = tmp_path / "mine.yaml"
    file.write_text(TEXT)
    assert catalogue.load_chip(file).name == "small"
    assert catalogue.kind_of(file) == catalogue.kind_of("blackhole") == "chip"
    assert catalogue.kind_of("ring") == catalogue.kind_of("nothing") == "gpu_cluster"


def test_harvested_dram_groups_only_route_and_leave_no_gap():
    groups = WORMHOLE.tiles.dram
    chip = WORMHOLE.with_harvested_dram([1, 4])
    assert chip.tiles.dram == (groups[0], groups[2], groups[3], groups[5])
    assert {chip.tile_kinds()[at] for at in groups[1] + groups[4]} == {"router_only"}
    assert len(chip.build().dram_groups) == 4
    assert chip.with_harvested_dram([1]).harvesting.dram == (1, 2, 4)


def test_a_chip_is_harvested_as_the_drivers_log_says():
    chip = shipped.chip("blackhole").with_masks("tensix=0x1020, dram=0x8, eth=0x3fff")
    assert chip.harvesting.harvested == (6, 15)
    assert (chip.harvesting.dram, len(chip.tiles.dram)) == ((3,), 7)
    assert chip.tiles.ethernet == ()
    assert shipped.chip("blackhole").with_masks("dram=012").harvesting.dram == (2, 3)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("dram=0x100", "has no DRAM group 8; it has 0 to 7"),
        ("dram=8,arc=1", "harvesting is 'dram=8,arc=1'; it must be masks of tensix, dram, eth"),
        ("dram", "it must be masks of tensix, dram, eth, such as tensix=0x1020"),
    ],
)
def test_impossible_masks_are_refused(text, expected):
    with pytest.raises(ConfigError, match=f"chip 'blackhole': .*{expected}"):
        shipped.chip("blackhole").with_masks(text)
