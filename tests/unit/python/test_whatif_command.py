# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""`towpath whatif`: the gain from each quantity of a machine."""

import json

import pytest

import towpath
from conftest import ROOT, refusal, towpath_command


def gains(*words):
    text = towpath_command("whatif", *words, "--json").stdout
    found = json.loads(text)["results"][0]
    return found, {each["path"]: each for each in found["gains"]}


def test_the_link_that_limits_a_call_gains_most():
    found, by_path = gains("pcie-8gpu", "--hosts", "1", "--sizes", "64M")
    first = found["gains"][0]
    assert first["path"] == "socket links: rate_gb_per_s"
    assert first["after"] == 2 * first["before"]
    assert 1.2 < first["speedups"][0]["speedup"] <= 2
    assert "processors' links" in found["limits"]["all_reduce"]
    assert first["limit"] and "processors' links" not in first["limit"]


def test_a_latency_gains_at_small_sizes_and_a_rate_at_large_ones():
    _, by_path = gains("ring", "--sizes", "1K,16M", "--collectives", "all_gather")
    rate = by_path["nvlink links: rate_gb_per_s"]["speedups"]
    latency = by_path["nvlink links: latency_ns"]["speedups"]
    assert latency[0]["speedup"] > latency[1]["speedup"]
    assert rate[1]["speedup"] > rate[0]["speedup"]


def test_a_gain_is_that_of_the_changed_machine():
    path = "link_types.nvlink.latency_ns"
    base = towpath.load("dgx-h100", hosts=1)
    latency = base.spec.link_types["nvlink"].latency_ns.value
    other = towpath.load("dgx-h100", hosts=1, settings=[f"{path}={latency / 2:g}"])
    options = {"size_bytes": "64K", "data": False}
    schedule = base.run("all_gather", library="nccl", **options).schedule()
    expected = base.run(schedule, **options).rows[0].time_us / (
        other.run(schedule, **options).rows[0].time_us
    )
    words = ("--hosts", "1", "--sizes", "64K", "--collectives", "all_gather")
    _, by_path = gains("dgx-h100", *words)
    speedup = by_path["nvlink links: latency_ns"]["speedups"][0]["speedup"]
    assert speedup == pytest.approx(expected)


def test_the_limit_is_that_of_the_largest_size():
    small_last, _ = gains("pcie-8gpu", "--hosts", "1", "--sizes", "64M,64K")
    assert small_last["limits"]["all_reduce"].startswith("at 64 MiB")


def test_a_quantity_without_a_valid_improvement_is_named():
    """The rate of reads over Ethernet times 1,000 exceeds the largest valid rate."""
    found, by_path = gains("n300", "--sizes", "16K", "--times", "1000")
    refused = {each["path"]: each["reason"] for each in found["refused"]}
    path = "ethernet.read_rate_gb_per_s"
    assert path in refused and path not in by_path
    assert all(refused.values())
    text = towpath_command("whatif", "n300", "--sizes", "16K", "--times", "1000").stdout
    assert f"not improved: {path}: is " in text


def test_chips_have_gains_and_limits_too(tmp_path):
    page = tmp_path / "page.html"
    done = towpath_command("whatif", "n300", "--sizes", "16K", "--out", str(page))
    assert "clock_mhz" in done.stdout and "time before (us)" in done.stdout
    assert "limit of all_reduce before: at 16 KiB limited by the cycles of cores" in done.stdout
    assert "limit with clock_mhz at 2000: at 16 KiB limited by" in done.stdout
    assert "Gain per quantity" in page.read_text()


def test_a_better_link_moves_the_limit_of_chips_to_their_cores():
    found, by_path = gains("n300", "--sizes", "1M", "--collectives", "all_gather")
    assert "Ethernet (chip " in found["limits"]["all_gather"]
    limit = by_path["ethernet links: rate_gb_per_s"]["limit"]
    assert "Ethernet" not in limit and "cores" in limit


def test_slow_memory_limits_chips_until_it_is_faster(tmp_path):
    chip = (ROOT / "machines/wormhole.yaml").read_text()
    (tmp_path / "slow.yaml").write_text(chip.replace("value: 22.08", "value: 1"))
    cluster = (ROOT / "machines/n300.yaml").read_text().replace("chip: wormhole", "chip: slow.yaml")
    (tmp_path / "pair.yaml").write_text(cluster)
    words = ("--sizes", "256K", "--times", "20")
    found, by_path = gains(str(tmp_path / "pair.yaml"), *words)
    assert "limited by the rate of DRAM" in found["limits"]["all_reduce"]
    better = by_path["dram.channel_rate_bytes_per_cycle"]
    assert better["speedups"][0]["speedup"] > 2
    assert better["limit"] and "DRAM" not in better["limit"]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("dgx-h100", "--times", "1"), "--times is 1; it must be above 1"),
        (("carvnet",), "whatif is for clusters of GPUs and of chips"),
    ],
)
def test_what_has_no_gain_is_refused(words, expected):
    assert expected in refusal(towpath_command, "whatif", *words)
