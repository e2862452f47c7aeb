# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""What commands leave in a folder, and what they print."""

import json
from importlib.metadata import version

from conftest import refusal
from inside.cli import deliver, json_text, page_output, results_folder
from inside.pages import Finding, Page, Provenance


def test_a_results_folder_is_one_folder_whatever_the_machine_is_called(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert results_folder(None, "tune-a/b").name == "tune-a-b"
    assert results_folder(tmp_path / "x" / "y", "tune").is_dir()
    assert (tmp_path / "tune-a-b").is_dir()


def test_what_was_found_is_kept_as_json_and_printed_as_asked(tmp_path, capsys):
    made_with = Provenance("1.2", "2026-01-02T03:04:05Z", {"ring": "12ab"})
    for as_json in (False, True):
        page = Page("title", "command", [], [Finding("a", "1")])
        deliver({"a": 1}, page, tmp_path, as_json, made_with=made_with)
        printed = capsys.readouterr()
        kept = json.loads((tmp_path / "study.json").read_text())
        assert (kept["provenance"], kept["results"]) == (made_with.to_dict(), [{"a": 1}])
        assert printed.err == f"study: {tmp_path / 'study.html'}\n"
        assert json.loads(printed.out) == kept if as_json else printed.out == "# In short\na: 1\n"
    assert "machine ring 12ab" in (tmp_path / "study.html").read_text()


def test_json_says_at_least_version_and_date():
    made = json.loads(json_text({"a": 1}))["provenance"]
    assert made["towpath"] == version("towpath")
    assert made["date"].endswith("Z") and made["machines"] == {}


def test_one_result_and_several_have_one_shape():
    several = [{"a": 1}, {"a": 2}]
    assert json.loads(json_text(several))["results"] == several
    assert json.loads(json_text({"a": 1}))["results"] == [{"a": 1}]
    assert json.loads(json_text([]))["results"] == []


def test_out_is_a_page_or_a_folder_for_page_and_json(tmp_path):
    for name in ("page.html", "folder"):
        output = page_output(tmp_path / name)
        output.write(lambda path: path.write_text("page"), "{}")
    files = sorted(path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*.*"))
    assert files == ["folder/study.html", "folder/study.json", "page.html"]
    assert page_output(None) is None


def test_a_page_is_not_a_folder(tmp_path):
    sentence = refusal(results_folder, tmp_path / "page.html", "tune")
    assert "writes a folder" in sentence
    assert "there is no directory" in refusal(page_output, tmp_path / "none" / "page.html")
