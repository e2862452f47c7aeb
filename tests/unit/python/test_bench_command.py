# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""`towpath bench noc-vc`: what it writes and prints, and what it says to bad options."""

import json
from pathlib import Path

import pytest

from conftest import towpath_command
from inside import _core
from inside.errors import Interruption
from inside.noc import noc_study
from inside.sweep import how_to_resume
from towpath import ConfigError
from traffic_example import WORMHOLE, install


@pytest.fixture
def bench(monkeypatch, tmp_path):
    """Runs the command as typed after `towpath bench noc-vc --machine wormhole`."""
    install(monkeypatch)
    monkeypatch.chdir(tmp_path)

    def run(*arguments, interruption=None):
        line = ["bench", "noc-vc", "--machine", "wormhole", "--jobs", "1", *arguments]
        return towpath_command(*line, interruption=interruption)

    return run


SMALL = ("--grid", "4x2", "--sizes", "32:1K:4", "--vcs", "1,3", "--transactions", "16")


def test_the_folder_holds_points_page_and_json(bench, tmp_path):
    bench(*SMALL)
    folder = tmp_path / "noc-vc-wormhole"
    assert sorted(path.name for path in folder.iterdir()) == [
        "points.jsonl", "study.html", "study.json",
    ]  # fmt: skip
    study = json.loads((folder / "study.json").read_text())["results"][0]
    assert list(study["parts"]) == [
        "patterns", "agreement", "orders", "loopback", "flow_control", "classes", "throttle",
        "stalled_vcs",
    ]  # fmt: skip
    assert len(study["parts"]["patterns"]) == 6 * 2 * 3 * 2
    # The simulator of the tests knows no network: VCs change nothing, and nothing saturates.
    verdicts = {finding["name"]: finding["shown"] for finding in study["findings"]}
    assert verdicts["one_to_one"] and not verdicts["all_to_all_loss"] and not verdicts["own_vc"]


def test_every_pattern_has_its_table(bench):
    text = bench(*SMALL, "--only", "study").stdout
    assert text.count("bandwidth per master (B/cycle)") == 6
    assert "# All-to-all, 16 transactions per destination: " in text
    assert "  size (B)  NoC 0 VCs 1   NoC 0 VCs 3   NoC 1 VCs 1   NoC 1 VCs 3" in text
    assert "One-to-one: the number of VCs makes no difference [shown]" in text


def test_reduced_points_are_marked(bench, monkeypatch):
    monkeypatch.setattr(noc_study, "POINT_FLIT_HOPS", 1)
    result = bench(*SMALL, "--only", "study", "--patterns", "all_to_all")
    assert "14 of them with fewer transactions to fit a point's budget" in result.stderr
    lines = [line for line in result.stdout.splitlines() if line.lstrip()[:1].isdigit()]
    assert [line.count("*") for line in lines] == [4, 4, 4]


def test_json_is_the_study_and_nothing_else(bench, tmp_path):
    text = bench(*SMALL, "--json", "--out", "elsewhere/deep").stdout
    assert json.loads(text) == json.loads((tmp_path / "elsewhere/deep/study.json").read_text())


@pytest.mark.slow
def test_a_second_run_measures_nothing_again(bench, monkeypatch, tmp_path):
    def refuse(*arguments, **options):
        raise ValueError("measured again")

    first = json.loads(bench(*SMALL, "--json").stdout)
    monkeypatch.setattr(_core, "run_traffic", refuse)
    again = json.loads(bench(*SMALL, "--json").stdout)
    first["provenance"]["date"] = again["provenance"]["date"]
    assert again == first
    with pytest.raises(RuntimeError, match=r"^experiment \w+, noc 0, .*, seed 2: measured again$"):
        bench(*SMALL, "--seed", "2", "--nocs", "0")


def test_an_interrupted_run_says_where_it_goes_on(bench, tmp_path):
    interruption = Interruption()
    bench(*SMALL, "--only", "study", "--out", "here", interruption=interruption)
    assert interruption.sentence == how_to_resume(Path("here/points.jsonl"))


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--patterns", "one_to_none"), "patterns names 'one_to_none'; did you mean 'one_to_one'?"),
        (("--patterns", ""), "patterns names ''; choose one of one_to_one, "),
        (
            ("--only", "follow-ups", "--patterns", "one_to_one"),
            "--patterns applies to the study, which --only follow-ups leaves out",
        ),
        (("--sizes", "48"), "size_bytes names 48 bytes; it must be whole flits of 32"),
        (("--sizes", "256K"), "size_bytes names 262144 bytes; it must be whole flits of 32"),
        (("--sizes", "few"), "'few' is not a size from 1 byte to 16T; "),
        (("--nocs", "2"), "--nocs is '2'; choose one of 0, 1"),
        (("--vcs", "1,5"), "--vcs is '1,5'; choose one of 1, 2, 3, 4"),
        (("--vcs", "\n"), r"--vcs is '\n'; choose one of 1, 2, 3, 4"),
        (("--grid", "9x8"), "workers is 9 x 8; it must be two workers or more, up to the 8 x 8"),
        (("--grid", "1x1"), "workers is 1 x 1; it must be two workers or more, "),
        (("--grid", "eight"), "--grid is 'eight'; it must be columns and rows, such as 4x2"),
    ],
)
def test_a_bad_option_gets_one_sentence(bench, tmp_path, arguments, sentence):
    with pytest.raises(ConfigError) as caught:
        bench(*arguments)
    assert str(caught.value).startswith(sentence)
    assert "\n" not in str(caught.value)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "arguments",
    [("--transactions", "0"), ("--jobs", "-1"), ("--seed", "-1"), ("--only", "both"), ("--fast",)],
)
def test_what_typer_refuses_is_one_sentence_too(bench, arguments):
    with pytest.raises(Exception) as caught:
        bench(*arguments)
    sentence = caught.value.format_message()
    assert arguments[0].lstrip("-") in sentence and "\n" not in sentence


def test_a_folder_that_is_a_file_is_refused(bench, tmp_path):
    (tmp_path / "taken").write_text("")
    with pytest.raises(FileExistsError):
        bench(*SMALL, "--out", "taken")


def test_every_worker_takes_part_without_a_grid(bench, tmp_path):
    bench("--only", "study", "--patterns", "one_to_all", "--sizes", "32", "--vcs", "1")
    study = json.loads((tmp_path / "noc-vc-wormhole" / "study.json").read_text())["results"][0]
    assert {row["grid"] for row in study["parts"]["patterns"]} == {"8x8"}
    assert len(WORMHOLE.workers) == 64
