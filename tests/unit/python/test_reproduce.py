# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""`towpath reproduce`: the index of statements, the rules of verdicts, and the command."""

import json
import os
import subprocess
import sys
from collections import Counter

import pytest

from conftest import ROOT, towpath_command
from inside.reproduce import (
    NEEDS,
    RUNS,
    TITLES,
    CannotRun,
    Statement,
    documents,
    ethernet_machines,
    execution,
    holds,
    judge,
    perform,
    statements,
)
from towpath import ConfigError

ALL = [each for document in TITLES for each in statements(document)]


def statement(rule="within 5%", theirs="100 ns", otherwise="") -> Statement:
    return Statement("000", 1, "section", "says", theirs, "", "run", "value", rule, otherwise)


def test_rows_of_a_document_are_numbered_from_one() -> None:
    for document in TITLES:
        rows = [each.row for each in statements(document)]
        assert rows == list(range(1, len(rows) + 1))


@pytest.mark.parametrize("document", TITLES)
def test_each_statement_has_a_run_a_reason_or_a_row_that_it_repeats(document: str) -> None:
    names = {each.name: each for each in ALL}
    for each in statements(document):
        kind = each.expected.kind
        if each.run:
            assert kind in ("", "listed", "refuted"), each
            assert each.run in RUNS, each
            value = True if each.rule == "true" else 1.0
            assert holds(each.rule, value, each.number) in (True, False)
            assert (each.rule == "true") == (each.expected.band is None) or not kind, each
        elif kind == "repeats":
            assert names[each.expected.text].run, f"{each.name} repeats a row without a run"
        else:
            assert kind == "untestable", each


def test_no_two_rows_are_about_one_value_unless_one_repeats_the_other() -> None:
    values = Counter((each.run, each.value) for each in ALL if each.run)
    assert [value for value, count in values.items() if count > 1] == []


def test_a_tolerance_or_bound_has_a_condition() -> None:
    exact = ("true", "within 0%")
    assert [each.name for each in ALL if each.run and not each.condition
            and each.rule not in exact] == []  # fmt: skip


def test_deviations_contain_the_phrase_of_each_listed_row() -> None:
    text = " ".join((ROOT / "validation" / "DEVIATIONS.md").read_text().split())
    listed = [each for each in ALL if each.expected.kind == "listed"]
    assert [each.name for each in listed if each.expected.text not in text] == []
    assert listed


def test_a_rule_holds_up_to_its_tolerance() -> None:
    assert holds("within 5%", 104.9, 100)
    assert not holds("within 5%", 105.1, 100)
    assert holds("at least 0.9", 0.9)
    assert not holds("at most 5", 5.1)
    assert holds("from -1 to 2.5", 0)
    assert not holds("at most 5", float("nan"))
    with pytest.raises(ValueError, match="needs the document's number"):
        holds("within 5%", 1)
    with pytest.raises(ValueError, match="there is no rule"):
        holds("about right", 1)


LISTED = "Where the models are known to be off"


@pytest.mark.parametrize(
    ("found", "otherwise", "verdict"),
    [
        (100.0, "", "same"),
        (103.0, "", "within"),
        (120.0, "", "off"),
        (120.0, "refuted 115 to 125: the reason", "refuted"),
        (130.0, "refuted 115 to 125: the reason", "off"),
        (103.0, "refuted 115 to 125: the reason", "off"),
        (120.0, f"listed 115 to 125: {LISTED}", "off, in DEVIATIONS"),
        (114.0, f"listed 115 to 125: {LISTED}", "off"),
        (103.0, f"listed 115 to 125: {LISTED}", "off"),
        (float("nan"), f"listed 115 to 125: {LISTED}", "off"),
        (120.0, "listed 115 to 125: no such sentence", "off"),
    ],
)
def test_a_value_beyond_its_tolerance_is_off_unless_it_is_in_the_listed_band(
    found: float, otherwise: str, verdict: str
) -> None:
    assert judge(statement(otherwise=otherwise), {"value": found}).verdict == verdict


