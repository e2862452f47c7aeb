# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
import copy

import pytest
import yaml

from conftest import refusal
from inside.machines import (
    DEVICES_MAX,
    Quantity,
    catalogue,
    parse_machine_spec,
    parse_yaml,
    shipped,
)
from towpath import ConfigError

SMALL = """\
form: template
name: small
description: two GPUs on a wire
hosts:
  count: 1
  gpus: 2
  source: chosen
  gpu_interconnect: {shape: fully_connected, link_type: wire}
link_types:
  wire:
    kind: nvlink
    rate_gb_per_s: {value: 10, source: chosen}
    latency_ns: {value: 500, source: chosen}
    message_overhead_ns: {value: 3, source: chosen}
gpu_cost:
  launch_ns: {value: 100, source: chosen}
""" + "".join(
    f"""\
  {protocol}:
    block_rate_gb_per_s: {{value: 20, source: chosen}}
    send_overhead_ns: {{value: 7, source: chosen}}
    receive_overhead_ns: {{value: 9, source: chosen}}
    fences: {fences}
"""
    for protocol, fences in (("simple", "true"), ("ll", "false"), ("ll128", "false"))
)


def spec_of(text):
    return parse_machine_spec(parse_yaml(text, "small.yaml"), "small.yaml")


def changed(change):
    data = copy.deepcopy(yaml.safe_load(SMALL))
    change(data)
    return yaml.safe_dump(data, sort_keys=False)


def path_names(machine, from_rank, to_rank):
    links = machine.links
    return [
        machine.devices[links[link].to_device].name for link in machine.route(from_rank, to_rank)
    ]


def test_units_reach_the_core_unchanged():
    machine = spec_of(SMALL).build()
    assert (machine.name, machine.ranks) == ("small", 2)
    assert [(link.from_device, link.to_device) for link in machine.links] == [(0, 1), (1, 0)]
    link = machine.links[0]
    assert (link.rate_gb_per_s, link.latency_ns, link.message_overhead_ns) == (10, 500, 3)
    assert machine.gpu.launch_ns == 100
    assert machine.gpu.simple.fences and not machine.gpu.ll.fences
    cost = machine.gpu.ll128
    assert cost.block_rate_gb_per_s == 20
    assert (cost.send_overhead_ns, cost.receive_overhead_ns) == (7, 9)


def test_a_spec_is_immutable():
    with pytest.raises(ValueError, match="frozen"):
        spec_of(SMALL).name = "other"


def figures_in(model):
    if isinstance(model, Quantity):
        yield model
    elif isinstance(model, dict):
        for value in model.values():
            yield from figures_in(value)
    elif hasattr(type(model), "model_fields"):
        for name in type(model).model_fields:
            yield from figures_in(getattr(model, name))


@pytest.mark.parametrize("name", shipped.names("gpu_cluster"))
def test_every_quantity_of_a_shipped_machine_has_a_source(name):
    spec = shipped.machine(name)
    figures = list(figures_in(spec))
    costs = spec.gpu_cost
    optional = sum(
        isinstance(getattr(block, name), Quantity)
        for block in (costs, costs.simple, costs.ll, costs.ll128)
        for name, field in type(block).model_fields.items()
        if not field.is_required()
    )
    kernel = len(list(figures_in(costs.kernel)))
    assert kernel in (0, 26)
    needed = 3 * len(spec.link_types) + 10 + kernel
    assert len(figures) == needed + optional + len(list(figures_in(spec.fabric)))
    assert all(len(figure.source) > 5 for figure in figures)


@pytest.mark.parametrize("name", shipped.names("gpu_cluster"))
def test_every_shipped_machine_builds_and_joins_all_ranks(name):
    machine = shipped.machine(name).build()
    for to_rank in range(1, machine.ranks):
        assert machine.route(0, to_rank)


