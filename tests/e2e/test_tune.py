# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""`towpath tune` as a user types it."""

import json
import subprocess
import sys

import pytest

import towpath


def tune(arguments, folder, code=0):
    done = subprocess.run(
        [sys.executable, "-m", "towpath", "tune", *arguments.split()],
        cwd=folder, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == code, done.stderr
    return done


SMALL = "all_reduce --machine dgx-h100 --hosts 1 --sizes 1K,1M --channels 1,8 --jobs 1"


def test_a_machine_of_gpus_gives_choices_for_nccl_and_msccl(tmp_path):
    found = json.loads(tune(f"{SMALL} --csv tuner.csv --xml xml --json", tmp_path).stdout)[
        "results"
    ][0]
    assert [each["size_bytes"] for each in found["winners"]] == [1024, 1 << 20]
    for chosen, best in zip(found["winners"], found["fastest"], strict=True):
        assert chosen["time_us"] * 0.95 <= best["time_us"] <= chosen["time_us"]
    assert len(found["timings"]) > found["candidates"]
    rows = [line for line in (tmp_path / "tuner.csv").read_text().splitlines() if line[0] != "#"]
    assert rows and all(row.startswith("allreduce,") and row.endswith(",1,8") for row in rows)
    for file in (tmp_path / "xml").iterdir():
        assert towpath.verify(towpath.Schedule.load(file), size_bytes="1M").is_correct
    assert (tmp_path / "tune-all_reduce-dgx-h100" / "study.html").is_file()


def test_times_are_those_of_a_run_and_measured_once(tmp_path):
    found = json.loads(tune(f"{SMALL} --protocol ll --json", tmp_path).stdout)["results"][0]
    chosen = found["winners"][1]
    points = tmp_path / "tune-all_reduce-dgx-h100" / "points.jsonl"
    lines = points.read_text()
    again = json.loads(tune(f"{SMALL} --protocol ll --json", tmp_path).stdout)["results"][0]
    assert again["timings"] == found["timings"] and again["winners"] == found["winners"]
    assert points.read_text() == lines
    row = towpath.load("dgx-h100", hosts=1).run(
        "all_reduce", size_bytes="1M", protocol="LL", algorithm=chosen["algorithm"],
        channels=chosen["channels"],
    ).row  # fmt: skip
    assert row.out_of_place.time_us == chosen["time_us"]
    assert row.out_of_place.wrong == 0


def test_chips_are_tuned_both_ways_round(tmp_path):
    found = json.loads(
        tune("all_gather --machine t3000 --sizes 1K,64K --jobs 1 --json", tmp_path).stdout
    )["results"][0]
    ways = {(each["algorithm"], each["both_ways"]) for each in found["timings"]}
    assert ("ring_all_gather", True) in ways and ("all_pairs_all_gather", False) in ways


def test_processes_of_this_host_are_tuned_live(tmp_path):
    found = json.loads(
        tune("broadcast --live 2 --sizes 1K,64K --iterations 2 --warmup 1 --json", tmp_path).stdout
    )["results"][0]
    assert found["kind"] == "live"
    assert all(each["time_us"] > 0 for each in found["timings"])
    assert len(found["timings"]) == 2 * found["candidates"]


def test_schedules_of_two_runs_are_not_mixed(tmp_path):
    (tmp_path / "xml").mkdir()
    (tmp_path / "xml" / "all_reduce-8-15.xml").touch()
    done = tune(f"{SMALL} --xml xml", tmp_path, code=2)
    assert done.stderr.startswith("towpath: xml: --xml finds all_reduce-8-15.xml of an earlier run")
    assert not (tmp_path / "tune-all_reduce-dgx-h100").exists()  # said before anything is measured


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ("all_reduce", "give either --machine NAME to simulate or --live RANKS to run here"),
        ("all_to_all --machine dgx-h100 --csv x.csv", "--csv does not support all_to_all; choose"),
        (
            "all_reduce --machine t3000 --csv x.csv",
            "--csv applies to GPUs, where NCCL runs; this is",
        ),
        ("all_reduce --machine dgx-h100 --csv no/x.csv", "no/x.csv: cannot be written: there is"),
        ("all_reduce --machine dgx-h100 --channels 0", "--channels is '0'; it must be numbers"),
        (
            "all_reduce --machine dgx-h100 --protocol LL1",
            "--protocol is 'LL1'; did you mean 'LL'?",
        ),
        ("all_gather --machine dgx-h100 --sizes 8", "no schedule of all_gather between 16 ranks"),
        ("ethernet --machine nowhere", "there is no machine or file 'nowhere'"),
    ],
)
def test_a_mistake_is_one_sentence(arguments, sentence, tmp_path):
    done = tune(arguments, tmp_path, code=2)
    assert done.stdout == ""
    assert done.stderr.startswith(f"towpath: {sentence}")
    assert len(done.stderr.splitlines()) == 1
