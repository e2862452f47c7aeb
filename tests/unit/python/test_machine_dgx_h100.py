# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""One step of dgx-h100, summed up by hand, against the figures that others published.

A step is send overhead, the links' latencies, receive overhead; with a fence the way is gone three
times: payload, acknowledgement, flag. Between hosts, proxies may add to it. The spec's values come
from ib_write_lat and from fits to nccl-tests.
"""

import pytest

from inside.machines import shipped

TOLERANCE = 0.05  # of the nearer end of the published range


def path_ns(spec, *link_types):
    return sum(spec.link_types[name].latency_ns.value for name in link_types)


NVLINK = ("nvlink", "nvlink")
NETWORK = ("pcie", "infiniband", "infiniband", "pcie")


def step_ns(spec, protocol, path):
    cost = getattr(spec.gpu_cost, protocol)
    trips = 3 if cost.fences else 1
    ends = cost.send_overhead_ns.value + cost.receive_overhead_ns.value
    proxies = cost.adapter_overhead_ns.value if path == NETWORK and cost.adapter_overhead_ns else 0
    return ends + trips * path_ns(spec, *path) + proxies


@pytest.mark.parametrize(
    ("protocol", "path", "published_ns"),
    [
        # 512 B on 8 GPUs (NCCL 2.29.2): all-reduce takes 5.35 us more than reduce-scatter, for 7
        # steps more.
        ("ll", NVLINK, (764, 764)),
        # NCCL src/graph/tuning.cc, the steps of tree and ring.
        ("simple", NVLINK, (3400, 4000)),
        ("simple", NETWORK, (14000, 14000)),
    ],
)
def test_a_step_takes_what_nccl_takes_it_to(protocol, path, published_ns):
    step = step_ns(shipped.machine("dgx-h100"), protocol, path)
    least, most = published_ns
    assert least * (1 - TOLERANCE) <= step <= most * (1 + TOLERANCE)


def test_a_ring_in_ll128_inside_a_host_takes_what_was_measured():
    """6 GPUs and 24 channels: 3 MiB in 47 us, 4 MiB in 53 us (vllm#24111)."""
    spec = shipped.machine("dgx-h100")
    step = step_ns(spec, "ll128", NVLINK)
    start_ns = spec.gpu_cost.launch_ns.value + spec.gpu_cost.ll128.start_overhead_ns.value
    for size_bytes, measured_us in ((3 << 20, 47), (4 << 20, 53)):
        bytes_ns = size_bytes / 24 / 6 / spec.gpu_cost.ll128.block_rate_gb_per_s.value
        total_us = (start_ns + 10 * (step + bytes_ns)) / 1000
        assert total_us == pytest.approx(measured_us, rel=0.1)


@pytest.mark.parametrize(
    ("path", "published_ns"),
    [
        # ib_write_lat between two nodes with NDR: loopback, one rail, across rails.
        (("pcie", "pcie"), (1100, 1340)),
        (NETWORK, (1660, 2000)),
        (("pcie", "infiniband", *["infiniband_spine"] * 2, "infiniband", "pcie"), (2250, 2700)),
    ],
)
def test_paths_without_their_proxies_take_what_ib_write_lat_shows(path, published_ns):
    proxies_ns = 2 * 1000
    least, most = published_ns
    assert least <= path_ns(shipped.machine("dgx-h100"), *path) - proxies_ns <= most


def test_a_small_all_reduce_of_two_hosts_takes_what_was_measured():
    """A tree in LL: down and up a chain of 8 GPUs and once across, 24.7 to 25.3 us measured."""
    spec = shipped.machine("dgx-h100")
    chain = 7 * step_ns(spec, "ll", NVLINK)
    across = step_ns(spec, "ll", NETWORK)
    total_ns = spec.gpu_cost.launch_ns.value + 2 * (chain + across)
    assert total_ns == pytest.approx(25_000, rel=0.02)


def test_rings_reach_the_measured_bandwidths():
    """392 GB/s over 8 adapters and 370 GB/s over NVLink (nccl-tests#309, nccl#1455)."""
    links = shipped.machine("dgx-h100").link_types
    assert 8 * links["infiniband"].rate_gb_per_s.value == pytest.approx(392, rel=0.01)
    assert links["nvlink"].rate_gb_per_s.value == pytest.approx(368, rel=0.02)
    assert links["pcie"].rate_gb_per_s.value > links["infiniband"].rate_gb_per_s.value
