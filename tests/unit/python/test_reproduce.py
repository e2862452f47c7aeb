# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""`towpath reproduce`: the index of statements, the rules of verdicts, and the command."""

import json
import os
import subprocess
import sys

import pytest

from conftest import towpath_command
from inside.reproduce import RUNS, TITLES, Statement, holds, judge, statements
from towpath import ConfigError


def statement(rule="within 5%", theirs="100 ns", otherwise="") -> Statement:
    return Statement("000", 1, "section", "says", theirs, "run", "value", rule, otherwise)


def test_rows_of_a_document_are_numbered_from_one() -> None:
    for document in TITLES:
        rows = [each.row for each in statements(document)]
        assert rows == list(range(1, len(rows) + 1))


@pytest.mark.parametrize("document", TITLES)
def test_each_statement_has_a_run_or_a_reason(document: str) -> None:
    for each in statements(document):
        if each.run:
            assert each.run in RUNS, each
            value = True if each.rule == "true" else 1.0
            assert holds(each.rule, value, each.number) in (True, False)
        else:
            assert each.otherwise.startswith("untestable: "), each


def test_a_rule_holds_up_to_its_tolerance() -> None:
    assert holds("within 5%", 104.9, 100)
    assert not holds("within 5%", 105.1, 100)
    assert holds("at least 0.9", 0.9)
    assert not holds("at most 5", 5.1)
    assert holds("from -1 to 2.5", 0)
    with pytest.raises(ValueError, match="needs the document's number"):
        holds("within 5%", 1)
    with pytest.raises(ValueError, match="there is no rule"):
        holds("about right", 1)


@pytest.mark.parametrize(
    ("found", "otherwise", "verdict"),
    [
        (100.0, "", "same"),
        (103.0, "", "within"),
        (120.0, "", "off"),
        (120.0, "refuted: the reason", "refuted"),
        (120.0, "listed: Where the models are known to be off", "off, in DEVIATIONS"),
        (120.0, "listed: no such sentence", "off"),
        (103.0, "listed: no such sentence", "within"),
    ],
)
def test_a_value_beyond_its_tolerance_is_off_unless_it_is_listed(
    found: float, otherwise: str, verdict: str
) -> None:
    assert judge(statement(otherwise=otherwise), {"value": found}).verdict == verdict


def test_a_run_that_is_not_possible_or_fails_is_never_good() -> None:
    assert judge(statement(), {"cannot": "no compiler"}).verdict == "cannot be tested"
    assert judge(statement(), {"failed": "an error"}).verdict == "off"
    assert judge(statement(), {"other": 1.0}).verdict == "off"


def test_the_command_repeats_one_row(tmp_path) -> None:
    done = towpath_command("reproduce", "000", "4", "--json", "--jobs", "1")
    (row,) = json.loads(done.stdout)["results"][0]["rows"]
    assert (row["verdict"], row["ours"]) == ("same", 16)
    assert row["command"] == "towpath reproduce 000 4"
    done = towpath_command("reproduce", "000#4", "--csv", str(tmp_path / "rows.csv"))
    assert "1 of 1 hold" in done.stdout
    assert (tmp_path / "rows.csv").read_text().count("\n") == 2


def test_a_page_has_every_row_and_plot(tmp_path) -> None:
    page = tmp_path / "page.html"
    towpath_command("reproduce", "000", "65", "73", "--out", str(page), "--jobs", "1")
    text = page.read_text()
    assert "towpath reproduce 000 65" in text
    assert "ubench1" in text
    assert "ubench3" in text
    assert len(text) < 3_000_000


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("005",), "'005' is not a document; choose one of 000, 001, 002, 003, 004"),
        (("000", "999"), "document 000 has no row 999; its rows are 1 to 133"),
    ],
)
def test_a_row_that_does_not_exist_is_refused(words, sentence) -> None:
    with pytest.raises(ConfigError, match=sentence):
        towpath_command("reproduce", *words)


# The gate of CI: a row that leaves its tolerance must be listed in DEVIATIONS.md.
@pytest.mark.parametrize(
    "options",
    [pytest.param(["--quick"], marks=pytest.mark.slow), pytest.param([], marks=pytest.mark.long)],
)
def test_no_row_leaves_its_tolerance(options: list[str], tmp_path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "towpath", "reproduce", *options, "--json", "--jobs", "2"],
        capture_output=True, text=True, check=False,
        env={**os.environ, "XDG_CACHE_HOME": str(tmp_path)},
    )  # fmt: skip
    rows = json.loads(done.stdout)["results"][0]["rows"]
    assert [row for row in rows if row["verdict"] == "off"] == []
    assert done.returncode == 0


def test_there_are_421_statements() -> None:
    assert sum(len(statements(document)) for document in TITLES) == 421
