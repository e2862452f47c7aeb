# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""The shipped machines of GPUs, and blocks of a machine file that are like those of another."""

import pytest

import towpath
from conftest import refusal
from inside.machines import catalogue, quantities_of, shipped

PRODUCTS = (
    "aws-p5", "dgx-a100", "dgx-b200", "dgx-h100", "gb200-nvl72", "hgx-h200", "mi300x", "pcie-8gpu",
)  # fmt: skip
MINE = """
form: template
name: mine
description: two GPUs
hosts: {count: 1, gpus: 2, source: chosen, gpu_interconnect: {shape: switch, link_type: nvlink}}
link_types:
  nvlink: {like: dgx-h100, rate_gb_per_s: {value: 300, source: measured}}
gpu_cost: {like: dgx-h100}
"""


def test_every_product_is_shipped():
    assert set(PRODUCTS) <= set(shipped.names("gpu_cluster"))


@pytest.mark.parametrize("name", PRODUCTS)
def test_each_quantity_has_a_source_or_says_that_it_is_assumed(name):
    spec = catalogue.load(name)
    sources = [
        source for _, value, source in quantities_of(spec) if not isinstance(value, str | bool)
    ]
    assert all(len(source) > 10 for source in sources if source)


@pytest.mark.parametrize("hosts", [1, 2])
@pytest.mark.parametrize("name", sorted(set(PRODUCTS) - {"gb200-nvl72"}))
def test_a_large_all_reduce_is_below_what_the_links_of_a_gpu_carry(name, hosts):
    machine = towpath.load(name, hosts=hosts)
    found = machine.run(size_bytes="64M", algorithm="ring", protocol="Simple", data=False)
    rates = {kind: link.rate_gb_per_s.value for kind, link in machine.spec.link_types.items()}
    assert 5 < found.bus_bandwidth_gb_per_s < 8 * max(rates.values())


def test_generations_are_in_their_order():
    """Newer links make a ring faster, and it stays below the links of a GPU."""
    rates, limits = [], []
    for name in ("pcie-8gpu", "dgx-a100", "dgx-h100", "dgx-b200"):
        machine = towpath.load(name, hosts=1)
        found = machine.run(size_bytes="256M", algorithm="ring", protocol="Simple", data=False)
        rates.append(found.bus_bandwidth_gb_per_s)
        kinds = {link.kind: link.rate_gb_per_s.value for link in machine.spec.link_types.values()}
        limits.append(kinds.get("nvlink", kinds["pcie"]))
    assert rates == sorted(rates)
    assert all(rate < limit for rate, limit in zip(rates, limits, strict=True))


def test_only_switches_from_hopper_on_reduce():
    reduces = {
        name: catalogue.load(name).gpu_cost.in_switch_reduction
        for name in PRODUCTS if name != "pcie-8gpu"
    }  # fmt: skip
    assert reduces == {name: name not in ("dgx-a100", "mi300x") for name in reduces}


# --- like -----------------------------------------------------------------------------------------


def test_a_block_is_that_of_another_machine_but_for_what_it_says_itself():
    spec, donor = catalogue.parse(MINE, "mine.yaml"), catalogue.load("dgx-h100")
    nvlink = spec.link_types["nvlink"]
    assert nvlink.rate_gb_per_s.value == 300 and nvlink.rate_gb_per_s.source == "measured"
    assert nvlink.latency_ns.value == donor.link_types["nvlink"].latency_ns.value
    assert nvlink.latency_ns.source.startswith("dgx-h100: ")
    assert (
        spec.gpu_cost.simple.fences
        and spec.gpu_cost.launch_ns
        == donor.gpu_cost.launch_ns.model_copy(
            update={"source": f"dgx-h100: {donor.gpu_cost.launch_ns.source}"}
        )
    )


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("{like: dgx-h100}", "{like: dgx-h1}", "mine.yaml:8: gpu_cost.like: is 'dgx-h1'; choose"),
        (
            "nvlink: {like",
            "nvlonk: {like",
            "mine.yaml:7: link_types.nvlonk.like: is 'dgx-h100', wh",
        ),
        ("{like: dgx-h100}", "{like: [1]}", "gpu_cost.like: is [1]; choose one of"),
    ],
)
def test_what_cannot_be_like_another_is_refused(old, new, expected):
    assert expected in refusal(catalogue.parse, MINE.replace(old, new), "mine.yaml")


SLOWER = MINE.replace(
    "gpu_cost: {like: dgx-h100}",
    "gpu_cost: {like: dgx-h100, clock_ratio: {value: 0.5, source: data sheets}}",
)


def test_costs_in_cycles_follow_the_clock():
    """At half the clock the costs of a thread block double, those of memory and adapters do not."""
    cost, donor = catalogue.parse(SLOWER, "mine.yaml").gpu_cost, catalogue.load("dgx-h100").gpu_cost
    assert cost.launch_ns.value == 2 * donor.launch_ns.value
    assert cost.simple.send_overhead_ns.value == 2 * donor.simple.send_overhead_ns.value
    assert cost.ll.block_rate_gb_per_s.value == pytest.approx(
        donor.ll.block_rate_gb_per_s.value / 2
    )
    assert cost.ll.adapter_overhead_ns.value == donor.ll.adapter_overhead_ns.value
    assert cost.kernel.memory_latency_ns.value == donor.kernel.memory_latency_ns.value
    assert cost.host_launch_ns.value == donor.host_launch_ns.value
    assert cost.launch_ns.source.startswith("derived by the clocks' ratio, 0.5; dgx-h100: ")


@pytest.mark.parametrize(
    "ratio", ["0.5", "{value: 0, source: x}", "{value: 1}", "{value: a, source: x}"]
)
def test_a_ratio_of_clocks_is_a_number_with_a_source(ratio):
    text = SLOWER.replace("{value: 0.5, source: data sheets}", ratio)
    sentence = "mine.yaml:8: gpu_cost.clock_ratio: must have a value, 0.1 to 10, and a source"
    assert sentence in refusal(catalogue.parse, text, "mine.yaml")


def test_a_ratio_of_clocks_needs_another_gpu():
    text = SLOWER.replace("like: dgx-h100, clock", "clock")
    assert "gpu_cost: has no field 'clock_ratio'" in refusal(catalogue.parse, text, "mine.yaml")


def test_the_default_fills_all_wires_of_a_gpu_that_is_joined_to_each_other():
    machine = towpath.load("mi300x", hosts=1)
    default = machine.run("all_reduce", size_bytes="1G", data=False)
    many = machine.run("all_reduce", size_bytes="1G", channels=24, data=False)
    assert default.time_us < 1.1 * many.time_us
