# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""What NCCL's search finds on machines: path classes, channels, rings, trees."""

import pytest

from conftest import refusal, shared_data
from inside.machines import catalogue, parse_machine_spec, parse_yaml
from inside.nccl import (
    Assumptions,
    Channel,
    Environment,
    Graph,
    Path,
    Pattern,
    check_gpus,
    connect,
    facts_of,
    find_graph,
    graphs_text,
    parse_graphs,
    rccl,
    topology_of,
)

MACHINE = """\
form: template
name: {name}
description: a test
hosts:
  count: {hosts}
  gpus: {gpus}
  source: a test
  gpu_interconnect: {interconnect}
  nic_link_type: pcie
  nics: {nics}
{fabric}
link_types:
  nvlink: {{kind: nvlink, rate_gb_per_s: {{value: {rate}, source: t}}, \
latency_ns: {{value: 1, source: t}}, message_overhead_ns: {{value: 0, source: t}}}}
  pcie: {{kind: pcie, rate_gb_per_s: {{value: 63.0, source: t}}, \
latency_ns: {{value: 1, source: t}}, message_overhead_ns: {{value: 0, source: t}}}}
  ib: {{kind: network, rate_gb_per_s: {{value: 49, source: t}}, \
latency_ns: {{value: 1, source: t}}, message_overhead_ns: {{value: 0, source: t}}}}
"""
SWITCH = "{shape: switch, link_type: nvlink}"
MESH = "{shape: fully_connected, link_type: nvlink}"
FABRIC = "fabric: {shape: rails, link_type: ib}"


def cost_block():
    """The GPU costs of a shipped machine, as a block of YAML."""
    import yaml

    cost = catalogue.load("dgx-h100").model_dump(mode="json")["gpu_cost"]
    return yaml.safe_dump({"gpu_cost": cost})


COST = cost_block()


def machine(*, hosts=1, gpus=8, interconnect=SWITCH, nics=None, rate=370, name="h100-test"):
    nics = [[gpu] for gpu in range(gpus)] if nics is None else nics
    text = MACHINE.format(
        name=name, hosts=hosts, gpus=gpus, interconnect=interconnect, rate=rate,
        nics="[" + ", ".join(f"{{gpus: {nic}}}" for nic in nics) + "]",
        fabric=FABRIC if hosts > 1 else "",
    )  # fmt: skip
    return parse_machine_spec(parse_yaml(text + COST, "test.yaml"), "test.yaml")


@pytest.fixture(scope="module")
def two_hosts():
    return facts_of(catalogue.load("dgx-h100", hosts=2))


# --- paths ----------------------------------------------------------------------------------------


def test_path_classes_of_a_host_with_a_switch_and_an_adapter_per_gpu():
    found = topology_of(machine(hosts=2), 8, "intel")
    gpu = found.gpus[0]
    assert [gpu.way(other).path for other in found.gpus] == [Path.LOC, *[Path.NVL] * 7]
    # The way out to a far adapter goes through the GPU beside it; the way in does not.
    assert [gpu.way(net).path for net in found.nets] == [Path.PIX, *[Path.PXN] * 7]
    assert [found.nets[1].way(one).path for one in found.gpus[:3]] == [
        Path.PHB, Path.PIX, Path.PHB,
    ]  # fmt: skip
    assert found.nets[7].way(gpu).path == Path.SYS  # the other socket
    assert gpu.way(found.nets[0]).rate_gb_per_s == 48.0  # PCIe 5.0 by NCCL's table
    assert found.net_left == [50.0] * 8 and found.nearest_gpu == list(range(8))


def test_gpus_without_nvlink_meet_in_the_memory_of_a_cpu():
    spec = machine(gpus=4, interconnect="null", nics=[[0, 1], [2, 3]])
    found = topology_of(spec, 4, "intel")
    paths = [found.gpus[0].way(other).path for other in found.gpus]
    assert paths == [Path.LOC, Path.PIX, Path.PHB, Path.PHB]


def test_nvlink_through_another_gpu_is_farther():
    pairs = "{shape: mesh, link_type: nvlink, pairs: [[0, 1], [1, 2], [2, 3]]}"
    found = topology_of(machine(gpus=4, interconnect=pairs, nics=[]), 4, "intel")
    assert [found.gpus[0].way(other).path for other in found.gpus[1:3]] == [Path.NVL, Path.NVB]
    assert found.gpus[0].way(found.gpus[3]).path >= Path.PIX  # one GPU on the way at most


# --- channels -------------------------------------------------------------------------------------


def test_one_host_of_h100_has_24_channels_and_switches_for_all_gpus():
    found = facts_of(catalogue.load("dgx-h100", hosts=1)).communicator
    ring, nvls = found.graphs["ring"], found.graphs["nvls"]
    assert (ring.channel_count, ring.intra_gb_per_s, ring.intra_path) == (12, 30.0, Path.NVL)
    assert (nvls.channel_count, nvls.intra_gb_per_s) == (8, 40.0)
    assert (found.channels, found.nvls_channels, found.nodes) == (24, 16, 1)


