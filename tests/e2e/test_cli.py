# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""The command as a user types it."""

import json
import os
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from inside import _core
from inside.cli import COLLECTIVES
from inside.cli import main as cli
from inside.schedules import algorithms_within

SMALL = "--machine dgx-h100 --hosts 1 --ranks-per-host 3 --sizes 64,1000003"


def towpath(arguments, folder, code=0):
    done = subprocess.run(
        [sys.executable, "-m", "towpath", *arguments.split()],
        cwd=folder, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == code, done.stderr
    return done


@pytest.mark.parametrize("collective", COLLECTIVES)
def test_every_collective_runs_simulated_and_live_with_right_data(collective, tmp_path):
    done = towpath(f"run {collective} {SMALL} --live 3 --iterations 2 --root 0 --json", tmp_path)
    runs = json.loads(done.stdout)["results"]
    assert [run["kind"] for run in runs] == ["simulated", "live"]
    for run in runs:
        assert len(run["rows"]) == 2
        for row in run["rows"]:
            assert row["out_of_place"]["wrong"] == 0
            assert row["out_of_place"]["time_us"] > 0


def test_every_algorithm_is_right_on_two_hosts():
    """In this process: each of them would start Python anew."""

    def stdout_of(arguments):
        done = CliRunner().invoke(cli.app, arguments.split())
        assert done.exit_code == 0, done.output
        return done.stdout

    listed = stdout_of("algorithms").splitlines()
    assert len(listed) >= 11
    for line in listed:
        collective, algorithm = line.split()[:2]
        hosts = 2 if algorithm in algorithms_within(collective, (_core.Reach.fifo,)) else 1
        report = stdout_of(
            f"run {collective} --algorithm {algorithm} --machine dgx-h100 --hosts {hosts} "
            "--ranks-per-host 4 --sizes 4,256K --json"
        )
        for row in json.loads(report)["results"][0]["rows"]:
            ways = [row[way] for way in ("out_of_place", "in_place") if row[way] is not None]
            assert ways and all(way["wrong"] == 0 for way in ways), algorithm


@pytest.mark.parametrize(
    "options",
    [
        "--dtype bfloat16 --op avg",
        "--dtype int8 --op prod",
        "--dtype float16 --op min",
        "--dtype uint64 --op max",
    ],
)
def test_types_and_operations(options, tmp_path):
    done = towpath(f"run all_reduce {SMALL} --live 3 --iterations 1 {options} --json", tmp_path)
    for run in json.loads(done.stdout)["results"]:
        assert all(row["in_place"]["wrong"] == 0 for row in run["rows"])


@pytest.mark.parametrize(
    ("option", "note"),
    [
        ("", "each rank is pinned to a core of its own"),
        (" --pin", "each rank is pinned to a core of its own"),
        (" --no-pin", "ranks are not pinned"),
    ],
)
def test_a_live_run_pins_its_ranks_unless_told_otherwise(option, note, tmp_path):
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("needs a core for each of 2 ranks")
    done = towpath(f"run all_reduce --live 2 --sizes 8 --iterations 1 --json{option}", tmp_path)
    (run,) = json.loads(done.stdout)["results"]
    assert note in run["notes"]


def test_the_table_the_report_and_the_trace(tmp_path):
    done = towpath(f"run all_reduce {SMALL} --out r.html --trace t.json", tmp_path)
    assert "# Out of bounds values : 0 OK" in done.stdout
    assert "busbw" in done.stdout
    assert (tmp_path / "r.html").read_text().startswith("<!DOCTYPE html>")
    assert json.loads((tmp_path / "t.json").read_text())["traceEvents"]


def test_export_verify_and_run_a_schedule_file(tmp_path):
    towpath("export all_reduce ring.xml --ranks 4 --channels 2", tmp_path)
    verdict = json.loads(towpath("verify ring.xml --sizes 64M --json", tmp_path).stdout)["results"][
        0
    ]
    assert verdict["is_correct"] and verdict["hangs_from_bytes"] is None
    towpath("run --schedule ring.xml --machine dgx-h100 --ranks-per-host 2 --sizes 4K", tmp_path)
    spoilt = (tmp_path / "ring.xml").read_text().replace('type="rrs"', 'type="r"', 1)
    (tmp_path / "spoilt.xml").write_text(spoilt)
    done = towpath("verify spoilt.xml --size 64M", tmp_path, code=1)
    assert "mismatch" in done.stdout and "rank 0" in done.stdout


def test_machines_and_their_pictures(tmp_path):
    assert "dgx-h100" in towpath("machines", tmp_path).stdout
    assert "nvswitch" in towpath("show dgx-h100 --svg m.svg", tmp_path).stdout
    assert (tmp_path / "m.svg").read_text().startswith("<svg")


def test_chips_and_their_pictures(tmp_path):
    assert "\n  wormhole           Tenstorrent Wormhole" in towpath("machines", tmp_path).stdout
    shown = towpath("show wormhole --harvest-mask 1 --svg chip.svg", tmp_path).stdout
    assert "a logical grid of 8 x 9" in shown
    assert "rows 1 harvested" in (tmp_path / "chip.svg").read_text()


def test_clusters_of_chips_and_their_pictures(tmp_path):
    listed = towpath("machines", tmp_path).stdout
    for name in ("n300", "t3000", "galaxy", "galaxy-torus", "p150", "blackhole-line"):
        assert f"\n  {name:<15}  " in listed
    shown = towpath("show t3000 --svg t3000.svg", tmp_path).stdout
    assert "0 - 4      E8 (9-6) - E0 (9-0) for the dispatcher" in shown
    assert (tmp_path / "t3000.svg").read_text().startswith("<svg")


def test_static_routes_as_a_table_and_as_json(tmp_path):
    table = towpath("routes t3000 0-1-2-3-0 4-0-3-7", tmp_path).stdout
    assert "2 routes of 7 hops on t3000" in table
    done = towpath("routes t3000 0-1-2-3-0 4-0-3-7 --buffers 2 --json", tmp_path)
    assert json.loads(done.stdout)["results"][0]["given"]["timesteps"] == 4


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ("routes n300 0-0", "route 0 goes from chip 0 to chip 0, between which no link"),
        ("routes n300 0", "route '0' must be two chips or more, such as 0-1-2"),
        ("routes ring 0-1", "ring: is a cluster of GPUs; this command is for a cluster of chips: "),
        (
            "run all_reduce --machine wormhole",
            "wormhole: is a chip; this command is for a cluster of GPUs",
        ),
        ("show wormhole --harvest-mask 1024", "its 10 rows with workers allow 0 to 1023"),
        ("show wormhole --hosts 2", "--hosts applies to clusters of GPUs; 'wormhole' is a chip"),
        ("show t3000 --ranks 2", "--ranks applies to clusters of GPUs"),
        ("show t3000 --harvest-mask 2", "--harvest-mask applies to chips"),
        ("show ring --harvest-mask 1", "--harvest-mask applies to chips"),
    ],
)
def test_what_does_not_go_with_chips_is_said_in_one_sentence(arguments, expected, tmp_path):
    error = towpath(arguments, tmp_path, code=2).stderr
    assert expected in error
    assert error.startswith("towpath: ") and error.count("\n") == 1


