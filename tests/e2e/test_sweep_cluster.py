# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Sweeps on a cluster whose workers and scheduler are processes that get killed."""

import collections
import json
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress

import pytest

from inside.sweep import SweepOptions, run_sweep
from towpath import SweepError

pytest.importorskip("distributed", reason="needs the optional dask[distributed]")

POINTS = [{"n": n} for n in range(200)]
DEADLINE_S = 60


def slow_square(point):
    with open(os.environ["MEASURED_LOG"], "a") as log:
        log.write(f"{point['n']}\n")
    time.sleep(0.02)
    return {"n": point["n"] ** 2}


def deadly(point):
    if point["n"] == 4:
        os.kill(os.getpid(), signal.SIGKILL)
    return {"n": point["n"] ** 2}


def eventually(holds, what):
    deadline = time.monotonic() + DEADLINE_S
    while not holds():
        assert time.monotonic() < deadline, f"no {what} after {DEADLINE_S} s"
        time.sleep(0.02)


class Cluster:
    """A scheduler and workers of dask, each a process of its own."""

    def __init__(self, folder):
        self.folder = folder
        self.log = folder / "measured"
        self.file = folder / "points.jsonl"
        self._address_file = folder / "scheduler.json"
        self._environment = {
            **os.environ, "MEASURED_LOG": str(self.log),
            "PYTHONPATH": os.pathsep.join([os.path.dirname(__file__), *sys.path]),
            "DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "2",
        }  # fmt: skip
        self.scheduler = self._start(
            "dask_scheduler", "--port", "0", "--no-dashboard",
            "--scheduler-file", self._address_file,
        )  # fmt: skip
        self.workers = []
        eventually(self._has_address, "scheduler")
        self.address = json.loads(self._address_file.read_text())["address"]

    def _has_address(self):
        """The file is there before what is in it."""
        return self._address_file.exists() and self._address_file.read_text().endswith("}")

    def _start(self, program, *arguments):
        return subprocess.Popen(
            [sys.executable, "-m", f"distributed.cli.{program}", "--host", "127.0.0.1",
             *map(str, arguments)],
            cwd=self.folder, env=self._environment, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip

    def add_worker(self, *options):
        arguments = ("--nthreads", 1, "--no-dashboard", *options)
        self.workers.append(self._start("dask_worker", self.address, *arguments))

    def measured(self):
        """How many calls have begun."""
        return len(self.log.read_text().split()) if self.log.exists() else 0

    def kept(self):
        return [json.loads(line)["point"]["n"] for line in self.file.read_text().splitlines()]

    def sweep(self, measure=slow_square, points=POINTS, workers_timeout_s=DEADLINE_S):
        options = SweepOptions(
            scheduler=self.address, scheduler_timeout_s=DEADLINE_S,
            workers_timeout_s=workers_timeout_s,
        )  # fmt: skip
        return run_sweep(measure, points, self.file, options=options)

    def close(self):
        # A nanny that is killed leaves semaphores in /dev/shm.
        for process in self.workers:
            if process.poll() is None:
                process.terminate()
        for process in self.workers:
            with suppress(subprocess.TimeoutExpired):
                process.wait(DEADLINE_S)
        for process in [*self.workers, self.scheduler]:
            kill(process)


def kill(process):
    if process.returncode is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


@pytest.fixture
def cluster(tmp_path):
    made = Cluster(tmp_path)
    yield made
    made.close()


def after(count, cluster, action):
    """Runs an action beside the test, once so many points have been begun."""

    def wait():
        eventually(lambda: cluster.measured() >= count, f"point {count}")
        action()

    thread = threading.Thread(target=wait)
    thread.start()
    return thread


def test_points_of_a_killed_worker_are_measured_by_the_other(cluster):
    for _ in range(2):
        cluster.add_worker("--no-nanny")
    killer = after(20, cluster, lambda: kill(cluster.workers[0]))
    results = cluster.sweep()
    killer.join()
    assert results == [{"n": n**2} for n in range(200)]
    assert sorted(cluster.kept()) == list(range(200))


def test_a_sweep_without_workers_ends_and_another_one_goes_on(cluster):
    cluster.add_worker("--no-nanny")
    killer = after(20, cluster, lambda: kill(cluster.workers[0]))
    with pytest.raises(SweepError, match=r"has had no worker for 2 s; start one with `dask worker"):
        cluster.sweep(workers_timeout_s=2)
    killer.join()
    kept = cluster.kept()
    assert 10 <= len(kept) < 200
    cluster.log.unlink()
    cluster.add_worker("--no-nanny")
    assert cluster.sweep() == [{"n": n**2} for n in range(200)]
    again = collections.Counter(map(int, cluster.log.read_text().split()))
    assert set(again) == set(range(200)) - set(kept) and set(again.values()) == {1}


def test_a_killed_scheduler_ends_a_sweep_with_one_sentence(cluster):
    cluster.add_worker("--no-nanny")
    killer = after(20, cluster, lambda: kill(cluster.scheduler))
    with pytest.raises(SweepError, match="^the dask scheduler at .* (is lost|has had no worker)"):
        cluster.sweep(workers_timeout_s=10)
    killer.join()
    assert 10 <= len(cluster.kept()) < 200


def test_a_point_that_kills_its_workers_names_itself(cluster):
    cluster.add_worker()  # with the nanny that starts it again
    with pytest.raises(SweepError, match="^n 4: several workers were lost with it"):
        cluster.sweep(deadly, [{"n": 4}])


@pytest.mark.long
def test_a_thousand_points_survive_ten_killed_workers(cluster):
    for _ in range(2):
        cluster.add_worker("--no-nanny")

    def replace_workers():
        for number in range(10):
            begun = 80 * (number + 1)
            eventually(lambda: cluster.measured() >= begun, f"point {begun}")  # noqa: B023
            kill(cluster.workers[number])
            cluster.add_worker("--no-nanny")

    killer = threading.Thread(target=replace_workers)
    killer.start()
    results = cluster.sweep(points=[{"n": n} for n in range(1000)])
    killer.join()
    assert results == [{"n": n**2} for n in range(1000)]
