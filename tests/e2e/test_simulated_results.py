# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Simulated results are the same to the picosecond from one revision to the next."""

import json
from pathlib import Path

import pytest
from simulated_results import RUNS

TABLE = json.loads((Path(__file__).parent / "simulated_results.json").read_text())
LONG = ("galaxy", "study points")  # these take seconds each


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.long] if any(word in name for word in LONG) else [])
        for name in RUNS
    ],
)
def test_a_run_gives_the_result_of_the_table(name):
    assert RUNS[name]() == TABLE[name]


def test_the_table_has_a_row_for_each_run():
    assert sorted(TABLE) == sorted(RUNS)
