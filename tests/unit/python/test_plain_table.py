# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Tables of texts: which columns hold numbers, and how a terminal shows them."""

import pytest

from inside.pages import PlainTable, table_text, tables_text


@pytest.mark.parametrize(
    ("cells", "is_numeric"),
    [
        (["1", "-2.5", "+3%", "40 us", "-", ""], True),
        (["1", "none"], False),
        (["2 of 3 links"], False),  # begins like a number, but is a sentence
    ],
)
def test_a_column_is_numeric_if_all_its_cells_are_numbers_with_units(cells, is_numeric):
    assert PlainTable(["x"], [[cell] for cell in cells]).are_numeric == [is_numeric]


def test_numbers_are_on_the_right_and_words_on_the_left():
    table = PlainTable(["name", "GB/s"], [["a", "1.5"], ["longer", "12.5"]])
    assert list(table_text(table)) == ["# name    GB/s", "  a        1.5", "  longer  12.5"]


def test_a_title_is_above_its_table_and_tables_are_apart():
    table = PlainTable(["n"], [["1"]], "title")
    assert tables_text([table, table]) == "# title\n  n\n  1\n\n# title\n  n\n  1"
