# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""NCCL's cost model and its choice, against what NCCL was seen to do and how long that took."""

import csv
import dataclasses

import pytest

from conftest import refusal
from inside.nccl import (
    Communicator,
    Environment,
    Graph,
    Path,
    Pattern,
    channels_with_work,
    choose,
    cost,
    parse_tuner,
    time_us,
    times_us,
    why_not,
)
from inside.validation import folder

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30


def hgx_h100(nodes, nvls=True, channels=None, rate=None):
    """Nodes of 8 H100 on an NVSwitch, an adapter of 400 Gb/s for each, as NCCL's search has it."""
    count = channels or (12 if nodes == 1 else 8)
    rate = rate or (30.0 if nodes == 1 else 48.0)
    ring = Graph(Pattern.RING, count, rate, rate, Path.NVL)
    tree = Graph(Pattern.BALANCED_TREE, count, rate, rate, Path.NVL)
    graphs = {"ring": ring, "tree": tree}
    if nvls:
        between = 60.0 if nodes == 1 else 48.0
        graphs["nvls"] = Graph(Pattern.NVLS, 8, 40.0, between, Path.NVL, same_channels=False)
    return Communicator(
        ranks=8 * nodes, nodes=nodes, generation="hopper", cpu="intel", graphs=graphs,
        channels=24 if nodes == 1 else 16, nvls_channels=16, has_nvswitch=True,
    )  # fmt: skip


def name_at(communicator, size_bytes, collective="all_reduce", **variables):
    return choose(communicator, collective, size_bytes, Environment.of(variables)).name


# --- the cost model -------------------------------------------------------------------------------


def test_a_small_tree_between_two_nodes_takes_25_us():
    # 6.8 to start, 2 x 7 steps of 0.6 over NVLink, 2 x 1 of 5.0 between nodes (tuning.cc).
    assert time_us(hgx_h100(2), "all_reduce", "tree", "LL", 8) == pytest.approx(25.2, abs=0.01)


@pytest.mark.parametrize(
    ("nodes", "algorithm", "protocol", "latency", "bandwidth"),
    [
        (2, "ring", "LL", 6.6 + 28 * 1.0 + 2 * 2.7, 39.0 * 16 / 30),
        (2, "ring", "Simple", 8.4 + 28 * 3.4 + 2 * 14.0, 384 * 16 / 30),
        (2, "ring", "LL128", 14.0 + 28 * 1.9 + 2 * 4.0, 8 * 36.7 * 16 / 30),
        (2, "tree", "Simple", 8.4 + 14 * 4.0 + 2 * 14.0, 8 * 41.4 * 0.5),
        (2, "nvls_tree", "Simple", 25.0 + 2 * 20.9, 8 * 57.7 * 16 / 30),
        (1, "nvls", "Simple", 25.0, 8 * 40 * 0.85 * 7 / 8 * 2 * 8 / 14),
        (1, "ring", "Simple", 8.4 + 14 * 3.4, 360 * 8 / 14),
        (4, "tree", "LL", 6.8 + 14 * 0.6 + 4 * 5.0, 20.4 * 0.5),
    ],
)
def test_latency_and_bandwidth_are_those_of_tuning_cc(
    nodes, algorithm, protocol, latency, bandwidth
):
    found = cost(hgx_h100(nodes), "all_reduce", algorithm, protocol)
    expected = min(bandwidth, 353.28 * 0.5) if algorithm == "tree" else bandwidth
    assert found.latency_us == pytest.approx(latency, abs=0.01)
    assert found.bandwidth_gb_per_s == pytest.approx(expected, rel=0.01)


def measured(config):
    table = folder() / "gpu_collectives" / "all_reduce_two_h100_servers.csv"
    with table.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(line for line in file if not line.startswith("#")))
    found = {}
    for row in rows:
        if row["config"] == config:
            times = [row[f"time_us_{way}"] for way in ("out_of_place", "in_place")]
            best = min(float(text) for text in times if text)
            found.setdefault(int(row["size_bytes"]), []).append(best)
    return found


@pytest.mark.parametrize(
    ("config", "variables", "low", "high", "error_max"),
    [
        # The table of errors of NCCL's own model that is in docs/nccl.md.
        ("default", {}, 8, KIB, 0.03),
        ("default", {}, 2 * KIB, 64 * KIB, 0.16),
        ("default", {}, 128 * KIB, MIB, 0.19),
        ("default", {}, 64 * MIB, 16 * GIB, 0.09),
        ("NCCL_ALGO=Ring MIN_CTAS=24 QPS=2", {"NCCL_ALGO": "Ring"}, 64 * MIB, 8 * GIB, 0.07),
    ],
)
def test_the_model_is_as_far_from_measured_times_as_is_known(
    config, variables, low, high, error_max
):
    communicator = hgx_h100(2)
    environment = Environment.of(variables)
    errors = [
        abs(choose(communicator, "all_reduce", size, environment).predicted_us / time - 1)
        for size, times in measured(config).items()
        if low <= size <= high
        for time in times
    ]
    assert len(errors) >= 4
    assert sum(errors) / len(errors) < error_max