def test_two_hosts_of_h100_have_16_channels_one_ring_per_adapter(two_hosts):
    found = two_hosts.communicator
    ring = found.graphs["ring"]
    assert (ring.channel_count, ring.inter_gb_per_s, ring.cross_nic) == (8, 48.0, 2)
    assert (ring.intra_path, ring.inter_path) == (Path.NVL, Path.PIX)
    assert sorted(net for channel in ring.channels for net in channel.nets[:1]) == list(range(8))
    assert (found.channels, found.nvls_channels) == (16, 16)
    assert connect.heads(found.graphs["nvls"]) == list(range(8))


def test_rings_are_those_of_nccls_logs_and_stay_on_rails(two_hosts):
    graph = two_hosts.communicator.graphs["ring"]
    first = connect.rings(graph, 2, 16)
    assert first[0] == [0, 7, 6, 5, 4, 3, 2, 1, 9, 10, 11, 12, 13, 14, 15, 8]
    assert first[8:] == first[:8]
    for nodes in (2, 4, 6):
        for ring in connect.rings(graph, nodes, 8):
            assert sorted(ring) == list(range(8 * nodes))
            hops = zip(ring, ring[1:] + ring[:1], strict=True)
            crossings = [(one % 8, other % 8) for one, other in hops if one // 8 != other // 8]
            assert len(crossings) == nodes and all(one == other for one, other in crossings)


def test_a_search_leaves_the_links_as_they_were():
    found = topology_of(machine(hosts=2, gpus=4), 4, "intel")
    links = [link for node in (*found.gpus, *found.switches) for link in node.links]
    for pattern in (Pattern.RING, Pattern.BALANCED_TREE, Pattern.NVLS):
        assert find_graph(found, pattern, "hopper", (1, 32)) is not None
        assert all(link.left_mb_per_s == pytest.approx(1e3 * link.rate_gb_per_s) for link in links)
        assert found.net_left == [50.0] * 4


def test_channels_take_no_more_than_the_links_have():
    for hosts, gpus in ((1, 2), (1, 4), (2, 2), (2, 4)):
        spec = machine(hosts=hosts, gpus=gpus)
        ring = facts_of(spec).communicator.graphs["ring"]
        assert all(sorted(one.gpus) == list(range(gpus)) for one in ring.channels)
        hops = gpus if hosts == 1 else gpus - 1
        used = ring.channel_count * ring.intra_gb_per_s * hops
        assert 0 < used <= gpus * 370 + 0.01
        if hosts > 1:
            assert ring.channel_count * ring.inter_gb_per_s <= 50.0 * gpus


def test_without_crossing_adapters_rings_come_back_to_theirs():
    spec = machine(hosts=2, gpus=4)
    found = facts_of(spec, environment=Environment.of({"NCCL_CROSS_NIC": "0"})).communicator
    assert all(len(set(one.nets)) == 1 for one in found.graphs["ring"].channels)


def test_the_number_of_channels_is_the_users_to_bound():
    spec = machine(hosts=2, gpus=4)
    for variables, channels in (
        ({"NCCL_MAX_NCHANNELS": "4"}, 4),
        ({"NCCL_MIN_CTAS": "32"}, 32),
        ({"NCCL_MIN_NCHANNELS": "24", "NCCL_MAX_CTAS": "8"}, 24),  # the most, then the least
    ):
        environment = Environment.of(variables)
        assert facts_of(spec, environment=environment).communicator.channels == channels


def test_generations_are_known_by_name_and_by_nvlink():
    assert facts_of(machine(gpus=2, name="a100")).communicator.generation == "ampere"
    assert facts_of(machine(gpus=2, name="b200", rate=722)).communicator.generation == "blackwell"
    unnamed = facts_of(machine(gpus=2, name="mine", rate=240))
    assert unnamed.communicator.generation == "ampere" and "240 GB/s" in unnamed.notes[0]
    assert "nvls" not in unnamed.communicator.graphs
    said = facts_of(machine(gpus=2, name="mine"), assumptions=Assumptions.of("volta", "amd"))
    assert (said.communicator.generation, said.communicator.cpu) == ("volta", "amd")
    assert "choose one of volta" in refusal(Assumptions.of, "kepler", None)


def test_machines_that_nccl_cannot_take_are_refused():
    assert "one rank" in refusal(facts_of, machine(gpus=1, interconnect="null", nics=[]))
    assert "at most 72" in refusal(facts_of, machine(gpus=100, nics=[]))


# --- trees ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("nodes", [2, 3, 4, 5, 8, 13, 64, 127])
def test_two_trees_reach_all_nodes_and_no_node_is_inside_both(nodes):
    for number in (0, 1):
        places = [connect.double_binary_tree(nodes, node)[number] for node in range(nodes)]
        roots = [node for node, place in enumerate(places) if place.up == -1]
        assert len(roots) == 1
        for node, place in enumerate(places):
            for child in place.down:
                assert child == -1 or places[child].up == node
            for _ in range(2 * nodes.bit_length()):
                node = node if places[node].up == -1 else places[node].up
            assert node == roots[0]
    inner = [
        [
            tree.down != (-1, -1) and tree.up != -1
            for tree in connect.double_binary_tree(nodes, node)
        ]
        for node in range(nodes)
    ]
    assert not any(all(both) for both in inner)


# --- graph files ----------------------------------------------------------------------------------


def test_graphs_come_back_as_they_went(two_hosts):
    graphs = dict(two_hosts.communicator.graphs)
    assert parse_graphs(graphs_text(graphs), "x.xml") == graphs


def test_a_file_of_azure_is_read_and_written():
    path = shared_data() / "topologies" / "nccl" / "azure_ncv4-graph.xml"
    if not path.exists():
        pytest.skip("needs shared data: topologies/nccl/azure_ncv4-graph.xml")
    graphs = parse_graphs(path.read_text(), path.name)
    assert set(graphs) == {"ring", "tree", "collnet_chain"}
    assert [one.gpus for one in graphs["ring"].channels] == [(0, 1, 2, 3), (0, 3, 2, 1)]
    assert (graphs["tree"].pattern, graphs["tree"].intra_path) == (Pattern.BALANCED_TREE, Path.SYS)
    assert parse_graphs(graphs_text(graphs), "again.xml") == graphs
    check_gpus(graphs, 4, path.name)
    assert "0 to 7" in refusal(check_gpus, graphs, 8, path.name)


def test_a_graph_file_takes_the_place_of_the_search():
    order = Channel((3, 1, 0, 2), (0, 1))
    graph = Graph(Pattern.RING, 1, 24.0, 24.0, Path.NVL, channels=(order,))
    found = facts_of(machine(hosts=2, gpus=4), graphs={"ring": graph}).communicator
    assert found.channels == 2
    assert connect.rings(found.graphs["ring"], 2, 1) == [[3, 1, 0, 2, 7, 5, 4, 6]]
    twice = Graph(Pattern.RING, 1, 24.0, 24.0, Path.NVL, channels=(Channel((0, 0, 1, 2)),))
    assert "0, 0, 1, 2" in refusal(
        facts_of, machine(hosts=2, gpus=4), None, None, None, {"ring": twice}
    )


@pytest.mark.parametrize(
    ("old", "new", "key"),
    [
        ('id="0"', 'id="5"', "5"),
        ('id="0"', 'id="1"', "another <graph>"),
        ('pattern="4"', 'pattern="9"', "pattern"),
        ('nchannels="8"', 'nchannels="7"', "contains 8 channels"),
        ('speedintra="48"', 'speedintra="fast"', "speedintra"),
        ('typeintra="NVL"', 'typeintra="NVX"', "typeintra"),
        ('<gpu dev="7"/>', '<gpu dev="0"/>', "twice"),
        ('<gpu dev="7"/>', '<gpu dev="70000"/>', "dev"),
        ("<graphs", "<graph", "is not valid XML"),
        ('version="1"', 'version="2"', "version"),
    ],
)
def test_a_graph_file_with_a_mistake_is_refused(two_hosts, old, new, key):
    text = graphs_text(two_hosts.communicator.graphs)
    assert old in text
    assert key in refusal(parse_graphs, text.replace(old, new, 1), "x.xml")


# --- RCCL -----------------------------------------------------------------------------------------


def mi300x(hosts=1):
    return machine(hosts=hosts, interconnect=MESH, rate=48, name="mi300x")


def test_rccl_runs_all_pairs_of_msccl_then_rings_on_a_host_of_mi300x():
    found = rccl.facts_of(mi300x()).communicator
    at = {1 << power: rccl.choose(found, "all_reduce", 1 << power) for power in (10, 17, 22, 25)}
    assert [one.name for one in at.values()] == [
        "MSCCL all-pairs/LL", "MSCCL all-pairs/LL", "MSCCL all-pairs/Simple", "Ring/Simple",
    ]  # fmt: skip
    assert at[1 << 25].channels == 56
    off = Environment.of({"RCCL_MSCCL_ENABLE": "0"})
    assert rccl.choose(found, "all_reduce", 1024, off).name == "Ring/LL"
    assert rccl.choose(found, "all_to_all", 1 << 20).channels == 32
    assert "sends and receives" in refusal(rccl.choose, found, "all_to_all", 1 << 28)


def test_rccls_rings_pass_every_gpu_and_use_every_link():
    for hosts in (1, 2):
        ring = rccl.facts_of(mi300x(hosts)).communicator.graphs["ring"]
        used = set()
        for channel in ring.channels:
            assert sorted(channel.gpus) == list(range(8))
            closing = channel.gpus[:1] if hosts == 1 else ()
            used |= set(zip(channel.gpus, (*channel.gpus[1:], *closing), strict=False))
        assert len(used) == 56  # every GPU to every other
    assert len(ring.channels) == 64


def test_rccl_elsewhere_is_not_known_and_says_so():
    assert "not supported" in refusal(rccl.facts_of, catalogue.load("dgx-h100"))
    assert "not supported" in refusal(rccl.facts_of, mi300x(), 4)
