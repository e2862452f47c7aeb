# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""The arithmetic of `towpath validate`, on tables made here."""

import json

import pytest

from towpath.errors import ConfigError
from towpath.validation.validate import validate_table

HEADER = "source,nodes,gpus,config,size_bytes,time_us_out_of_place,note\n"


def table(folder, *rows):
    path = folder / "table.csv"
    path.write_text(HEADER + "".join(row + "\n" for row in rows))
    return path


def test_errors_and_statistics_are_those_of_the_rows(tmp_path):
    path = table(tmp_path, *(f"here,2,16,NCCL_ALGO=Ring,{1 << s},100,x" for s in (10, 20, 26)))
    result = validate_table(path)
    errors = sorted(abs(100 * (row["predicted"] / 100 - 1)) for row in result.rows)
    assert [row["measured"] for row in result.rows] == [100, 100, 100]
    (group,) = result.groups
    assert group["rows"] == group["predicted"] == 3
    assert group["median_pct"] == pytest.approx(errors[1])
    # Between the second and third of three, 80 % of the way.
    assert group["p90_pct"] == pytest.approx(errors[1] + 0.8 * (errors[2] - errors[1]))
    assert group["worst_pct"] == pytest.approx(errors[2])


def test_rows_keep_their_columns_and_become_json(tmp_path):
    path = table(tmp_path, "here,2,16,default,1024,30,a note")
    shape = json.loads(json.dumps(validate_table(path).to_dict()))
    (row,) = shape["rows"]
    assert row["source"] == "here" and row["note"] == "a note" and row["size_bytes"] == "1024"
    assert {"group", "predicted", "measured", "error_pct"} <= set(row)
    assert row["error_pct"] == pytest.approx(100 * (row["predicted"] / 30 - 1))
    assert shape["groups"][0]["group"] == row["group"]


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ("here,2,15,default,1024,30,", "15 GPUs"),
        ("here,2,16,NCCL_ALGO=NVLS,1024,30,", "NVLS"),
        ("here,2,16,surprise,1024,30,", "surprise"),
        ("here,two,16,default,1024,30,", "nodes"),
        ("here,2,16,default,1024,fast,", "time_us_out_of_place"),
    ],
)
def test_a_row_that_cannot_be_simulated_stays_in_and_says_why(tmp_path, row, reason):
    result = validate_table(table(tmp_path, row, "here,2,16,default,1024,30,"))
    assert len(result.rows) == 2
    assert result.rows[0]["predicted"] is None and result.rows[0]["error_pct"] is None
    assert reason in result.rows[0]["error"]
    assert result.rows[1]["predicted"] > 0
    assert reason in result.text()


@pytest.mark.parametrize(
    "text", ["", "a,b\n1,2\n", HEADER + "here,2\n", HEADER + "1,2,3,4,5,6,7,8\n"]
)
def test_what_is_no_such_table_is_refused_in_one_sentence(tmp_path, text):
    path = tmp_path / "table.csv"
    path.write_text(text)
    with pytest.raises(ConfigError, match=r"table\.csv:\d+: ") as refused:
        validate_table(path)
    assert "\n" not in str(refused.value)