@pytest.mark.parametrize(
    "arguments",
    [
        "run",
        "run all_reduce",
        "run nonsense --live 2",
        "run all_reduce --machine nowhere",
        "run all_reduce --schedule missing.xml --live 2",
        "run --schedule missing.xml --live 2",
        "run --schedule . --live 2",
        "run all_reduce --machine dgx-h100 --sizes 8:x",
        "run all_reduce --machine dgx-h100 --dtype float8",
        "run all_reduce --machine dgx-h100 --op xor",
        "run all_reduce --machine dgx-h100 --protocol LL256",
        "run all_reduce --machine dgx-h100 --algorithm magic",
        "run all_reduce --machine dgx-h100 --hosts 0",
        "run all_reduce --machine dgx-h100 --ranks 9",
        "run all_reduce --machine dgx-h100 --ranks-per-host 9",
        "run all_reduce --machine dgx-h100 --channels 1000",
        "run broadcast --machine dgx-h100 --root 99",
        "run all_reduce --live -3",
        "run all_reduce --live 2 --sizes 64 --out missing/folder/r.html",
        "verify missing.xml",
        "validate missing.csv",
        "show nowhere",
    ],
)
def test_a_mistake_gets_one_sentence(arguments, tmp_path):
    done = towpath(arguments, tmp_path, code=2)
    assert done.stderr.startswith("towpath: "), done.stderr
    assert done.stderr.count("\n") == 1, done.stderr
    assert "Traceback" not in done.stderr
