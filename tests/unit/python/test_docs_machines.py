# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""docs/machines.md: its examples are machines, and its sum is what the simulator says."""

import re
from pathlib import Path

import pytest
import yaml

import towpath
from inside.machines import catalogue, quantities_of, shipped

PAGE = Path(__file__).resolve().parents[3] / "docs" / "machines.md"
BLOCKS = re.findall(r"```yaml\n(.*?)```", PAGE.read_text(), re.DOTALL)
TEMPLATE, GRAPH, MIXED, CHIP, CHIPS, GRID = BLOCKS


def spec_of(text):
    return catalogue.parse(text, "machines.md")


def graph_spec():
    fields = yaml.safe_load(TEMPLATE)
    del fields["form"], fields["hosts"]
    return spec_of(yaml.safe_dump(fields | yaml.safe_load(GRAPH)))


def rows_of_sum():
    rows = re.findall(r"^\| ([^|]+) \| (\d+) \|$", PAGE.read_text(), re.MULTILINE)
    return {name: int(value) for name, value in rows}


def test_hosts_of_different_kinds_build():
    assert spec_of(MIXED).build().ranks == 32


def test_the_example_builds_at_its_size_and_at_another():
    assert spec_of(TEMPLATE).build().ranks == 4
    assert spec_of(TEMPLATE).build(hosts=8).ranks == 16


def test_template_and_graph_describe_the_same_machine():
    template, graph = spec_of(TEMPLATE).layout(), graph_spec().layout()
    assert {device[:3] for device in template.devices} == {device[:3] for device in graph.devices}
    assert named_wires(template) == named_wires(graph)
    assert graph_spec().build().ranks == 4


def named_wires(layout):
    names = [device.name for device in layout.devices]
    return sorted((names[w.a], names[w.b], w.link_type, w.parallel) for w in layout.wires)


@pytest.mark.parametrize("spec", [spec_of(TEMPLATE), graph_spec()], ids=["template", "graph"])
def test_the_sum_on_the_page_is_what_the_simulator_says(spec):
    from inside.collectives import Call, GpuPlace, simulated
    from inside.schedules import ScheduleSource

    *parts, total = rows_of_sum().values()
    assert len(parts) == 7
    assert sum(parts) == total
    source = ScheduleSource(collective="all_gather", algorithm="all_pairs_all_gather", ranks=2)
    outcome = simulated.invoke(
        GpuPlace(spec.build()), Call(source.schedule()), 32 << 10, in_place=True,
        with_data=True,
    )  # fmt: skip
    assert outcome.wrong == 0
    assert outcome.time_us * 1000 == pytest.approx(total, abs=0.01)


def test_the_page_names_every_field():
    page = PAGE.read_text() + (PAGE.parent / "parameters.md").read_text()
    for name in field_names(spec_of(TEMPLATE).model_dump()) | field_names(
        graph_spec().model_dump()
    ):
        assert name in page, name


def chip_spec():
    return catalogue.parse_chip(CHIP, "machines.md")


def values_in(data):
    """How many values a file has; lists of tiles, names and texts are none."""
    if isinstance(data, dict) and "value" in data:
        return 1
    if isinstance(data, dict):
        return sum(values_in(item) for item in data.values())
    if isinstance(data, list):
        return sum(values_in(item) for item in data if isinstance(item, dict))
    return 1 if isinstance(data, int) else 0


def test_a_chip_is_described_by_few_values_and_each_has_a_source():
    assert values_in(yaml.safe_load(CHIP)) <= 45
    wormhole = shipped.chip("wormhole")
    quantities = list(quantities_of(chip_spec()))
    assert all(source for _, value, source in quantities if not isinstance(value, (str, bool)))
    defaults = {path: value for path, value, source in quantities if source.startswith("default; ")}
    assert len(defaults) > 30
    for path, value in defaults.items():
        block, _, name = path.partition(".")
        assert getattr(getattr(wormhole, block), name).value == value, path


