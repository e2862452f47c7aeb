# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Schedules written for a machine: on small irregular ones, where answers can be worked out."""

import json
from itertools import pairwise

import numpy as np
import pytest
import yaml

import towpath
from conftest import refusal, towpath_command
from inside import _core
from inside.machines import shipped
from inside.schedules import algorithms_within
from inside.tuning import bound_of, network_of, pack_rings, pack_trees

pytestmark = pytest.mark.slow  # seconds of simulation

SIZE = "16M"


def _quantity(value):
    return {"value": value, "source": "chosen"}


def _costs():
    machine = yaml.safe_load((shipped.folder() / "fully-connected.yaml").read_text("utf-8"))
    return machine["gpu_cost"]


def graph(folder, name, gpus, wires):
    """A machine file: GPUs that pass on traffic, and wires (a, b, rate in GB/s)."""
    rates = {rate for _, _, rate in wires}
    text = yaml.safe_dump({
        "form": "graph", "name": name, "description": "for a test", "source": "chosen",
        "gpu_cost": _costs(),
        "link_types": {
            f"wire{rate}": {
                "kind": "nvlink", "rate_gb_per_s": _quantity(rate),
                "latency_ns": _quantity(500), "message_overhead_ns": _quantity(0),
            }
            for rate in rates
        },
        "devices": [{"name": f"gpu{n}", "kind": "gpu", "forwards": True} for n in range(gpus)],
        "wires": [
            {"between": [f"gpu{a}", f"gpu{b}"], "link_type": f"wire{rate}"} for a, b, rate in wires
        ],
    })  # fmt: skip
    path = folder / f"{name}.yaml"
    path.write_text(text, encoding="utf-8")
    return str(path)


def every_pair(gpus, rate):
    return [(a, b, rate) for a in range(gpus) for b in range(a)]


def missing_link(folder):
    wires = [wire for wire in every_pair(6, 50) if wire[:2] != (3, 2)]
    return graph(folder, "missing-link", 6, wires)


def mixed_speeds(folder):
    wires = [(a, b, 25 if b == 0 else 75) for a, b, _ in every_pair(6, 0)]
    return graph(folder, "mixed-speeds", 6, wires)


def seven_of_eight(folder):
    """The seven GPUs that are left of a hybrid cube mesh."""
    cube = {
        (0, 1): 1, (0, 2): 1, (0, 3): 2, (0, 4): 2, (1, 2): 2, (1, 3): 1, (1, 5): 2, (2, 3): 2,
        (2, 6): 1, (4, 5): 1, (4, 6): 1, (5, 6): 2,
    }  # fmt: skip
    return graph(folder, "seven-of-eight", 7, [(a, b, 25 * n) for (a, b), n in cube.items()])


def regular(folder):
    return graph(folder, "regular", 4, every_pair(4, 50))


def network(file):
    machine = towpath.load(file)
    schedule = _core.make_schedule("ring_all_reduce", ranks=machine.ranks)
    place = machine._place_for(schedule, None)
    return network_of(place.machine, place.places)


# --- the network ----------------------------------------------------------------------------------


def test_what_flows_out_of_a_group_are_its_links(tmp_path):
    found = network(mixed_speeds(tmp_path))
    assert found.out_gb_per_s({0}) == pytest.approx(5 * 25)
    assert found.in_gb_per_s({0}) == pytest.approx(5 * 25)
    assert found.out_gb_per_s({1}) == pytest.approx(25 + 4 * 75)
    assert found.out_gb_per_s({0, 1}) == pytest.approx(4 * 25 + 4 * 75)


def test_a_flow_is_held_up_by_what_is_behind_the_first_link(tmp_path):
    # 0 and 1 are joined by 100, but 1 leads on with 10 only.
    found = network(graph(tmp_path, "line", 3, [(0, 1, 100), (1, 2, 10)]))
    assert found.out_gb_per_s({0, 1}) == pytest.approx(10)
    assert found.in_gb_per_s({0, 1}) == pytest.approx(10)


# --- the bound ------------------------------------------------------------------------------------


def test_the_bound_of_equal_gpus_is_that_of_a_perfect_ring(tmp_path):
    # Every rank sends 2 S 3/4 at 150 GB/s.
    bound = bound_of(network(regular(tmp_path)), "all_reduce", 150_000_000)
    assert bound.bandwidth_us == pytest.approx(1500)
    assert bound.reason == "600 GB/s lead out of the 4 ranks together"
    assert bound.latency_us == pytest.approx(0.5)


