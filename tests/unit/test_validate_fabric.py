# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Rows of tables measured on the fabric: what answers them, and what cannot be."""

import pytest

from towpath.errors import ConfigError
from towpath.validation import fabric as validate_fabric
from towpath.validation.table_kind import CannotSimulate, Context
from towpath.validation.validate import validate_table

NEIGHBOURS, LINE, COLLECTIVES = validate_fabric.FABRIC_KINDS


def line_row(**changes):
    row = {
        "system": "T3000", "topology": "linear", "line_size": "3", "hops_counted": "4",
        "message_bytes": "1024", "fused_payload_with_sync": "False", "mean_ns": "1000",
    }  # fmt: skip
    return row | changes


def collective_row(**changes):
    row = {
        "arch": "wormhole_b0", "topology": "ring", "mode": "single", "op": "all_gather",
        "n_devices": "8", "links_per_direction": "1", "size_bytes": "16384", "time_us": "30",
    }  # fmt: skip
    return row | changes


def predicted(kind, row, machine=None):
    return kind.predict(row, Context(machine)).value


@pytest.mark.parametrize("row", [line_row(), collective_row()])
def test_a_table_that_lacks_a_column_is_none_of_the_known(tmp_path, row):
    path = tmp_path / "table.csv"
    for column in row:
        rest = {name: value for name, value in row.items() if name != column}
        path.write_text(f"{','.join(rest)}\n{','.join(rest.values())}\n")
        with pytest.raises(ConfigError, match="its columns fit no known table"):
            validate_table(path)
    path.write_text(f"{','.join(row)}\n{','.join(row.values())}\n")
    assert validate_table(path).rows[0]["predicted"] > 0


def test_every_field_that_a_prediction_reads_is_a_column_of_its_table():
    for kind, row in ((LINE, line_row()), (COLLECTIVES, collective_row())):
        assert predicted(kind, {column: row[column] for column in kind.columns}) > 0


@pytest.mark.parametrize(
    ("kind", "row", "problem"),
    [
        (LINE, line_row(fused_payload_with_sync="yes"), "is 'yes'; allowed are True, False"),
        (LINE, line_row(hops_counted="3"), "hops_counted must be 4, to the far end and back"),
        (COLLECTIVES, collective_row(topology="line"), "is 'line'; allowed are ring"),
        (COLLECTIVES, collective_row(op="broadcast"), "is 'broadcast'; allowed are all_gather"),
    ],
)
def test_what_is_not_simulated_says_why(kind, row, problem):
    with pytest.raises(CannotSimulate, match=problem):
        predicted(kind, row)


def test_a_payload_that_comes_with_its_sync_word_takes_another_time():
    fused = line_row(fused_payload_with_sync="True")
    assert predicted(LINE, fused) != predicted(LINE, line_row())


def test_rows_of_blackholes_are_simulated_on_the_machine_that_is_named():
    row = collective_row(arch="blackhole", topology="line", links_per_direction="2")
    ours, other = (predicted(COLLECTIVES, row, name) for name in (None, "t3000"))
    assert ours == predicted(COLLECTIVES, row, "blackhole-line")
    assert other > 1.2 * ours
