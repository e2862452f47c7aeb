# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Collectives on the nodes of a cluster with mailboxes."""

import json

import pytest

from conftest import towpath_command
from inside.cli import COLLECTIVES
from towpath import ConfigError


def run(*arguments):
    result = towpath_command("run", *arguments, "--machine", "carvnet", "--json")
    return json.loads(result.stdout)["results"][0]


@pytest.mark.parametrize("collective", COLLECTIVES)
def test_every_collective_gives_numpys_result(collective):
    for ranks in ("2", "5"):
        result = run(collective, "--ranks", ranks, "--sizes", "64,8K")
        columns = [row[way] for row in result["rows"] for way in ("out_of_place", "in_place")]
        assert all(column["wrong"] == 0 for column in columns if column is not None)


def test_time_grows_with_size_and_ring():
    def time_us(ranks, size):
        return run("all_reduce", "--ranks", ranks, "--sizes", size)["rows"][0]["out_of_place"][
            "time_us"
        ]

    assert time_us("4", "1K") < time_us("4", "16K")
    assert time_us("4", "1K") < time_us("8", "1K")
    assert time_us("2", "64") > 2 * 0.72  # two steps, each at least one way


def test_without_data_it_takes_as_long():
    with_data, without = (
        run("all_reduce", "--ranks", "4", "--sizes", "4K", *more)["rows"][0]["out_of_place"]
        for more in ((), ("--no-data",))
    )
    assert without["time_us"] == with_data["time_us"] and without["wrong"] is None


def test_options_of_gpu_clusters_are_refused():
    with pytest.raises(ConfigError, match="--hosts applies to clusters of GPUs"):
        run("all_reduce", "--hosts", "2")
