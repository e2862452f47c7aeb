# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Machines with other values (--set) and with devices that have failed (--without)."""

import json
import re

import pytest

import towpath
from conftest import refusal, towpath_command
from inside.machines import catalogue, combinations, with_settings

ROW = re.compile(r"^ +\d+ +\d+ +float32", re.MULTILINE)
DGX = ("--machine", "dgx-h100", "--sizes", "64M", "--no-data")


def dgx(*settings):
    return with_settings(catalogue.load("dgx-h100"), settings)


def test_a_value_is_set_with_its_source():
    spec = dgx("link_types.nvlink.rate_gb_per_s=400", "gpu_cost.simple.fences=false")
    assert spec.link_types["nvlink"].rate_gb_per_s.value == 400
    assert spec.link_types["nvlink"].rate_gb_per_s.source == "set by the caller"
    assert spec.gpu_cost.simple.fences is False


def test_a_quantity_that_the_file_lacks_is_set():
    assert dgx().gpu_cost.simple.start_overhead_ns is None
    spec = dgx("gpu_cost.simple.start_overhead_ns=500")
    assert spec.gpu_cost.simple.start_overhead_ns.value == 500
    assert spec.gpu_cost.simple.start_overhead_ns.source == "set by the caller"


@pytest.mark.parametrize("shape", ["leaf_spine", "fat_tree", "dragonfly", "rails"])
def test_a_fabric_gets_another_shape(shape):
    spec = dgx(f"fabric.shape={shape}")
    assert spec.fabric.shape == shape and spec.build(hosts=4).ranks == 32


def test_lists_are_combined():
    assert len(combinations(["a=1,2,3", "b=4,5", "c=6"])) == 6


@pytest.mark.parametrize(
    ("setting", "expected"),
    [
        ("fabric.spine.oversubscripton=2", "nearest are fabric.spine.oversubscription"),
        ("rate_gb_per_s=2", "nearest are link_types.nvlink.rate_gb_per_s"),
        ("link_types.nvlink=2", "which is a block"),
        ("link_types.nvlink.rate_gb_per_s=-1", "rate_gb_per_s=-1: is -1; it must"),
        ("link_types.nvlink.rate_gb_per_s=fast", "is 'fast'"),
        ("gpu_cost.simple.start_overhead_ns=-1", "start_overhead_ns=-1: is -1; it must"),
        ("gpu_cost.simple.start_overhead_ns=fast", "is 'fast'"),
        ("fabric.shape=ball", "has shape 'ball'; choose one of"),
        ("fabric.hash_seed", "it must be like path.to.field=value"),
        ("name=[1", "is not valid YAML"),
    ],
)
def test_what_cannot_be_set_is_refused(setting, expected):
    assert expected in refusal(dgx, setting)


def test_run_takes_values_in_turn():
    spine = "fabric.spine.oversubscription=1,4"
    line = ("run", "all_to_all", *DGX, "--algorithm", "all_pairs", "--protocol", "simple")
    text = towpath_command(*line, "--set", spine).stdout
    assert "# with fabric.spine.oversubscription=1\n" in text
    assert len(ROW.findall(text)) == 2
    first, second = (
        run["rows"][0]["out_of_place"]["time_us"]
        for run in json.loads(towpath_command(*line, "--set", spine, "--json").stdout)["results"]
    )
    assert second > first * 1.5


def test_other_commands_take_one_value(tmp_path):
    many = ("--set", "gpu_cost.launch_ns=0,1")
    tune = ("tune", "all_reduce", "--machine", "dgx-h100", "--out", str(tmp_path))
    for words in (("show", "dgx-h100"), ("export", "machine", "dgx-h100", "--json"), tune):
        assert "only `towpath run`" in refusal(towpath_command, *words, *many)
    one = ("--set", "gpu_cost.launch_ns=1234")
    assert "1234" in towpath_command("show", "dgx-h100", *one).stdout
    written = towpath_command("export", "machine", "dgx-h100", "--json", *one).stdout
    assert json.loads(written)["gpu_cost"]["launch_ns"] == 1234
    with pytest.raises(towpath.ConfigError, match="--set applies to clusters of GPUs"):
        towpath_command("show", "t3000", *one)


def test_a_lost_adapter_costs_time():
    line = ("run", "all_reduce", *DGX, "--algorithm", "ring", "--protocol", "simple", "--json")

    def time_us(*words):
        found = json.loads(towpath_command(*line, *words).stdout)["results"][0]
        return found["rows"][0]["out_of_place"]["time_us"]

    assert time_us("--without", "host0/nic3") > 1.4 * time_us()


def test_what_is_not_there_cannot_be_lost():
    assert "there is no device 'nic9'" in refusal(
        towpath_command, "run", "all_reduce", *DGX, "--without", "nic9"
    )


def test_a_search_knows_settings_and_lost_devices():
    machine = towpath.load("dgx-h100", hosts=1, settings=["gpu_cost.launch_ns=0"], without=["gpu7"])
    assert machine.ranks == 7
    tuning = machine.tune(size_bytes="1K", channels=[1], protocols=["LL"], jobs=1)
    assert tuning.timings[0].source.ranks == 7
    usual = towpath.load("dgx-h100", hosts=1, without=["gpu7"])
    timed = usual.tune(size_bytes="1K", channels=[1], protocols=["LL"], jobs=1)
    assert timed.timings[0].time_us - tuning.timings[0].time_us == pytest.approx(2.3)
