# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Machines as JSON for C++, and the reference of parameters, are what the specs and tables say."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from conftest import refusal
from inside import _core
from inside.cli import export as export_command
from inside.errors import DescriptionError
from inside.machines import SpecFile, catalogue, export, kinds, reference, shipped, tables

ROOT = Path(__file__).resolve().parents[3]
JSON = ROOT / "machines" / "json"
PARSE = {
    "gpu_cluster": _core.parse_machine,
    "chip": _core.parse_chip,
    "chip_cluster": _core.parse_chip_cluster,
    "mailbox_cluster": _core.parse_mailbox_cluster,
    "host": _core.parse_host,
}


@pytest.mark.parametrize("name", sorted(shipped.kinds()))
def test_the_json_of_a_shipped_machine_is_that_of_its_spec(name):
    written = (JSON / f"{name}.json").read_text()
    assert written == export.json_of(
        catalogue.load_any(name)
    ), "run: python -m towpath.specs.export machines/json"
    assert PARSE[shipped.kinds()[name]](written, name).name == json.loads(written)["name"]


def test_no_json_is_left_of_a_machine_that_is_gone():
    assert {path.stem for path in JSON.iterdir()} == set(shipped.kinds())


def test_the_reference_is_that_of_the_tables():
    assert (
        ROOT / "docs" / "parameters.md"
    ).read_text() == reference.page(), "run: python -m towpath.specs.reference > docs/parameters.md"


def test_every_parameter_has_a_unit_that_its_bounds_are_in_and_a_meaning():
    units = ("_ns", "_us", "_mhz", "_gb_per_s", "_bytes_per_cycle", "probability")
    rows = [row for blocks in tables().values() for rows in blocks.values() for row in rows]
    assert len(rows) > 140
    for row in rows:
        assert row["meaning"] and row["min"] <= row["max"], row
        if row["type"] == "number":
            assert row["name"].endswith(units), row


def chip_data(**change):
    return json.dumps(shipped.chip("wormhole").data() | change)


@pytest.mark.parametrize(
    ("change", "field", "problem"),
    [
        ({"clock_mhz": 0.5}, "clock_mhz", "is 0.5; it must be 1 to 1000000"),
        ({"width": 65}, "width", "is 65; it must be 1 to 64"),
        ({"tiles": [["worker"]]}, "", "has 1 tiles; a grid of 10 x 12 has 120"),
        ({"tiles": [["castle"]]}, "tiles", 'has "castle", which is not a kind of tile'),
        ({"tiles": 5}, "tiles", "must be a list of rows"),
        ({"dram_tiles": []}, "", "the dram tile 0-0 has DRAM group -1"),
        ({"dram_tiles": [[0, 1]]}, "dram_tiles", "must contain lists of 3 numbers"),
        ({"ethernet_cores": [[1, -1]]}, "ethernet_cores", "must contain lists of whole numbers"),
        ({"harvested_ethernet": [64]}, "harvested_ethernet", "must contain lists of whole numbers"),
        ({"router": {}}, "router", "has no field 'flit_bytes'"),
        ({"router": 3}, "router", "must be a block of fields"),
        ({"speed": 3}, "", "has no field 'speed'"),
        ({"pcie": None}, "pcie", "must be a block of fields"),
    ],
)
def test_the_core_names_the_field_that_does_not_fit(change, field, problem):
    with pytest.raises(DescriptionError) as caught:
        _core.parse_chip(chip_data(**change), "chip")
    assert caught.value.field == field
    assert problem in caught.value.problem
    assert isinstance(caught.value, ValueError) and problem in str(caught.value)


def cluster_data(change):
    data = catalogue.load_chip_cluster("n300").data()
    change(data)
    return json.dumps(data)


@pytest.mark.parametrize(
    ("change", "field", "problem"),
    [
        (lambda d: d["chips"][1].update(kind=2), "chips[1].kind", "is 2; it must be 0 to 0"),
        (lambda d: d["links"][0].update(ends=[[0, 8]]), "links[0].ends", "must be two ends"),
        (lambda d: d["links"][0].update(ends=[[0, 8], [2, 0]]), "links[0]", "has no chip 2"),
        (lambda d: d["links"][0].pop("is_reserved"), "links[0]", "has no field 'is_reserved'"),
        (lambda d: d.update(chips={}), "chips", "must be a list"),
    ],
)
def test_the_core_names_the_part_of_a_cluster_that_does_not_fit(change, field, problem):
    with pytest.raises(DescriptionError) as caught:
        _core.parse_chip_cluster(cluster_data(change), "cluster")
    assert caught.value.field == field and problem in caught.value.problem


@pytest.mark.parametrize(
    ("change", "field", "problem"),
    [
        (lambda d: d["wires"][0].update(link_type="rope"), "wires[0].link_type", "is 'rope', whi"),
        (lambda d: d["wires"][0].update(between=[0]), "wires[0].between", "must be two devices"),
        (lambda d: d["wires"][0].update(between=[0, 999]), None, "a link ends at device 999"),
        (lambda d: d["devices"][0].update(kind="tpu"), "devices[0].kind", "is 'tpu', which is not"),
        (lambda d: d["gpu_cost"].pop("ll"), "gpu_cost", "has no field 'll'"),
        (lambda d: d["gpu_cost"]["simple"].pop("fences"), "gpu_cost.simple", "has no field"),
    ],
)
def test_the_core_names_the_part_of_a_machine_that_does_not_fit(change, field, problem):
    data = catalogue.load("ring").data()
    change(data)
    with pytest.raises(ValueError) as caught:
        _core.parse_machine(json.dumps(data), "machine")
    assert caught.value.field == field and problem in str(caught.value)


def test_each_kind_recognises_its_own_files_and_no_others():
    for name, kind in shipped.kinds().items():
        path = shipped.folder() / f"{name}.yaml"
        file = SpecFile(path.read_text(), str(path))
        assert [one.name for one in kinds.KINDS.values() if one.recognises(file)] == [kind]


def test_a_form_within_a_text_does_not_make_a_kind():
    text = "form: template\nnotes: |\n  a text\nform_of_it: 'form: chip'\n"
    assert kinds.kind_of(SpecFile(text, "a.yaml")).name == "gpu_cluster"
    assert "is not a host; it must be a spec whose form is 'host'" in refusal(
        kinds.KINDS["host"].load, SpecFile(text, "a.yaml")
    )


def exported(*arguments):
    return CliRunner().invoke(export_command.app, ("machine", *arguments))


def test_the_command_writes_a_machine_at_any_size():
    assert exported("wormhole", "--json").output == (JSON / "wormhole.json").read_text()
    larger = json.loads(exported("dgx-h100", "--json", "--hosts", "4").output)
    assert sum(device["kind"] == "gpu" for device in larger["devices"]) == 32
    assert "add --json" in str(exported("wormhole").exception)
