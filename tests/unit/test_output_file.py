# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""What commands leave in a folder, and what they print."""

import json

from towpath.cli.output_file import deliver, results_folder


def test_a_results_folder_is_one_folder_whatever_the_machine_is_called(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert results_folder(None, "tune-a/b").name == "tune-a-b"
    assert results_folder(tmp_path / "x" / "y", "tune").is_dir()
    assert (tmp_path / "tune-a-b").is_dir()


def test_what_was_found_is_kept_as_json_and_printed_as_asked(tmp_path, capsys):
    pages = []
    for as_json in (False, True):
        deliver({"a": 1}, "a is 1", tmp_path, as_json, lambda: pages.append("page"))
        printed = capsys.readouterr()
        assert printed.err == f"study: {tmp_path / 'study.html'}\n"
        assert json.loads(printed.out) == {"a": 1} if as_json else printed.out == "a is 1\n"
    assert json.loads((tmp_path / "study.json").read_text()) == {"a": 1}
    assert pages == ["page", "page"]