def test_the_bound_of_a_slow_gpu_is_what_must_go_in_and_out_of_it(tmp_path):
    bound = bound_of(network(mixed_speeds(tmp_path)), "all_reduce", 125_000_000)
    assert bound.bandwidth_us == pytest.approx(1000)
    assert bound.reason == "125 GB/s join rank 0 to the other ranks"


def test_the_bound_of_a_line_is_its_slowest_link(tmp_path):
    line = network(graph(tmp_path, "line", 4, [(0, 1, 100), (1, 2, 10), (2, 3, 100)]))
    bound = bound_of(line, "all_reduce", 10_000_000)
    assert bound.bandwidth_us == pytest.approx(1000)
    assert bound.reason == "10 GB/s join ranks 0, 1 to the other ranks"
    assert bound.latency_us == pytest.approx(1.5)
    assert bound_of(line, "all_gather", 10_000_000).bandwidth_us == pytest.approx(500)
    assert bound_of(line, "reduce_scatter", 10_000_000).bandwidth_us == pytest.approx(500)


@pytest.mark.parametrize("collective", ["all_reduce", "all_gather", "reduce_scatter"])
@pytest.mark.parametrize("make", [missing_link, mixed_speeds, seven_of_eight, regular])
def test_no_listed_algorithm_is_faster_than_the_bound(make, collective, tmp_path):
    file = make(tmp_path)
    machine = towpath.load(file)
    for size in (1 << 10, 1 << 20, 16 << 20):
        bound = bound_of(network(file), collective, size)
        for algorithm in algorithms_within(collective, (_core.Reach.fifo,)):
            if algorithm.startswith("grid"):
                continue
            result = machine.run(
                collective, size_bytes=size, algorithm=algorithm, protocol="Simple",
                channels=8, data=False,
            )  # fmt: skip
            assert result.rows[0].time_us >= bound.time_us * 0.999, algorithm


# --- trees and rings ------------------------------------------------------------------------------


def loads_of(found, hops, share):
    """Seconds per byte of the array that each link is busy, told link by link."""
    loads = np.zeros(len(found.links))
    for a, b in hops:
        for link in found.routes[a][b]:
            loads[link] += share
    return loads / found.rates_gb_per_s


@pytest.mark.parametrize("make", [missing_link, mixed_speeds, seven_of_eight])
def test_trees_reach_every_rank_and_load_the_links_as_they_say(make, tmp_path):
    found = network(make(tmp_path))
    packing = pack_trees(found, 10, 1, host_trees=False)
    assert len(packing.patterns) == 10
    hops = []
    for parents in packing.patterns:
        assert sorted(parents).count(-1) == 1
        for rank in range(found.ranks):
            steps = 0
            while parents[rank] != -1:
                rank, steps = parents[rank], steps + 1
                assert steps < found.ranks
        hops += [(rank, parent) for rank, parent in enumerate(parents) if parent != -1]
    both_ways = hops + [(b, a) for a, b in hops]
    busiest = loads_of(found, both_ways, 1 / 10).max()
    assert packing.time_ns_per_byte == pytest.approx(busiest)


@pytest.mark.parametrize("make", [missing_link, mixed_speeds, seven_of_eight])
def test_rings_visit_every_rank_and_load_the_links_as_they_say(make, tmp_path):
    found = network(make(tmp_path))
    packing = pack_rings(found, 10, 1)
    hops = []
    for ring in packing.patterns:
        assert sorted(ring) == list(range(found.ranks))
        hops += [*pairwise(ring), (ring[-1], ring[0])]
    share = 2 * (found.ranks - 1) / found.ranks / 10
    assert packing.time_ns_per_byte == pytest.approx(loads_of(found, hops, share).max())


def test_a_slow_gpu_is_a_leaf_so_that_trees_come_near_the_bound(tmp_path):
    found = network(mixed_speeds(tmp_path))
    bound = bound_of(found, "all_reduce", 1_000)
    packing = pack_trees(found, 10, 1, host_trees=False)
    assert packing.time_ns_per_byte <= 1.05 * bound.bandwidth_us
    assert all(parents.count(0) == 0 for parents in packing.patterns)
    # A ring goes through it.
    assert pack_rings(found, 10, 1).time_ns_per_byte >= 1.5 * bound.bandwidth_us


def test_no_tree_takes_a_link_that_is_missing(tmp_path):
    found = network(missing_link(tmp_path))
    packing = pack_trees(found, 12, 1, host_trees=False)
    hops = {(rank, parent) for tree in packing.patterns for rank, parent in enumerate(tree)}
    assert not hops & {(2, 3), (3, 2)}