def test_a_property_that_is_listed_must_be_absent() -> None:
    listed = statement("true", otherwise=f"listed no: {LISTED}")
    assert judge(listed, {"value": False}).verdict == "off, in DEVIATIONS"
    assert judge(listed, {"value": True}).verdict == "off"
    assert judge(statement("true"), {"value": True}).verdict == "same"


@pytest.mark.parametrize("rule", ["at least 90", "at most 100", "from 90 to 110"])
def test_a_value_within_a_bound_is_never_the_same(rule: str) -> None:
    assert judge(statement(rule), {"value": 100.0}).verdict == "within"


def test_a_form_that_does_not_exist_is_refused() -> None:
    with pytest.raises(ValueError, match="ends in an unknown form"):
        judge(statement(otherwise="listed: without a band"), {"value": 1.0})


def test_a_run_that_is_not_possible_or_fails_is_never_good() -> None:
    assert judge(statement(), {"cannot": "no compiler"}).verdict == "cannot be tested"
    assert judge(statement(), {"failed": "an error"}).verdict == "off"
    assert judge(statement(), {"other": 1.0}).verdict == "off"
    assert judge(statement(), {"value": None}).verdict == "off"


def test_a_run_may_only_miss_material_that_it_names(monkeypatch) -> None:
    def absent():
        raise CannotRun("documents", "no text")

    monkeypatch.setattr(ethernet_machines, "cores", absent)
    assert "is not listed as one that needs documents" in perform("eth.cores")["failed"]


def test_kept_results_depend_on_the_contents_of_material(tmp_path, monkeypatch) -> None:
    def digest() -> str:
        execution._shared.cache_clear()
        return execution._digest("eth.cores")

    monkeypatch.setenv("TOWPATH_SEEDS", str(tmp_path))
    text = tmp_path / "000_text.txt"
    text.write_text("one")
    before = digest()
    assert digest() == before
    text.write_text("two")
    assert digest() != before
    execution._shared.cache_clear()


def test_kept_results_depend_on_the_contents_of_a_checkout_and_not_on_its_place(
    tmp_path, monkeypatch
) -> None:
    def digest(folder) -> str:
        monkeypatch.setenv("TOWPATH_UMD_REPOSITORY", str(folder))
        execution._shared.cache_clear()
        return execution._digest("pcie.benchmarks")

    one, other = tmp_path / "one", tmp_path / "other"
    for folder in (one, other):
        folder.mkdir()
        (folder / "test.cpp").write_text("int main() {}")
    assert digest(one) == digest(other)
    (other / "test.cpp").write_text("int main() { return 1; }")
    assert digest(one) != digest(other)
    author = ["-c", "user.name=a", "-c", "user.email=b"]
    for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "c"]):
        subprocess.run(["git", "-C", str(one), *author, *words], check=True)
    bare = digest(one / ".git")
    (one / "test.cpp").write_text("int main() { return 2; }")
    assert digest(one / ".git") == bare
    execution._shared.cache_clear()


def test_a_row_with_the_value_and_rule_of_another_one_is_found() -> None:
    row = {"document": "001", "row": 3, "run": "noc.together", "ours": -0.42, "repeats": ""}
    assert_equal_values_are_repeated([row, {**row, "row": 61}])
    assert_equal_values_are_repeated([row, {**row, "row": 31, "repeats": "001#3"}])
    with pytest.raises(AssertionError):
        assert_equal_values_are_repeated([row, {**row, "row": 31}])


def test_the_command_fails_if_no_run_is_possible(tmp_path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "towpath", "reproduce", "000", "120", "--json", "--jobs", "1"],
        capture_output=True, text=True, check=False,
        env={**os.environ, "TOWPATH_SEEDS": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path)},
    )  # fmt: skip
    (row,) = json.loads(done.stdout)["results"][0]["rows"]
    assert row["verdict"] == "cannot be tested"
    assert done.returncode == 1


