# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
from collections import Counter
from itertools import combinations

import pytest

from conftest import refusal
from inside.machines import GraphSpec, TemplateSpec, shipped
from towpath import ConfigError

SOURCE = {"source": "a test"}
LEAF_SPINE = {
    "shape": "leaf_spine", "link_type": "infiniband", "switch_link_type": "infiniband_spine",
    "adapters_per_leaf": 8, "spines": 4, "oversubscription": {"value": 2, **SOURCE},
}  # fmt: skip
FAT_TREE = {
    "shape": "fat_tree", "link_type": "infiniband", "switch_link_type": "infiniband_spine",
    "radix": 8,
}  # fmt: skip
DRAGONFLY = {
    "shape": "dragonfly", "link_type": "infiniband", "switch_link_type": "infiniband_spine",
    "global_link_type": "infiniband_spine", "adapters_per_router": 4, "routers_per_group": 4,
    "global_links_per_router": 2,
}  # fmt: skip


def machine(fabric, hosts=8, **fields):
    data = shipped.machine("dgx-h100").model_dump()
    if fabric is not None:
        data["fabric"] = fabric
    data["hosts"]["count"] = hosts
    return TemplateSpec.model_validate(data | fields)


def names(layout, kind="network_switch"):
    return [device.name for device in layout.devices if device.kind == kind]


def wires_between(layout, start, end):
    found = Counter()
    for wire in layout.wires:
        a, b = (layout.devices[device].name for device in (wire.a, wire.b))
        if a.startswith(start) and b.startswith(end):
            found[a, b] += wire.parallel
    return found


@pytest.mark.parametrize("fabric", [None, LEAF_SPINE, FAT_TREE, DRAGONFLY])
@pytest.mark.parametrize("by_rail", [False, True])
@pytest.mark.parametrize("hosts", [1, 2, 3, 8])
def test_every_adapter_has_one_link_and_every_gpu_a_path(fabric, by_rail, hosts):
    spec = machine(None if fabric is None else fabric | {"by_rail": by_rail}, hosts)
    layout = spec.layout()
    ends = Counter(
        layout.devices[wire.a].name for wire in layout.wires
        if layout.devices[wire.a].kind == "nic"
    )  # fmt: skip
    assert ends == Counter(names(layout, "nic"))
    devices, wires = spec.fabric.count(8, hosts)
    assert len(names(layout)) <= devices
    assert sum(layout.devices[w.b].kind == "network_switch" for w in layout.wires) <= wires
    built = spec.build()
    assert all(built.route(0, rank) for rank in range(1, built.ranks))


def test_a_leaf_has_its_uplinks_over_oversubscription_and_spines_get_them_in_turn():
    layout = machine(LEAF_SPINE).layout()
    uplinks = wires_between(layout, "leaf", "spine")
    assert len([name for name in names(layout) if name.startswith("leaf")]) == 8
    assert set(uplinks.values()) == {1} and len(uplinks) == 8 * 4
    fewer = machine(LEAF_SPINE | {"spines": 2}).layout()
    assert set(wires_between(fewer, "leaf", "spine").values()) == {2}


def test_a_leaf_by_rail_holds_adapters_of_one_rail():
    layout = machine(LEAF_SPINE | {"by_rail": True}).layout()
    assert set(wires_between(layout, "host0/nic0", "leaf")) == {("host0/nic0", "leaf0")}
    assert set(wires_between(layout, "host7/nic0", "leaf")) == {("host7/nic0", "leaf0")}
    assert set(wires_between(layout, "host0/nic7", "leaf")) == {("host0/nic7", "leaf7")}


def test_a_fat_tree_has_full_bisection():
    layout = machine(FAT_TREE, hosts=16).layout()
    assert sum(wires_between(layout, "host", "pod").values()) == 128
    for pod in range(8):
        assert sum(wires_between(layout, f"pod{pod}/", f"pod{pod}/").values()) == 16
        assert sum(wires_between(layout, f"pod{pod}/", "core").values()) == 16