def test_trees_of_hosts_enter_each_host_once():
    found = network_of(towpath.load("dgx-h100", hosts=3)._machine, range(24))
    for parents in pack_trees(found, 8, 1, host_trees=True).patterns:
        between = [
            rank for rank, parent in enumerate(parents)
            if parent != -1 and found.hosts[rank] != found.hosts[parent]
        ]  # fmt: skip
        assert len(between) == 2


# --- the whole ------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [missing_link, mixed_speeds, seven_of_eight])
def test_irregular_machines_get_a_faster_schedule_with_the_right_data(make, tmp_path):
    machine = towpath.load(make(tmp_path))
    found = machine.synthesize("all_reduce", size_bytes=SIZE)
    assert not found.is_listed
    assert found.time_us < 0.97 * found.listed_us
    assert found.time_us >= found.bound_us
    assert towpath.verify(found.schedule, size_bytes=SIZE).is_correct
    assert machine.run(found.schedule, size_bytes="1M").wrong == 0
    again = machine.run(found.schedule, size_bytes=SIZE, data=False)
    assert again.rows[0].time_us == found.time_us


@pytest.mark.parametrize("collective", ["all_reduce", "all_gather", "reduce_scatter"])
def test_nothing_is_slower_than_the_listed_algorithms(collective, tmp_path):
    machine = towpath.load(regular(tmp_path))
    found = machine.synthesize(collective, size_bytes="4M")
    listed = machine.run(collective, size_bytes="4M", data=False)
    assert found.time_us <= found.listed_us <= listed.rows[0].time_us
    if found.is_listed:
        assert found.schedule.name in found.made_of
        assert "nothing written for the machine is faster" in found.text()


def test_the_same_seed_gives_the_same_schedule(tmp_path):
    machine = towpath.load(missing_link(tmp_path))
    first, second = (machine.synthesize(size_bytes="8M", seed=3).schedule for _ in range(2))
    assert first == second


def test_algorithm_synthesis_runs_what_is_written(tmp_path):
    machine = towpath.load(mixed_speeds(tmp_path))
    result = machine.run("all_reduce", size_bytes="16M", algorithm="synthesis")
    assert result.wrong == 0
    assert result.row.schedule == "synthesised_tree_all_reduce"
    assert "above the lower bound" in result.row.choice


def test_what_schedules_are_not_written_for_is_refused(tmp_path):
    machine = towpath.load(regular(tmp_path))
    assert "written for all_reduce, all_gather, reduce_scatter" in refusal(
        machine.synthesize, "broadcast"
    )
    assert "seconds is 0" in refusal(machine.synthesize, seconds=0)
    many = towpath.load("dgx-h100", hosts=9)
    assert "72 ranks; schedules are written for at most 64" in refusal(many.synthesize)
    chips = towpath.load("n300")
    sentence = refusal(chips.run, "all_reduce", size_bytes="1K", algorithm="synthesis")
    assert "it supports clusters of GPUs" in sentence


def test_a_result_says_how_far_the_bound_is(tmp_path):
    found = towpath.load(mixed_speeds(tmp_path)).synthesize(size_bytes=SIZE)
    text = found.text()
    assert "GB/s join rank 0 to the other ranks" in text
    assert "verified     right data" in text and "above the lower bound" in text
    found.schedule.save(tmp_path / "written.xml")
    assert towpath.Schedule.load(tmp_path / "written.xml").name == "synthesised_tree_all_reduce"


def test_the_command_says_how_far_the_bound_is(tmp_path):
    line = ("run", "all_reduce", "--machine", mixed_speeds(tmp_path), "--sizes", "16M")
    text = towpath_command(*line, "--algorithm", "synthesis", "--explain").stdout
    assert "synthesised_tree_all_reduce" in text
    assert "above the lower bound" in next(each for each in text.split("\n") if "choice:" in each)
    [written] = json.loads(towpath_command(*line, "--algorithm", "synthesis", "--json").stdout)[
        "results"
    ]
    [listed] = json.loads(towpath_command(*line, "--json").stdout)["results"]
    assert written["rows"][0]["wrong"] == 0
    assert written["rows"][0]["time_us"] < listed["rows"][0]["time_us"]


def test_the_command_refuses_machines_without_gpus():
    line = ("run", "all_reduce", "--machine", "n300", "--algorithm", "synthesis")
    sentence = refusal(towpath_command, *line)
    assert "it supports clusters of GPUs, and 'n300' is a" in sentence