@pytest.mark.parametrize("missing", ["value", "source"])
def test_a_quantity_needs_a_value_and_a_source(missing):
    text = changed(lambda data: data["gpu_cost"]["launch_ns"].pop(missing))
    assert "gpu_cost.launch_ns: has no field" in refusal(spec_of, text)
    assert f"'{missing}'" in refusal(spec_of, text)


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (
            "value: 500",
            "value: -1",
            "small.yaml:13: link_types.wire.latency_ns.value: is -1; it must",
        ),
        ("value: 10,", "value: 0,", "small.yaml:12: link_types.wire.rate_gb_per_s.value: is 0"),
        ("value: 10,", "value: 1e999,", "it must be a finite number"),
        ("value: 10,", "value: ten,", "is 'ten'; it must be a valid number"),
        ("value: 10,", "value: true,", "it must be a valid number"),
        ("gpus: 2", "gpus: 2.5", "hosts.gpus: is 2.5; it must be a valid integer"),
        ("count: 1", "count: 2", "hosts.count: is 2; without a fabric it must be 1"),
        ("count: 1", "count: 32769", "it must be less than or equal to 32768"),
        ("kind: nvlink", "kind: string", "it must be 'nvlink', 'pcie', 'network' or 'socket'"),
        ("link_type: wire", "link_type: rope", "is 'rope'; choose one of link_types: wire"),
        (
            "shape: fully_connected",
            "shape: star",
            "has shape 'star'; choose one of 'switch', 'ring'",
        ),
        ("  gpus: 2", "  gpus: 2\n  cpus: 1", "has no field 'cpus'; choose one of count, gpus"),
        ("form: template", "form: sketch", "form: is 'sketch'; it must be"),
        ("name: small", "name: small machine", "name: is 'small machine'"),
        (
            "name: small",
            "name: small\nname: again",
            "small.yaml:3: has the field 'name' twice",
        ),
        ("name: small", "name: &x small", None),
        ("count: 1", "count: *x", "undefined alias"),
        ("name: small", "name: !!python/name:os.system x", "tags are not supported"),
        ("hosts:", "hosts: [", "is not valid YAML"),
        ("name: small", 'name: small\ndescription: "\\e]0;x\\a"', r"contains the character '\x1b'"),
        ("name: small", 'name: small\n"\\x9b2J": 1', r"contains the character '\x9b'"),
        ("name: small", 'name: small\ndescription: "\\u202e"', r"contains the character '\u202e'"),
    ],
)
def test_a_wrong_field_is_named_with_line_and_what_is_allowed(old, new, expected):
    assert old in SMALL
    text = SMALL.replace(old, new, 1)
    if expected is None:
        assert spec_of(text).name == "small"  # an anchor alone is harmless
    elif expected == "undefined alias":
        assert "uses the alias 'x'" in refusal(spec_of, text)
    else:
        assert expected in refusal(spec_of, text)
        assert refusal(spec_of, text).startswith("small.yaml:")


def test_a_pair_of_a_mesh_that_is_named_twice_is_one_link_of_twice_the_rate():
    def links(pairs):
        mesh = f"{{shape: mesh, link_type: wire, pairs: {pairs}}}"
        text = SMALL.replace("{shape: fully_connected, link_type: wire}", mesh)
        return spec_of(text).build().links

    once, twice = links("[[0, 1]]"), links("[[0, 1], [1, 0]]")
    assert len(once) == len(twice)
    assert twice[0].rate_gb_per_s == 2 * once[0].rate_gb_per_s


def test_a_mesh_names_gpus_that_exist():
    mesh = "{shape: mesh, link_type: wire, pairs: [[0, 2]]}"
    text = SMALL.replace("{shape: fully_connected, link_type: wire}", mesh)
    assert "hosts.gpu_interconnect.pairs[0]: is [0, 2]; it must be two different GPUs" in refusal(
        spec_of, text
    )


def test_a_fabric_needs_adapters():
    text = SMALL + "fabric: {shape: rails, link_type: wire}\n"
    assert "fabric: joins adapters" in refusal(spec_of, text)


def test_dgx_h100_sends_on_one_rail_without_the_spine_and_across_rails_with_it():
    machine = shipped.machine("dgx-h100").build()
    assert machine.ranks == 16
    assert path_names(machine, 0, 1) == ["host0/nvswitch", "host0/gpu1"]
    same_rail = ["host0/nic3", "leaf3", "host1/nic3", "host1/gpu3"]
    assert path_names(machine, 3, 11) == same_rail
    assert "spine" in path_names(machine, 0, 9)


def test_the_spine_carries_all_hosts_uplinks():
    for hosts in (2, 5):
        machine = shipped.machine("dgx-h100").build(hosts=hosts)
        spine = next(n for n, d in enumerate(machine.devices) if d.name == "spine")
        uplinks = [link for link in machine.links if link.to_device == spine]
        assert [link.rate_gb_per_s for link in uplinks] == [pytest.approx(49 * hosts)] * 8


def test_any_number_of_hosts_or_ranks_may_be_asked_for():
    spec = shipped.machine("dgx-h100")
    assert spec.build(hosts=3).ranks == 24
    assert spec.build(ranks=1024).ranks == 1024
    assert shipped.machine("ring").build(ranks=5).ranks == 5
    assert len(shipped.machine("fully-connected").layout().wires) == 28


