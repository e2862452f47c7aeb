# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""The prose gate: its rules, the texts that it reads, and its allow-list."""

import json
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
sys.path.insert(0, str(ROOT / "tools"))

import prose  # noqa: E402
import subjects  # noqa: E402
from prose_text import cpp_texts, paragraphs, python_texts  # noqa: E402


def broken(kind, words):
    text = prose.Text("a.md", 1, kind, words, words)
    return {breach.rule for breach in prose.breaches_of(text, prose.rules_of(ROOT))}


@pytest.mark.parametrize(
    "row", re.findall(r"^\| (\w+) \| (.+) \| (.+) \|$", (ROOT / "STYLE.md").read_text(), re.M)[1:]
)  # noqa: E501
def test_each_example_of_the_style_guide_breaks_its_rule_and_the_rewrite_does_not(row):
    rule, wrong, right = row
    assert rule in broken("paragraph", wrong)
    assert broken("message", right) == set()


def test_each_rule_has_an_example_in_the_style_guide():
    text = (ROOT / "STYLE.md").read_text()
    assert {"American", "Semicolon"} >= {
        rule.name for rule in prose.rules_of(ROOT) if not re.search(rf"\b{rule.name}\b", text)
    }


def test_a_docstring_must_not_open_with_a_question_but_a_heading_may():
    assert broken("comment", "What plays the programs.") == {"OpensWithQuestion"}
    assert broken("paragraph", "How a run is timed") == set()


def test_british_spelling_and_semicolons_are_found():
    assert broken("comment", "The behaviour of it") == {"American"}
    assert broken("paragraph", "It is one; it is two.") == {"Semicolon"}
    assert broken("message", "size is 0; give at least 1") == set()


def test_a_breach_names_its_line_and_the_replacement():
    (breach,) = prose.breaches_of(
        prose.Text("docs/a.md", 7, "paragraph", "", "one\ntwo in place of three"),
        prose.rules_of(ROOT),
    )
    assert str(breach) == "docs/a.md:8: 'in place of': write 'instead of' (Substitutions)"


def test_an_unknown_key_of_a_rule_file_is_an_error(tmp_path):
    (tmp_path / "A.yml").write_text("extends: existence\nmessage: x\nskip: 1\ntokens: [a]\n")
    with pytest.raises(SystemExit, match="does not support {'skip'}"):
        prose.rule_of(tmp_path / "A.yml")


def test_an_occurrence_rule_counts_within_one_text(tmp_path):
    (tmp_path / "A.yml").write_text("extends: occurrence\nmessage: x\nmax: 1\ntoken: very\n")
    rule = prose.rule_of(tmp_path / "A.yml")
    texts = [prose.Text("a", 1, "comment", "", words) for words in ("very", "very very")]
    assert [len(list(prose.breaches_of(text, [rule]))) for text in texts] == [0, 2]


def test_code_in_documents_is_not_read():
    (text,) = paragraphs("a.md", "```\nin place of\n```\n\nUse `in place of`\nand [b](c;d).\n")
    assert (text.line, text.words) == (5, "Use _\nand [b].")


def test_docstrings_comments_and_messages_of_python_are_read():
    source = 'def f(x):\n    """Text.\n\n    >>> f(1)\n    """\n    # a note here\n    raise E(f"{x} is not a whole number")\n'  # noqa: E501
    found = {(text.kind, text.line, text.words.strip()) for text in python_texts("a.py", source)}
    assert found == {
        ("comment", 2, "Text."),
        ("comment", 6, "a note here"),
        ("message", 7, "_ is not a whole number"),
    }


def test_comments_and_joined_messages_of_cpp_are_read():
    source = '// One\n// two.\nfail("{} is not "\n     "a number at all");  // why it is\n'
    found = [(text.kind, text.line, text.words) for text in cpp_texts("a.cpp", source)]
    assert found == [
        ("comment", 1, "One\ntwo."),
        ("comment", 4, "why it is"),
        ("message", 3, "_ is not a number at all"),
    ]


def test_a_moved_file_takes_its_allowance_along_and_a_new_breach_is_an_error(tmp_path):
    (tmp_path / "styles").mkdir()
    (tmp_path / "styles" / "allowed.json").write_text(json.dumps({"old.md": {"Too": 1}}))
    breach = prose.Breach("new.md", 3, "Too", "', too': write 'also'")
    assert prose.check(tmp_path, [breach]) == []
    assert len(prose.check(tmp_path, [breach, breach])) == 2


def test_the_allow_list_only_shrinks():
    assert prose.shrunk({"a": {"Too": 2}}, {"b": {"Too": 1}}) == {"b": {"Too": 1}}
    with pytest.raises(SystemExit, match="new breaches of Too"):
        prose.shrunk({"a": {"Too": 2}}, {"a": {"Too": 3}})


@pytest.mark.parametrize(
    ("subject", "problem"),
    [
        ("pages: draw one curve per schedule", ""),
        ("pages: curves", "must begin with a verb"),
        ("Draw one curve", "must be 'area: imperative summary'"),
        ("pages: draw one curve.", "must not end in a period"),
    ],
)
def test_a_subject_is_an_area_and_an_imperative(subject, problem):
    verbs = set((ROOT / "styles" / "verbs.txt").read_text().split())
    found = subjects.problem_of(subject, verbs)
    assert found.startswith(problem) and bool(found) == bool(problem)