def test_the_command_repeats_one_row(tmp_path) -> None:
    done = towpath_command("reproduce", "000", "4", "--json", "--jobs", "1")
    (row,) = json.loads(done.stdout)["results"][0]["rows"]
    assert (row["verdict"], row["ours"]) == ("same", 16)
    assert row["command"] == "towpath reproduce 000 4"
    done = towpath_command("reproduce", "000#4", "--csv", str(tmp_path / "rows.csv"))
    assert "1 of 1 hold" in done.stdout
    assert (tmp_path / "rows.csv").read_text().count("\n") == 2


def test_a_row_that_repeats_another_one_has_its_verdict_and_is_counted_apart() -> None:
    done = towpath_command("reproduce", "004", "12", "46", "--json", "--jobs", "1")
    (result,) = json.loads(done.stdout)["results"]
    repeating, own = result["rows"]
    assert (own["verdict"], own["ours"], own["repeats"]) == ("same", 129, "")
    assert (repeating["verdict"], repeating["ours"], repeating["repeats"]) == (
        "same", None, "004#46",
    )  # fmt: skip
    assert (result["counts"]["good"], result["counts"]["measured"]) == (2, 1)


def test_a_range_is_not_a_number() -> None:
    range_of = statement(theirs="30 to 50 GB/s")
    assert (range_of.number, range_of.unit) == (None, "GB/s")
    assert (statement(theirs="262,144 reads").number) == 262144


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


# Statements that hold by a value of their own where all material is present.
MEASURED_MIN = {True: 231, False: 325}


# The gate of CI: a row that leaves its tolerance or its band is off.
@pytest.mark.parametrize(
    "is_quick",
    [pytest.param(True, marks=pytest.mark.slow), pytest.param(False, marks=pytest.mark.long)],
)
def test_no_row_leaves_its_tolerance_or_band(is_quick: bool) -> None:
    options = ["--quick"] if is_quick else []
    done = subprocess.run(
        [sys.executable, "-m", "towpath", "reproduce", *options, "--json", "--jobs", "2"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    (result,) = json.loads(done.stdout)["results"]
    rows = result["rows"]
    assert [row for row in rows if row["verdict"] == "off"] == []
    assert done.returncode == 0
    untested = {row["run"] for row in rows if row["verdict"] == "cannot be tested" and row["run"]}
    for run in untested:
        assert any(not NEEDS[need]() for need in RUNS[run].needs), run
    assert_values_are_used()
    assert_equal_values_are_repeated(rows)
    if documents.NEEDS["documents"]() and documents.NEEDS["library"]():
        assert result["counts"]["measured"] >= MEASURED_MIN[is_quick]


def assert_values_are_used() -> None:
    """Each value of each kept result is the subject of a statement, or a figure."""
    # One of a sweep over patterns and chips, whose statement asks for more transactions.
    used = {("noc.alone", "wormhole_one_from_all"), *((each.run, each.value) for each in ALL)}
    results = {run: execution._kept(run) for run in RUNS}
    assert any(results.values())
    for run, values in results.items():
        for value in values or ():
            assert value.startswith("figure") or (run, value) in used, f"{run} {value}"


def assert_equal_values_are_repeated(rows: list[dict]) -> None:
    """Two rows with one run, one rule and one value are one: the second repeats the first.

    Whole numbers, such as no change at all, are often equal for different reasons.
    """
    rules = {(each.document, each.row): each.rule for each in ALL}
    values = Counter(
        (row["run"], row["ours"], rules[row["document"], row["row"]])
        for row in rows
        if not row["repeats"] and isinstance(row["ours"], float) and row["ours"] % 1
    )
    assert [value for value, count in values.items() if count > 1] == []


def test_there_are_421_statements() -> None:
    assert len(ALL) == 421
