# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Sweeps: what is measured is kept, what fails is named, and nothing depends on who is first."""

import fcntl
import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from functools import partial

import pytest

from inside.sweep import SweepOptions, how_to_resume, name_of, run_sweep
from towpath import ConfigError, SweepError

pytestmark = pytest.mark.slow  # starts processes

HERE = SweepOptions(jobs=1)
TWO = SweepOptions(jobs=2)
POINTS = [{"n": n} for n in (3, 1, 4, 1, 5)]


def square(point):
    return {"square": point["n"] ** 2}


def square_and_log(log, point):
    with open(log, "a") as stream:
        print(point["n"], file=stream)
    return square(point)


def fail_at_four(point):
    if point["n"] == 4:
        raise ValueError("four is too many")
    return square(point)


def divide_at_four(point):
    return {"quotient": 1 // (point["n"] - 4)}


def die_at_four(point):
    if point["n"] == 4:
        os.kill(os.getpid(), signal.SIGKILL)
    return square(point)


def interrupt_at_four(point):
    if point["n"] == 4:
        raise KeyboardInterrupt
    return square(point)


def small_ones_last(point):
    time.sleep(0.3 if point["n"] == 3 else 0)
    return square(point)


def squares(points):
    return [square(point) for point in points]


@pytest.mark.parametrize("options", [HERE, TWO])
def test_results_are_in_the_order_of_the_points(options, tmp_path):
    assert run_sweep(square, POINTS, tmp_path / "p.jsonl", options=options) == squares(POINTS)


def test_results_keep_their_order_when_the_first_ends_last(tmp_path):
    file = tmp_path / "p.jsonl"
    assert run_sweep(small_ones_last, POINTS, file, options=TWO) == squares(POINTS)
    finished = [json.loads(line)["point"]["n"] for line in file.read_text().splitlines()]
    assert finished[-1] == 3


def test_the_longest_point_goes_first_and_equal_ones_once(tmp_path):
    log = tmp_path / "log"
    measure = partial(square_and_log, log)
    run_sweep(measure, POINTS, tmp_path / "p.jsonl", cost=lambda p: p["n"], options=HERE)
    assert log.read_text().split() == ["5", "4", "3", "1"]


def test_a_second_sweep_measures_only_what_is_missing(tmp_path):
    file, log = tmp_path / "p.jsonl", tmp_path / "log"
    run_sweep(square, POINTS[:2], file, options=HERE)
    results = run_sweep(partial(square_and_log, log), POINTS, file, options=HERE)
    assert results == squares(POINTS)
    assert sorted(log.read_text().split()) == ["4", "5"]


def test_a_result_counts_for_its_digest_only(tmp_path):
    file, log = tmp_path / "p.jsonl", tmp_path / "log"
    run_sweep(square, POINTS, file, digest="one", options=HERE)
    run_sweep(partial(square_and_log, log), POINTS[:1], file, digest="other", options=HERE)
    assert log.read_text().split() == ["3"]
    assert run_sweep(fail_at_four, POINTS, file, digest="one", options=HERE) == squares(POINTS)


def test_a_torn_last_line_is_measured_again(tmp_path):
    file, log = tmp_path / "p.jsonl", tmp_path / "log"
    run_sweep(square, POINTS, file, options=HERE)
    whole = file.read_bytes()
    torn = whole[:-9]
    file.write_bytes(torn)
    lost = json.loads(whole.splitlines()[-1])["point"]["n"]
    assert run_sweep(partial(square_and_log, log), POINTS, file, options=HERE) == squares(POINTS)
    assert log.read_text().split() == [str(lost)]
    assert file.read_bytes() == whole


@pytest.mark.parametrize("line", ["not JSON", "[]", '{"point": {}, "digest": ""}', "1"])
def test_a_file_of_something_else_is_refused_and_left_alone(line, tmp_path):
    file = tmp_path / "p.jsonl"
    run_sweep(square, POINTS[:1], file, options=HERE)
    text = file.read_text() + line + "\n"
    file.write_text(text)
    with pytest.raises(ConfigError, match=r"p\.jsonl:2: is not a line of a sweep"):
        run_sweep(square, POINTS, file, options=HERE)
    assert file.read_text() == text


def test_two_sweeps_do_not_write_one_file(tmp_path):
    file = tmp_path / "p.jsonl"
    with open(file, "a") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        with pytest.raises(ConfigError, match="in use by another sweep"):
            run_sweep(square, POINTS, file, options=HERE)


def test_fresh_and_resumed_results_are_the_same(tmp_path):
    file = tmp_path / "p.jsonl"
    measure = partial(dict, pair=(1, 2))  # JSON knows no tuples
    fresh = run_sweep(measure, POINTS, file, options=HERE)
    assert fresh == run_sweep(fail_at_four, POINTS[:0] + POINTS, file, options=HERE)
    assert fresh[0]["pair"] == [1, 2]


@pytest.mark.parametrize("options", [HERE, TWO])
@pytest.mark.parametrize(
    ("measure", "reason"),
    [(fail_at_four, "four is too many"), (divide_at_four, "ZeroDivisionError: integer division")],
)
def test_a_failing_point_names_itself_and_the_others_are_kept(measure, reason, options, tmp_path):
    file = tmp_path / "p.jsonl"
    with pytest.raises(SweepError, match=f"^n 4: {reason}"):
        run_sweep(measure, POINTS, file, options=options)
    kept = [json.loads(line)["point"]["n"] for line in file.read_text().splitlines()]
    assert kept and 4 not in kept


def test_a_point_that_kills_its_process_names_itself(tmp_path):
    with pytest.raises(SweepError, match="^n 4: its process was killed by SIGKILL$"):
        run_sweep(die_at_four, POINTS, tmp_path / "p.jsonl", options=TWO)


def test_a_result_that_is_not_json_names_its_point(tmp_path):
    measure = partial(dict, bad=float("nan"))
    with pytest.raises(SweepError, match="^n 3: the result is not JSON"):
        run_sweep(measure, POINTS, tmp_path / "p.jsonl", options=HERE)


def test_an_interrupted_sweep_says_how_to_go_on_and_goes_on(tmp_path):
    file = tmp_path / "p.jsonl"
    with pytest.raises(KeyboardInterrupt) as caught:
        run_sweep(interrupt_at_four, POINTS, file, options=HERE)
    assert str(caught.value) == how_to_resume(file)
    assert str(file) in how_to_resume(file)
    assert run_sweep(square, POINTS, file, options=HERE) == squares(POINTS)


_SLEEPER = """
import os, signal, sys, time
from pathlib import Path
from inside.sweep import SweepOptions, run_sweep

def measure(point):
    if point["n"]:
        Path(sys.argv[1] + f".{os.getpid()}").touch()
        time.sleep(600)
    return {}

if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)  # whatever started the tests
    try:
        run_sweep(measure, [{"n": n} for n in (0, 1, 2)], Path(sys.argv[1]),
                  options=SweepOptions(jobs=2))
    except KeyboardInterrupt as interruption:
        sys.exit(f"towpath: {interruption}")
"""


@pytest.mark.parametrize("signal_number", [signal.SIGINT, signal.SIGKILL])
def test_processes_end_with_their_sweep(signal_number, tmp_path):
    script, file = tmp_path / "sleeper.py", tmp_path / "p.jsonl"
    script.write_text(textwrap.dedent(_SLEEPER))
    sweep = subprocess.Popen(
        [sys.executable, str(script), str(file)], stderr=subprocess.PIPE, text=True,
        start_new_session=True,
    )  # fmt: skip
    while len(list(tmp_path.glob("p.jsonl.*"))) < 2:
        assert sweep.poll() is None
        time.sleep(0.01)
    if signal_number == signal.SIGINT:
        os.killpg(sweep.pid, signal_number)  # as a terminal does
    else:
        sweep.kill()
    _, errors = sweep.communicate(timeout=60)  # until all that hold the pipe have ended
    if signal_number == signal.SIGINT:
        assert errors == f"towpath: {how_to_resume(file)}\n"
    assert json.loads(file.read_text())["point"] == {"n": 0}


def test_a_point_is_named_by_its_fields():
    assert name_of({"noc": 0, "pattern": "one_to_one"}) == "noc 0, pattern one_to_one"


def test_without_dask_a_scheduler_is_refused(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(ConfigError, match=r"^--scheduler needs dask, .*'towpath\[cluster\]'"):
        run_sweep(square, POINTS, tmp_path / "p.jsonl", options=SweepOptions(scheduler="a:1"))


@pytest.fixture
def cluster_address():
    distributed = pytest.importorskip("distributed", reason="needs the optional dask[distributed]")
    with distributed.LocalCluster(
        n_workers=1, threads_per_worker=2, processes=False, dashboard_address=None
    ) as cluster:
        yield cluster.scheduler_address


def test_a_cluster_gives_the_same_results_and_names_a_failing_point(cluster_address, tmp_path):
    options = SweepOptions(scheduler=cluster_address)
    assert run_sweep(square, POINTS, tmp_path / "p.jsonl", options=options) == squares(POINTS)
    with pytest.raises(SweepError, match="^n 4: four is too many$"):
        run_sweep(fail_at_four, POINTS, tmp_path / "q.jsonl", options=options)


@pytest.mark.parametrize(
    ("address", "sentence"),
    [("127.0.0.1:1", "no dask scheduler answers at '127.0.0.1:1'"), ("", "--scheduler is empty")],
)
def test_a_scheduler_that_does_not_answer_gets_one_sentence(address, sentence, tmp_path):
    pytest.importorskip("distributed", reason="needs the optional dask[distributed]")
    options = SweepOptions(scheduler=address, scheduler_timeout_s=0.2)
    with pytest.raises(ConfigError, match=sentence):
        run_sweep(square, POINTS, tmp_path / "p.jsonl", options=options)
