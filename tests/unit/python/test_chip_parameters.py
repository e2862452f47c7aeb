# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Parameters of a chip: each is read by a model, and none is the cost of a program."""

import re
from pathlib import Path

from inside.machines import tables

SOURCES = Path(__file__).resolve().parents[3] / "src" / "towpath"
TABLE = (SOURCES / "machine" / "chip_parameters.cpp").read_text()
# What describes, shows or measures a chip is no model of it.
OTHERS = ("machine", "bindings", "tenstorrent/bench", "tenstorrent/kernels")
REQUIRED_MAX = 42


def members():
    """Block and member of each row."""
    return re.findall(r"TOWPATH_(?:MEMBER|PARAMETER)\((\w+), (\w+)\)", TABLE)


def test_every_parameter_is_read_by_a_model():
    text = "\n".join(
        path.read_text()
        for path in SOURCES.rglob("*.[ch]pp")
        if not str(path.relative_to(SOURCES)).startswith(OTHERS)
    )
    read = set(re.findall(r"(?:\.|->)(\w+)", text))
    assert len(members()) > 60
    assert [member for _, member in members() if member not in read] == []


def test_the_tables_have_no_block_of_a_programs_costs():
    assert set(tables()["chip"]) == {
        "", "router", "niu", "dram", "ethernet", "pcie", "pcie.windows", "alignment",
    }  # fmt: skip


def test_a_chip_needs_few_values_and_each_default_has_a_source():
    rows = [row for block in tables()["chip"].values() for row in block]
    required = [row for row in rows if row["form"] == "quantity"]
    assert len(required) <= REQUIRED_MAX
    with_default = [row for row in rows if row["default_source"]]
    assert len(with_default) > 30
    assert all(row["min"] <= row["default"] <= row["max"] for row in with_default)