def test_chips_of_the_page_run_a_collective_over_the_fabric(tmp_path):
    data = yaml.safe_load(CHIP) | {"name": "third"}
    data["grid"]["height"] = 7
    tiles = data["tiles"]
    tiles["worker"] += [f"{x}-{y}" for y in range(3, 7) for x in (1, 2)]
    tiles["router_only"] += [f"{x}-{y}" for y in range(3, 7) for x in (0, 3)]
    (tmp_path / "third.yaml").write_text(yaml.safe_dump(data))
    pair = {
        "form": "chip_cluster", "name": "pair", "description": "two of them", "source": "chosen",
        "chips": [
            {"chip": "third.yaml", "x": x, "y": 0, "host_link": x == 0} for x in range(2)
        ],
        "links": [["0/0", "1/0"]],
    }  # fmt: skip
    (tmp_path / "pair.yaml").write_text(yaml.safe_dump(pair))
    result = towpath.load(tmp_path / "pair.yaml").run("all_gather", size_bytes="64K")
    (row,) = result.rows
    assert row.wrong == 0 and 5 < row.time_us < 100
    shown = towpath.load(tmp_path / "third.yaml").show()
    assert "credit_return_cycles" in shown and "default; derived on Wormhole" in shown


def test_the_chip_on_the_page_runs_a_kernel_as_it_is_shown(tmp_path):
    file = tmp_path / "chip.yaml"
    file.write_text(CHIP)
    kernel = towpath.SourceKernel("k.cpp", core=(1, 1), text="void kernel_main() {}")
    assert towpath.load(file).run_kernels([kernel]).kernels == [(0, 0)]


def test_the_chip_on_the_page_builds_without_its_harvested_row():
    assert chip_spec().build().workers == [(1, 0), (2, 0), (1, 2), (2, 2)]


def test_the_page_names_every_field_of_a_chip():
    names = field_names(chip_spec().model_dump())
    assert len(names) > 60
    text = PAGE.read_text() + (PAGE.parent / "parameters.md").read_text()
    for name in names:
        assert name in text, name


def test_the_clusters_on_the_page_build():
    core = catalogue.parse_chip_cluster(CHIPS, "machines.md").build()
    assert core.connected((2, 14)) == (1, 14)
    assert core.active_channels(0) == [9]
    assert [len(chip.chip.ethernet_cores) for chip in core.chips] == [16, 16, 15]
    grid = catalogue.parse_chip_cluster(GRID, "machines.md").build()
    assert len(grid.chips) == 6
    assert grid.connected((1, 2)) == (2, 2)  # column 2 is mirrored
    assert grid.connected((2, 0)) == (0, 0)  # and closes the ring with its other side
    assert grid.connected((2, 5)) == (5, 4)


def test_the_page_names_every_field_of_a_cluster_of_chips():
    from inside.machines import chip_cluster_spec

    names = field_names(yaml.safe_load(CHIPS)) | field_names(yaml.safe_load(GRID))
    for model in (
        chip_cluster_spec.ListedChip, chip_cluster_spec.GridRule, chip_cluster_spec.SideChannels,
        chip_cluster_spec.Dispatcher,
    ):  # fmt: skip
        names |= set(model.model_fields)
    for name in names:
        assert f"`{name}`" in PAGE.read_text() or f"{name}:" in PAGE.read_text(), name


def test_the_static_routes_on_the_page_are_what_the_command_says():
    from test_static_routes import ring

    from inside.studies import parse_routes, plan_routes

    command = re.search(r"^\$ towpath routes ring4.yaml (.*)$", PAGE.read_text(), re.MULTILINE)
    text = plan_routes(ring(), parse_routes(command[1].split())).text()
    shown = PAGE.read_text()[command.end() :].split("```")[0]
    for line in shown.strip().splitlines():
        assert line == "..." or line in text.splitlines()


def field_names(data):
    """Names of fields, without those that a user chooses: link types and protocols."""
    if isinstance(data, (list, tuple)):
        return set().union(*(field_names(value) for value in data))
    if not isinstance(data, dict):
        return set()
    inner = set().union(*(field_names(value) for value in data.values()))
    return set(data) | inner
