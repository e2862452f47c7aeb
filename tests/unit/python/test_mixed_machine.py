# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Machines whose hosts are of different kinds."""

import pytest

import towpath
from conftest import towpath_command
from inside.machines import catalogue

MIXED = """\
form: mixed
name: two-generations
description: DGX H100 and DGX A100 behind one fabric
parts:
  - {machine: dgx-h100, count: 1}
  - {machine: dgx-a100, count: 2}
link_types:
  uplink:
    kind: network
    rate_gb_per_s: {value: 49, source: assumed}
    latency_ns: {value: 300, source: assumed}
    message_overhead_ns: {value: 0, source: assumed}
fabric: {shape: rails, link_type: uplink}
"""


@pytest.fixture
def file(tmp_path):
    def written(text=MIXED):
        path = tmp_path / "mixed.yaml"
        path.write_text(text)
        return path

    return written


def rate_from(machine, rank):
    """The least rate on the way from a rank to the same GPU of the next host."""
    path = machine.route(rank, (rank + 8) % machine.ranks)
    return min(machine.links[number].rate_gb_per_s for number in path)


def test_each_host_has_the_links_and_the_costs_of_its_kind(file):
    spec = catalogue.load(file())
    machine = spec.build()
    assert (spec.host_count, spec.ranks, spec.gpus_per_host) == (3, 24, 8)
    # 0 -> 8 leaves an H100 host and enters an A100 host, whose adapter is slower.
    assert rate_from(machine, 8) == 24.5
    inside = [machine.links[machine.route(rank, rank + 1)[0]].rate_gb_per_s for rank in (0, 8)]
    h100, a100 = (catalogue.load(name) for name in ("dgx-h100", "dgx-a100"))
    expected = [each.link_types["nvlink"].rate_gb_per_s.value for each in (h100, a100)]
    assert inside == expected
    groups = spec.data()["gpu_costs_of_hosts"]
    assert [(group["first_host"], group["hosts"]) for group in groups] == [(1, 2)]
    a100_rate = a100.gpu_cost.ll128.block_rate_gb_per_s.value
    assert groups[0]["gpu_cost"]["ll128"]["block_rate_gb_per_s"] == a100_rate


def test_the_slower_hosts_decide_and_data_are_right(file):
    large = {"size_bytes": "64M", "algorithm": "ring", "data": False}
    mixed = towpath.load(str(file())).run("all_reduce", **large)
    slow = towpath.load("dgx-a100", hosts=3).run("all_reduce", **large)
    fast = towpath.load("dgx-h100", hosts=3).run("all_reduce", **large)
    small = towpath.load(str(file())).run("all_reduce", size_bytes="4K", algorithm="ring")
    assert small.rows[0].out_of_place.wrong == 0
    assert fast.rows[0].time_us < 0.75 * mixed.rows[0].time_us
    assert mixed.rows[0].time_us == pytest.approx(slow.rows[0].time_us, rel=0.02)


def test_a_block_of_each_kind_takes_the_time_of_its_kind(file):
    """One-shot over two ranks of one host is that host's own business."""
    text = MIXED.replace("count: 2", "count: 1")
    spec = catalogue.load(file(text))
    times = {}
    for name, machine, places in (
        ("mixed, first host", spec, (0, 1)),
        ("mixed, second host", spec, (8, 9)),
        ("dgx-h100", catalogue.load("dgx-h100", hosts=1), (0, 1)),
        ("dgx-a100", catalogue.load("dgx-a100", hosts=1), (0, 1)),
    ):
        times[name] = time_of_ring(machine, places)
    assert times["mixed, first host"] == times["dgx-h100"]
    assert times["mixed, second host"] == times["dgx-a100"]
    assert times["dgx-h100"] != times["dgx-a100"]


def time_of_ring(spec, places):
    from inside.collectives import Call, GpuPlace, simulated
    from inside.schedules import ScheduleSource

    source = ScheduleSource(algorithm="ring_all_reduce", ranks=2, protocol="LL128")
    place = GpuPlace(spec.build(), places=places)
    return simulated.invoke(
        place, Call(source.schedule()), 1 << 20, in_place=False, with_data=False
    ).time_us


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("dgx-a100", "dgx-z", "parts[1].machine: is 'dgx-z'; choose one of"),
        ("dgx-a100", "mixed.yaml", "parts[1].machine: is 'mixed.yaml'"),
        ("dgx-a100", "gb200-nvl72", "have 8, 72 GPUs per host"),
        ("count: 2", "count: 0", "parts[1].count"),
        ("fabric: {shape: rails, link_type: uplink}\n", "", "fabric: is missing"),
        ("link_type: uplink}", "link_type: rope}", "is 'rope'; choose one of"),
        ("parts:", "pieces:", "parts"),
    ],
)
def test_mistakes_get_a_sentence(file, old, new, problem):
    with pytest.raises(towpath.ConfigError) as caught:
        catalogue.load(file(MIXED.replace(old, new)))
    assert problem in str(caught.value) and "\n" not in str(caught.value)


def test_what_has_no_meaning_for_several_kinds_is_refused(file):
    line = ("all_reduce", "--machine", str(file()), "--sizes", "1K")
    for command, option, problem in (
        ("run", ("--hosts", "2"), "it has 3, 1 of dgx-h100 and 2 of dgx-a100"),
        ("run", ("--set", "gpu_cost.launch_ns=1"), "change the file of a part"),
        ("expect", ("--as", "nccl"), "hosts of different kinds"),
    ):
        with pytest.raises(towpath.ConfigError) as caught:
            towpath_command(command, *line, *option)
        assert problem in str(caught.value)


def test_the_description_shows_each_kind(file):
    text = towpath_command("show", str(file())).stdout
    assert "GPU cost in hosts of dgx-h100" in text and "GPU cost in hosts of dgx-a100" in text
    assert "dgx-a100/nvlink" in text
