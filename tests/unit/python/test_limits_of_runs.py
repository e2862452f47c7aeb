# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""What limits a run, on machines where one thing clearly does."""

import pytest

import towpath
from conftest import towpath_command
from inside.machines import TemplateSpec, shipped, yaml_of

pytestmark = pytest.mark.slow  # starts processes


def limit_of(tmp_path, size, changes, **options):
    """The limit on two hosts of dgx-h100 of which some values are others."""
    data = shipped.machine("dgx-h100").model_dump()
    for path, value in changes.items():
        block = data
        *steps, last = path.split(".")
        for step in steps:
            block = block[step]
        block[last]["value"] = value
    file = tmp_path / "machine.yaml"
    file.write_text(yaml_of(TemplateSpec.model_validate(data)))
    collective = options.pop("collective", "all_reduce")
    options = {"algorithm": "ring", "protocol": "Simple", "data": False, **options}
    return towpath.load(file).run(collective, size_bytes=size, **options).limit


SLOW = {
    "network": {"link_types.infiniband.rate_gb_per_s": 5.0},
    "nvlink": {"link_types.nvlink.rate_gb_per_s": 20.0},
    "pcie": {"link_types.pcie.rate_gb_per_s": 5.0},
    "copy": {"gpu_cost.simple.block_rate_gb_per_s": 2.0},
}


@pytest.mark.parametrize("kind", SLOW)
def test_what_is_slow_is_the_limit_at_a_large_size(kind, tmp_path):
    limit = limit_of(tmp_path, "256M", SLOW[kind])
    assert limit.kind == kind and limit.weights[kind] > 0.7
    assert limit.sentence.startswith("at 256 MiB limited by")


def test_a_link_is_named_with_its_load(tmp_path):
    sentence = limit_of(tmp_path, "256M", SLOW["network"]).sentence
    assert "the network (host" in sentence and "busy" in sentence


def test_small_sizes_are_limited_by_latency(tmp_path):
    limit = limit_of(tmp_path, "8", {})
    assert limit.kind == "latency" and limit.weights["latency"] == pytest.approx(1, abs=0.02)


def test_few_slots_over_a_long_way_are_the_limit(tmp_path):
    far = {"link_types.infiniband.latency_ns": 1e6}
    limit = limit_of(tmp_path, "256M", far, collective="broadcast", channels=1)
    assert limit.weights["slots"] > 0.3


def test_the_table_and_the_page_say_it(tmp_path):
    page = tmp_path / "run.html"
    line = ("run", "all_reduce", "--machine", "dgx-h100", "--hosts", "1", "--sizes", "1M,64M")
    done = towpath_command(*line, "--no-data", "--out", str(page))
    assert "# Limit                : at 64 MiB limited by" in done.stdout
    text = page.read_text()
    assert "limit at 64 MiB" in text and "At 64 MiB limited by" in text
    assert "at the largest size" in text


def test_links_of_the_report_are_those_of_the_largest_size():
    machine = towpath.load("dgx-h100", hosts=1)
    result = machine.run(size_bytes="1M,64M", algorithm="ring", protocol="Simple", data=False)
    assert max(link.busy_fraction for link in result.links) > 0.75


def test_where_there_are_no_gpus_nothing_is_said():
    assert towpath.load("n300").run(size_bytes="1K", algorithm=None, data=False).limit is None
