# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""The errors next to predictions come from rows that no cost was fitted to."""

import json
import math

import pytest

import towpath
from conftest import towpath_command
from inside.machines import catalogue
from inside.validation import accuracy


def test_few_errors_are_bounded_by_their_largest_and_many_by_nine_of_ten():
    def lines(count):
        kind = ["dgx-h100", "1", "all_gather", "8", "ring_all_gather", "2048"]
        return [[*kind, str(math.log1p(number / 100))] for number in range(1, count + 1)]

    (few,) = accuracy.measure(lines(8))
    assert (few.rows, few.median_pct, few.p90_pct) == (8, 4.0, 8.0)
    (many,) = accuracy.measure(lines(30))
    assert (many.rows, many.median_pct, many.p90_pct) == (30, 15.0, 28.0)
    assert (many.gpus, many.band) == (8, accuracy.band_of(2048))


def test_the_nearest_measurements_are_of_the_same_machine_hosts_and_band():
    spec = catalogue.load("dgx-h100", hosts=2)
    ring = accuracy.accuracy_of(spec, 16, "all_reduce", "ring_all_reduce", 256 << 20)
    assert (ring.algorithm, ring.band) == ("ring_all_reduce", 4)
    assert ring.median_pct <= ring.p90_pct
    assert accuracy.accuracy_of(spec, 16, "all_reduce", "tree_all_reduce", 256 << 20) is None
    assert accuracy.accuracy_of(spec, 16, "all_reduce", None, 256 << 20) is None


def test_names_do_not_matter_and_ranks_do():
    spec = catalogue.load("dgx-h100", hosts=2)
    named = spec.model_copy(update={"name": "mine"})
    expected = accuracy.accuracy_of(spec, 16, "all_reduce", "ring_all_reduce", 1 << 20)
    assert expected is not None
    assert accuracy.accuracy_of(named, 16, "all_reduce", "ring_all_reduce", 1 << 20) == expected
    assert accuracy.accuracy_of(spec, 2, "all_reduce", "ring_all_reduce", 1 << 20) is None


@pytest.mark.parametrize(
    ("name", "options", "collective"),
    [
        ("ring", {}, "all_reduce"),
        ("dgx-h100", {"hosts": 64}, "all_reduce"),
        ("dgx-h100", {"hosts": 2}, "all_to_all"),
        ("dgx-h100", {"hosts": 2, "settings": ["gpu_cost.launch_ns=1"]}, "all_reduce"),
        ("dgx-h100", {"hosts": 2, "without": ["nic3"]}, "all_reduce"),
    ],
)
def test_what_was_not_measured_is_not_validated(name, options, collective):
    spec = catalogue.load(name, **options)
    assert accuracy.accuracy_of(spec, spec.ranks, collective, "ring_all_reduce", 1 << 20) is None


def test_rows_and_results_say_it():
    line = ("run", "all_reduce", "--sizes", "256M", "--no-data", "--algorithm", "ring")
    text = towpath_command(*line, "--machine", "dgx-h100").stdout
    expected = accuracy.accuracy_of(
        catalogue.load("dgx-h100"), 16, "all_reduce", "ring_all_reduce", 256 << 20
    )
    assert f"  +-{expected.median_pct:.0f}/{expected.p90_pct:.0f}%" in text
    assert "# the end of a row is the error to expect" in text
    assert "# not validated" in towpath_command(*line, "--machine", "dgx-a100").stdout
    found = json.loads(towpath_command(*line, "--machine", "dgx-h100", "--json").stdout)["results"][
        0
    ]
    assert found["rows"][0]["error_pct"] == [expected.median_pct, expected.p90_pct]
    row = towpath.load("dgx-a100").run(size_bytes="1K", data=False).rows[0]
    assert row.error_pct is None and row.to_dict()["error_pct"] is None