def test_bandwidth_of_one_node_is_what_users_see():
    # 480 GB/s of bus bandwidth with NVLS, 365 to 370 with rings (nccl-tests#212, #309).
    for variables, low, high in (({}, 465, 485), ({"NCCL_ALGO": "Ring"}, 350, 372)):
        found = choose(hgx_h100(1), "all_reduce", 8 * GIB, Environment.of(variables))
        assert low < 8 * GIB / found.predicted_us / 1e3 * 14 / 8 < high


def test_hosts_with_cpus_of_amd_are_slower_to_post_and_to_look_at_flags():
    intel = hgx_h100(2)
    amd = dataclasses.replace(intel, cpu="amd")
    for protocol in ("LL", "Simple"):
        ours, theirs = (cost(one, "all_reduce", "ring", protocol) for one in (intel, amd))
        assert theirs.latency_us > ours.latency_us
    assert cost(amd, "all_reduce", "ring", "LL").bandwidth_gb_per_s == pytest.approx(22.5 * 16 / 30)


@pytest.mark.parametrize("collective", ["broadcast", "reduce", "all_gather", "reduce_scatter"])
@pytest.mark.parametrize("generation", ["volta", "ampere", "hopper", "blackwell"])
@pytest.mark.parametrize("nodes", [1, 2, 3, 64])
def test_every_candidate_has_a_time_that_grows_with_size(collective, generation, nodes):
    communicator = dataclasses.replace(hgx_h100(nodes), generation=generation)
    for size in (8, KIB, MIB, GIB):
        times, larger = (times_us(communicator, collective, one) for one in (size, 4 * size))
        assert ("ring", "LL") in times and all(time > 0 for time in times.values())
        assert all(larger[candidate] >= time for candidate, time in times.items())
        for algorithm, protocol in times:
            assert why_not(communicator, collective, algorithm, protocol) is None


def test_one_gpu_per_node_has_pat():
    lonely = dataclasses.replace(hgx_h100(4, nvls=False), ranks=4)
    assert cost(lonely, "all_gather", "pat", "Simple") is not None
    assert "one GPU per node" in why_not(hgx_h100(4), "all_gather", "pat", "Simple")


# --- the choice -----------------------------------------------------------------------------------


def test_one_node_runs_rings_under_ll_up_to_1_mib_and_the_switch_from_2_mib():
    # What users of NCCL see (nccl-tests#309).
    assert {name_at(hgx_h100(1), 1 << power) for power in range(3, 21)} == {"Ring/LL"}
    assert {name_at(hgx_h100(1), 1 << power) for power in range(21, 34)} == {"NVLS/Simple"}


def test_two_nodes_run_trees_then_trees_of_switches():
    names = [name_at(hgx_h100(2), 1 << power) for power in range(3, 34)]
    assert list(dict.fromkeys(names)) == ["Tree/LL", "Tree/LL128", "NVLSTree/Simple"]


def test_small_messages_get_few_channels_and_threads():
    one = choose(hgx_h100(1), "all_reduce", 64)
    assert (one.channels, one.threads) == (1, 96)  # three warps at least
    ll = choose(hgx_h100(1), "all_reduce", 128 * KIB)
    # 512 threads x 8 bytes x 8 ranks = 32 KiB for each channel.
    assert (ll.protocol, ll.channels, ll.threads) == ("LL", 4, 512)
    assert choose(hgx_h100(1), "all_reduce", GIB).channels == 16


@pytest.mark.parametrize(
    ("size_bytes", "most", "channels"),
    [(8, 16, 1), (16 * KIB, 16, 1), (17 * KIB, 16, 2), (64 * KIB, 16, 4), (MIB, 16, 16)],
)
def test_a_channel_with_work_carries_32_kib_of_traffic(size_bytes, most, channels):
    found = channels_with_work(hgx_h100(2), "all_reduce", "Simple", size_bytes, most)
    assert found == channels


def test_no_size_runs_without_channels_or_with_more_than_there_are():
    for nodes in (1, 2, 16):
        for collective in ("all_reduce", "all_gather", "broadcast"):
            for size in [*(1 << power for power in range(34)), 3, 1000, 12_345_678]:
                found = choose(hgx_h100(nodes), collective, size)
                assert 1 <= found.channels <= found.channels_max <= 24
                assert 96 <= found.threads <= 640 and found.chunk_bytes > 0
                assert found.predicted_us <= min(one.time_us for one in found.alternatives)


def test_the_user_forces_algorithms_and_protocols():
    assert name_at(hgx_h100(1), GIB, NCCL_ALGO="Ring") == "Ring/Simple"
    assert name_at(hgx_h100(1), GIB, NCCL_ALGO="ring", NCCL_PROTO="ll") == "Ring/LL"
    assert name_at(hgx_h100(1), GIB, NCCL_NVLS_ENABLE="0") == "Ring/Simple"
    assert name_at(hgx_h100(1), GIB, NCCL_ALGO="^NVLS") == "Ring/Simple"
    assert name_at(hgx_h100(2), 8, NCCL_ALGO="ring;allreduce:tree") == "Tree/LL"
    assert name_at(hgx_h100(2), 8, NCCL_ALGO="allgather:ring") == "Tree/LL"