@pytest.mark.parametrize(
    ("name", "size", "expected"),
    [
        ("dgx-h100", {"hosts": 0}, "hosts is 0; it must be 1 to 32768"),
        ("dgx-h100", {"hosts": 32_769}, "hosts is 32769; it must be 1 to 32768"),
        ("dgx-h100", {"ranks": 12}, "ranks is 12; it must be a multiple of its 8 GPUs per host"),
        ("dgx-h100", {"hosts": 1, "ranks": 8}, "both given"),
        ("ring", {"hosts": 2}, "without a fabric it must be 1"),
        ("ring", {"ranks": 5000}, "ranks is 5000; it must be 1 to 4096"),
        (
            "fully-connected",
            {"ranks": 2000},
            "would have 1999000 wires; it must have at most 1000000",
        ),
    ],
)
def test_an_impossible_size_is_refused(name, size, expected):
    with pytest.raises(ConfigError, match=expected):
        shipped.machine(name).build(**size)


def test_the_number_of_devices_is_bounded_before_they_are_made():
    spec = spec_of(SMALL.replace("gpus: 2", "gpus: 4096").replace("fully_connected", "switch"))
    spec = spec.model_copy(update={"hosts": spec.hosts.model_copy(update={"count": 4096})})
    with pytest.raises(
        ConfigError, match=f"would have .* devices; it must have at most {DEVICES_MAX}"
    ):
        spec.layout()


def test_a_ring_passes_on_what_is_not_for_its_gpus():
    machine = shipped.machine("ring").build(ranks=5)
    assert path_names(machine, 0, 2) == ["host0/gpu1", "host0/gpu2"]
    assert path_names(machine, 0, 3) == ["host0/gpu4", "host0/gpu3"]


def test_gpus_without_any_link_between_them_are_refused():
    text = changed(lambda data: data["hosts"].pop("gpu_interconnect"))
    with pytest.raises(ConfigError, match="no other GPU can reach host0/gpu0"):
        spec_of(text).build()


def test_load_names_the_shipped_machines_when_there_is_none():
    with pytest.raises(
        ConfigError, match="no file or cluster of GPUs 'dgx'; choose one of aws-p4d, aws-p5"
    ):
        catalogue.load("dgx")


def test_load_takes_a_path(tmp_path):
    file = tmp_path / "mine.yaml"
    file.write_text(SMALL)
    assert catalogue.load(file).name == "small"
    assert catalogue.load(str(file), ranks=1).ranks == 1
    with pytest.raises(ConfigError, match="leave complete_from out"):
        catalogue.load(file, complete_from="dgx-h100")


GRAPH = """\
form: graph
name: pair
description: two GPUs behind an adapter
source: chosen
count: 2
devices:
  - {name: a, kind: gpu}
  - {name: b, kind: gpu}
  - {name: adapter, kind: nic}
wires:
  - {between: [a, b], link_type: wire, parallel: 3}
  - {between: [a, adapter], link_type: wire}
  - {between: [b, adapter], link_type: wire}
fabric: {shape: rails, link_type: wire}
""" + SMALL[SMALL.index("link_types:") :]


def test_a_graph_is_repeated_per_host():
    machine = spec_of(GRAPH).build()
    assert machine.ranks == 4
    assert machine.links[0].rate_gb_per_s == pytest.approx(30)
    assert path_names(machine, 0, 1) == ["host0/b"]
    assert path_names(machine, 0, 3) == ["host0/adapter", "leaf0", "host1/adapter", "host1/b"]
    assert spec_of(GRAPH).build(ranks=6).ranks == 6


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("name: b,", "name: a,", "small.yaml:8: devices[1].name: is 'a', which is already in use"),
        ("[a, b]", "[a, c]", "wires[0].between: names 'c', which is not a device"),
        ("[a, b]", "[a, a]", "wires[0].between: must name two different devices"),
        (
            "link_type: wire, p",
            "link_type: rope, p",
            "wires[0].link_type: is 'rope'; link_types has",
        ),
        ("parallel: 3", "parallel: 0", "wires[0].parallel: is 0; it must be greater than 0"),
        ("kind: nic", "kind: cpu", "fabric: joins adapters"),
        ("fabric: {shape: rails, link_type: wire}\n", "", "count: is 2; without a fabric"),
    ],
)
def test_a_wrong_graph_is_refused(old, new, expected):
    assert old in GRAPH
    assert expected in refusal(spec_of, GRAPH.replace(old, new, 1))
