# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
from dataclasses import replace
from pathlib import Path

from inside.collectives import Measurement
from inside.pages import table
from report_example import example_row, example_run


def _run(**changes):
    rows = (
        example_row(8, Measurement(12.345, 0.0006, 0.0011, 0), Measurement(9.5, 0.0008, 0.0015, 0)),
        example_row(1048576, Measurement(125.84, 8.333, 14.582, 0), None),
        example_row(
            1073741824, Measurement(11363.4, 94.491, 165.36, None),
            Measurement(3193.24, 336.25, 588.45, None), error_pct=(4.4, 12.6),
        ),
    )  # fmt: skip
    run = example_run("ring", "Simple", 1.0, 1.0, ranks=8, blocks=4, sizes=0)
    return replace(run, **{"rows": rows, "notes": ("Large sizes keep time only.",), **changes})


# Written by hand after a log of nccl-tests: columns of 12, 12, 8, 6, 6 and twice 7, 6, 6, 5.
EXPECTED = (Path(__file__).parent / "expected_table.txt").read_text()


def _lines(result):
    """As the command prints them: rows before the run is complete."""
    streamed = replace(result, rows=())
    rows = [line for row in result.rows for line in table.row_lines(streamed, row)]
    return [*table.header(streamed), *rows, *table.footer(result)]


def test_table_looks_like_that_of_nccl_tests():
    assert "".join(line + "\n" for line in _lines(_run())) == EXPECTED


def test_wrong_elements_fail_the_table():
    run = _run()
    wrong = replace(run.rows[0].out_of_place, wrong=7)
    failed = replace(run, rows=(replace(run.rows[0], out_of_place=wrong),))
    assert next(table.footer(failed)) == "# Out of bounds values : 7 FAILED"


def test_unchecked_data_is_not_called_ok():
    run = _run()
    assert [*table.footer(replace(run, rows=run.rows[2:]))] == [
        "# Out of bounds values : N/A (data not checked)",
        "# Avg bus bandwidth    : 376.905",
        "#",
    ]
    assert "# Avg bus bandwidth    : N/A" in table.footer(replace(run, rows=()))


def test_a_prediction_of_the_library_itself_is_marked():
    run = _run()
    predicted = replace(run, rows=(replace(run.rows[1], is_simulated=False), run.rows[2]))
    marked, unmarked = (table.row(predicted, row) for row in predicted.rows)
    assert marked.endswith("  ring Simple 4 *") and unmarked.endswith("  ring Simple 4  +-4/13%")
    sentence = "# *                    : predicted by the library's own model, without a schedule"
    assert sentence in table.footer(predicted)
    assert sentence not in table.footer(run)
    # A measurement is not simulated, and needs no mark.
    live = replace(predicted, kind="live")
    assert table.row(live, live.rows[0]) == marked.removesuffix(" *")
    assert sentence not in table.footer(live)


def test_operation_and_root_show_only_where_they_mean_something():
    fields = {
        collective: table.row(run, run.rows[0]).split()[3:5]
        for collective in ("all_reduce", "reduce_scatter", "reduce", "broadcast", "all_to_all")
        for run in [_run(collective=collective, op="max", root=3)]
    }
    assert fields == {
        "all_reduce": ["max", "-1"],
        "reduce_scatter": ["max", "-1"],
        "reduce": ["max", "3"],
        "broadcast": ["none", "3"],
        "all_to_all": ["none", "-1"],
    }