def test_why_a_candidate_is_left_out_is_said():
    found = choose(hgx_h100(1), "all_reduce", MIB, Environment.of({"NCCL_PROTO": "^LL128"}))
    reasons = {(one.algorithm, one.protocol): one.reason for one in found.refused}
    assert reasons["ring", "LL128"] == "NCCL_PROTO=^LL128"
    assert "there is one" in reasons["nvls_tree", "Simple"]
    assert "network does not reduce" in reasons["collnet_chain", "LL"]
    assert len(found.refused) + len(found.alternatives) + 1 == 21


def test_ll128_is_for_nvlink_unless_the_user_asks_for_it():
    graph = Graph(Pattern.RING, 4, 12.0, 12.0, Path.PHB, Path.PHB)
    slow = dataclasses.replace(
        hgx_h100(1, nvls=False), graphs={"ring": graph, "tree": graph}, has_nvswitch=False
    )
    protocols = {one.protocol for one in choose(slow, "all_reduce", MIB).alternatives}
    assert "LL128" not in protocols
    assert name_at(slow, MIB, NCCL_PROTO="LL128").endswith("/LL128")


def test_what_cannot_run_is_refused_in_a_sentence():
    choosing = (choose, hgx_h100(1))
    assert "does not choose an algorithm for all_to_all" in refusal(*choosing, "all_to_all", MIB)
    assert "at least 1" in refusal(*choosing, "all_reduce", 0)
    forced = Environment.of({"NCCL_ALGO": "NVLSTree"})
    sentence = refusal(*choosing, "all_reduce", MIB, forced)
    assert "NCCL_ALGO=NVLSTree" in sentence and "leave out" in sentence


@pytest.mark.parametrize(
    ("variables", "key"),
    [
        ({"NCCL_ALGO": "Rings"}, "Rings"),
        ({"NCCL_ALGO": "ring;tree"}, "tree"),
        ({"NCCL_ALGO": "gather:ring"}, "gather"),
        ({"NCCL_PROTO": ""}, "NCCL_PROTO"),
        ({"NCCL_MIN_CTAS": "0"}, "1 to 64"),
        ({"NCCL_MAX_NCHANNELS": "many"}, "many"),
        ({"NCCL_NVLS_ENABLE": "-1"}, "NCCL_NVLS_ENABLE"),
        ({"NCCL_DEBUG": "INFO"}, "NCCL_ALGO"),
    ],
)
def test_a_variable_that_nccl_would_not_read_is_refused(variables, key):
    assert key in refusal(Environment.of, variables)


# --- the tuner plugin -----------------------------------------------------------------------------

TUNER = """\
# a comment
allreduce,0,65536,tree,ll,4,2,16
allreduce,65537,1048576,ring,ll128,8,-1,-1,-1,0
allreduce,1048577,2097152,nvls,simple,8,-1,-1
"""


def test_a_tuner_file_overrules_the_choice_and_its_channels():
    tuner = parse_tuner(TUNER, "x.csv")
    found = choose(hgx_h100(2), "all_reduce", MIB, None, tuner)
    assert (found.name, found.channels, found.is_tuned) == ("Ring/LL128", 8, True)
    assert choose(hgx_h100(4), "all_reduce", 64, None, tuner).name == "Tree/LL"  # of NCCL itself
    assert len(found.alternatives) == len(choose(hgx_h100(2), "all_reduce", MIB).alternatives)


def test_the_example_plugin_gives_one_channel_to_what_no_line_fits():
    tuner = parse_tuner(TUNER, "x.csv")
    for size in (2 * MIB, GIB):  # NVLS does not run on two nodes, and no line has 1 GiB
        found = choose(hgx_h100(2), "all_reduce", size, None, tuner)
        assert (found.name, found.channels) == (name_at(hgx_h100(2), size), 1)


def test_a_tuner_file_comes_back_as_it_went():
    lines = parse_tuner(TUNER, "x.csv")
    again = parse_tuner("\n".join(line.text() for line in lines), "y.csv")
    assert again == lines and len(lines) == 3


@pytest.mark.parametrize(
    ("line", "key"),
    [
        ("allreduce,0,1,tree,ll,1,2", "7 fields"),
        ("allreduce,0,1,trees,ll,1,2,16", "algorithm"),
        ("alltoall,0,1,tree,ll,1,2,16", "collective_type"),
        ("allreduce,0,1,tree,LL,1,2,16", "protocol"),
        ("allreduce,9,1,tree,ll,1,2,16", "above max_bytes"),
        ("allreduce,0,1,tree,ll,0,2,16", "channels is 0"),
        ("allreduce,0,1,tree,ll,65,2,16", "-1 to 64"),
        ("allreduce,-1,1,tree,ll,1,2,16", "min_bytes"),
        ("# nothing", "no line"),
    ],
)
def test_a_line_that_the_plugin_would_misread_is_refused(line, key):
    assert key in refusal(parse_tuner, line, "x.csv")
