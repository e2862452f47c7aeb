# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""`towpath whatif`: the gain from each quantity of a machine."""

import json

import pytest

import towpath
from conftest import refusal, towpath_command


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


def test_chips_have_gains_too(tmp_path):
    page = tmp_path / "page.html"
    done = towpath_command("whatif", "n300", "--sizes", "16K", "--out", str(page))
    assert "clock_mhz" in done.stdout and "time before (us)" in done.stdout
    assert "Gain per quantity" in page.read_text()


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("dgx-h100", "--times", "1"), "--times is 1; it must be above 1"),
        (("carvnet",), "whatif is for clusters of GPUs and of chips"),
    ],
)
def test_what_has_no_gain_is_refused(words, expected):
    assert expected in refusal(towpath_command, "whatif", *words)