def test_every_pair_of_groups_of_a_dragonfly_is_joined_and_no_router_has_too_many_links():
    layout = machine(DRAGONFLY, hosts=16).layout()
    across = wires_between(layout, "group", "group")
    groups = {name.split("/")[0] for name in names(layout)}
    assert len(groups) == 8
    joined = {frozenset(end.split("/")[0] for end in pair) for pair in across}
    assert {frozenset(pair) for pair in combinations(groups, 2)} <= joined
    used = Counter()
    for (a, b), number in across.items():
        if a.split("/")[0] != b.split("/")[0]:
            used[a] += number
            used[b] += number
    assert max(used.values()) <= 2


def test_a_fabric_without_room_is_refused():
    with pytest.raises(ConfigError, match="room for 128 adapters; 136 are there"):
        machine(FAT_TREE, hosts=17).layout()
    with pytest.raises(ConfigError, match="enough for 9 groups, not for 10"):
        machine(DRAGONFLY, hosts=19).layout()


def test_an_adapter_has_a_link_type_of_its_own():
    nics = [{"gpus": [gpu]} for gpu in range(8)]
    nics[3]["fabric_link_type"] = "infiniband_spine"
    data = machine(None, hosts=2).model_dump()
    data["hosts"]["nics"] = nics
    layout = TemplateSpec.model_validate(data).layout()
    types = {
        layout.devices[wire.a].name: wire.link_type
        for wire in layout.wires if layout.devices[wire.a].kind == "nic"
    }  # fmt: skip
    assert types["host1/nic3"] == "infiniband_spine" and types["host1/nic2"] == "infiniband"


# --- what has failed ------------------------------------------------------------------------------


def test_a_host_without_an_adapter_uses_the_one_beside_it():
    healthy, broken = machine(None, 2).layout(), machine(None, 2, without=["host0/NIC3"]).layout()
    assert len(names(broken, "nic")) == len(names(healthy, "nic")) - 1
    assert wires_between(broken, "host0/gpu3", "host0/nic") == {("host0/gpu3", "host0/nic2"): 1}
    assert wires_between(broken, "host1/gpu3", "host1/nic") == {("host1/gpu3", "host1/nic3"): 1}
    assert machine(None, 2, without=["nic3"]).build().ranks == 16


def test_a_gpu_that_is_left_out_is_not_a_rank():
    spec = machine(None, 2, without=["gpu7"])
    assert spec.ranks == spec.build().ranks == 14


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("nic8", "there is no device 'nic8'; names are of the form host0/gpu0, host0/nic0"),
        (
            "host0/gpu1",
            "'host0/gpu1' is a GPU of one host; a GPU can only be removed from all hosts",
        ),
    ],
)
def test_what_cannot_fail_is_refused(name, expected):
    assert expected in refusal(machine(None, 2, without=[name]).layout)


def test_adapters_of_an_imported_host_may_stay_out_of_the_fabric():
    data = {
        "form": "graph", "name": "pair", "description": "two GPUs", "source": "a test",
        "link_types": shipped.machine("dgx-h100").model_dump()["link_types"],
        "gpu_cost": shipped.machine("dgx-h100").gpu_cost.model_dump(),
        "fabric": {"shape": "rails", "link_type": "infiniband"}, "count": 2,
        "devices": [
            {"name": "gpu0", "kind": "gpu"}, {"name": "nic0", "kind": "nic"},
            {"name": "nic1", "kind": "nic", "joins_fabric": False},
        ],
        "wires": [
            {"between": ["gpu0", "nic0"], "link_type": "pcie"},
            {"between": ["gpu0", "nic1"], "link_type": "pcie"},
        ],
    }  # fmt: skip
    layout = GraphSpec.model_validate(data).layout()
    assert names(layout) == ["leaf0"]
    assert set(wires_between(layout, "host1/nic", "leaf")) == {("host1/nic0", "leaf0")}
