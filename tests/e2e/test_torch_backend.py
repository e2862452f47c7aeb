# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""The backends of torch.distributed. Skipped where torch or a C++ compiler is absent."""

import contextlib
import fcntl
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import towpath
from conftest import ROOT, refusal

torch = pytest.importorskip("torch", reason="torch is not installed")
distributed = pytest.importorskip("torch.distributed")

import torch_ranks  # noqa: E402
import torch_suite  # noqa: E402

HERE = Path(__file__).parent


@pytest.fixture(scope="module", autouse=True)
def extension():
    """Compiled once, before ranks have deadlines."""
    from inside.torch import load_extension

    return load_extension()


def run_ranks(script, ranks, arguments, **environment):
    """What each rank printed; all of them must end well."""
    codes, printed = ends_of_ranks(script, ranks, arguments, **environment)
    ends = "\n---\n".join(errors[-1500:] for _, errors in printed)
    assert codes == [0] * ranks, ends
    return printed


def ends_of_ranks(script, ranks, arguments, timeout_s=300, **environment):
    """What each rank exits with and printed; none of them outlives this."""
    with started_ranks(script, ranks, arguments, environment) as processes:
        end = time.monotonic() + timeout_s
        printed = [
            process.communicate(timeout=max(0.1, end - time.monotonic())) for process in processes
        ]
    return [process.returncode for process in processes], printed


@contextlib.contextmanager
def started_ranks(script, ranks, arguments, environment):
    """The processes of the ranks; at the end of the block they are killed."""
    processes = [
        subprocess.Popen(
            [sys.executable, str(script), *arguments(rank)],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env={**os.environ, "OMP_NUM_THREADS": "1", **environment, "RANK": str(rank)},
        )
        for rank in range(ranks)
    ]  # fmt: skip
    try:
        yield processes
    finally:
        for process in processes:
            process.kill()
            process.communicate()


@pytest.mark.parametrize("ranks", [2, 4, pytest.param(8, marks=pytest.mark.long)])
def test_every_rank_passes_every_test(ranks, tmp_path):
    store = str(tmp_path / "store")
    printed = run_ranks(HERE / "torch_ranks.py", ranks, lambda rank: [str(rank), str(ranks), store])
    names = [test.__name__ for test in torch_ranks.TESTS]
    assert [output.split() for output, _ in printed] == [names] * ranks


@pytest.mark.long
def test_arrays_of_more_than_2_gib(tmp_path):
    store = str(tmp_path / "store")
    run_ranks(HERE / "torch_ranks.py", 2, lambda rank: [str(rank), "2", store, "more_than_2_gib"])


SIMULATED = """
import os
import torch
import torch.distributed as dist
import towpath.torch

simulation = towpath.torch.simulate("dgx-h100:1", ranks_per_host=2)
rank = int(os.environ["RANK"])
dist.init_process_group("towpath-sim", init_method=os.environ["STORE"], rank=rank, world_size=2)
values = torch.full((1024,), float(rank))
for _ in range(2):
    dist.all_reduce(values)
towpath.torch.sum_in_place(dist.group.WORLD)(values)
work = dist.all_reduce(values, async_op=True)
simulation.compute(1.0)
work.wait()
assert values[0] == 8.0, values
dist.destroy_process_group()
"""


def test_a_program_prints_what_its_communication_costs(tmp_path):
    script = tmp_path / "program.py"
    script.write_text(SIMULATED, encoding="utf-8")
    printed = run_ranks(script, 2, lambda rank: [], STORE=f"file://{tmp_path}/store")
    table = printed[0][1]
    row = re.search(r"^all_reduce +2 +4 +16,384 +([\d.]+) +([\d.]+)$", table, re.MULTILINE)
    assert row is not None, table
    machine = towpath.load("dgx-h100", hosts=1, ranks_per_host=2)
    one_us = machine.run(size_bytes=4096, data=False).rows[0].time_us
    assert float(row[1]) == pytest.approx(4 * one_us, abs=0.1)
    assert float(row[2]) == pytest.approx(3 * one_us, abs=0.1)  # one is hidden
    assert "communication on" not in printed[1][1]


STOPPED_WHILE_IT_REPORTS = """
import os
import time
import torch
import torch.distributed as dist
import towpath.torch

class Slow(towpath.torch.simulation.Simulation):
    def report(self):
        print("reporting", flush=True)
        time.sleep(1)
        return super().report()

towpath.torch.simulation.Simulation = Slow
towpath.torch.simulate("dgx-h100:1")
dist.init_process_group("towpath-sim", init_method=os.environ["STORE"], rank=0, world_size=1)
dist.all_reduce(torch.ones(8))
print(os.getpid(), flush=True)
"""


def test_the_report_outlives_a_rank_that_a_server_stops(tmp_path):
    script = tmp_path / "program.py"
    script.write_text(STOPPED_WHILE_IT_REPORTS, encoding="utf-8")
    store = {"STORE": f"file://{tmp_path}/store"}
    with started_ranks(script, 1, lambda rank: [], store) as (rank,):
        assert rank.stdout.readline() == f"{rank.pid}\n"
        assert rank.stdout.readline() == "reporting\n"
        rank.kill()
        assert rank.wait(timeout=30) == -signal.SIGKILL
        assert "communication on dgx-h100, simulated" in rank.stderr.read()


KILLED = """
import os
import signal
import torch
import torch.distributed as dist
import towpath.torch

rank = int(os.environ["RANK"])
dist.init_process_group("towpath", init_method=os.environ["STORE"], rank=rank, world_size=3)
if os.fork() == 0:
    raise SystemExit  # a child that leaves is not the rank
os.wait()
dist.barrier()
if rank == 1:
    print(os.getpid(), flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
try:
    dist.all_reduce(torch.ones(1000))
except dist.DistBackendError as error:
    print(error)
"""


def test_a_killed_rank_is_named_by_all_others(tmp_path):
    script = tmp_path / "program.py"
    script.write_text(KILLED, encoding="utf-8")
    codes, printed = ends_of_ranks(
        script, 3, lambda rank: [], STORE=f"file://{tmp_path}/store", timeout_s=120
    )
    assert codes == [0, -9, 0], printed
    pid = printed[1][0].strip()
    for rank in (0, 2):
        culprit = rf"rank 1 \(pid {pid}\) died while rank {rank} waited for all_reduce"
        assert re.search(culprit, printed[rank][0]), printed[rank]


@pytest.mark.long
def test_the_example_prints_what_its_communication_costs():
    printed = run_ranks(
        ROOT / "examples" / "05_torch" / "train.py", 4, lambda rank: [],
        WORLD_SIZE="4", MASTER_ADDR="127.0.0.1", MASTER_PORT=str(torch_suite.free_port()),
    )  # fmt: skip
    assert re.search(r"^all_reduce +4 +3 +12,595,200 ", printed[0][1], re.MULTILINE)
    assert "computation 450.0 us" in printed[0][1]
    report = printed[0][1][printed[0][1].index("communication on") :].strip()
    assert report in (ROOT / "docs" / "torch.md").read_text(encoding="utf-8")


def program(path, body):
    path.write_text(f"#!/bin/sh\n{body}\n", encoding="utf-8")
    path.chmod(0o700)
    return path


def sentence_of_build(**environment):
    """The last line of what a program prints that cannot build the extension."""
    done = subprocess.run(
        [sys.executable, "-c", "from inside.torch import load_extension; load_extension()"],
        capture_output=True, text=True, timeout=120, env={**os.environ, **environment},
    )  # fmt: skip
    return done.stderr.strip().splitlines()[-1]


def test_no_compiler_is_one_sentence(tmp_path):
    said = sentence_of_build(TOWPATH_TORCH_CACHE=str(tmp_path), PATH=str(tmp_path), CXX="")
    assert "ConfigError: the torch backend needs a C++ compiler" in said


def test_a_compiler_that_is_not_there_is_one_sentence(tmp_path):
    said = sentence_of_build(TOWPATH_TORCH_CACHE=str(tmp_path), CXX="no-such-compiler -O2")
    assert "$CXX names 'no-such-compiler', which is no program" in said


def test_absent_headers_of_python_are_one_sentence(tmp_path):
    (tmp_path / "sitecustomize.py").write_text(
        "import sysconfig\npath_of = sysconfig.get_path\nsysconfig.get_path = "
        "lambda name, *rest: '/absent' if name == 'include' else path_of(name, *rest)"
    )
    folders = f"{tmp_path}:{os.environ.get('PYTHONPATH', '')}"
    said = sentence_of_build(TOWPATH_TORCH_CACHE=str(tmp_path / "cache"), PYTHONPATH=folders)
    assert "there is no /absent/Python.h); install them" in said


def test_an_error_of_the_compiler_is_in_the_sentence(tmp_path):
    broken = program(tmp_path / "compiler", "echo 'all.cpp:1: fatal error: no room' >&2; exit 1")
    said = sentence_of_build(TOWPATH_TORCH_CACHE=str(tmp_path / "cache"), CXX=str(broken))
    assert ": no room; all of its messages are in" in said


def test_what_is_built_needs_no_compiler(tmp_path, monkeypatch):
    from inside.torch import build

    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CXX", raising=False)
    assert build.load_extension.__wrapped__() is not None


def test_ranks_that_wait_for_another_ones_build_have_a_deadline(tmp_path, monkeypatch):
    from inside.torch import build

    monkeypatch.setattr(build, "_BUILD_TIMEOUT_S", 0.3)
    monkeypatch.setenv("TOWPATH_TORCH_CACHE", str(tmp_path))
    folder = tmp_path / build._key()
    folder.mkdir()
    with (folder / "lock").open("w") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        other.write("4711")
        other.flush()
        said = refusal(build.load_extension.__wrapped__)
    assert "process 4711 has been compiling the backend" in said


def test_a_compiler_that_never_ends_has_a_deadline(tmp_path, monkeypatch):
    from inside.torch import build

    monkeypatch.setattr(build, "_BUILD_TIMEOUT_S", 0.3)
    monkeypatch.setenv("TOWPATH_TORCH_CACHE", str(tmp_path))
    monkeypatch.setenv("CXX", str(program(tmp_path / "compiler", "exec sleep 60")))
    assert "did not compile the backend" in refusal(build.load_extension.__wrapped__)


def test_a_killed_rank_leaves_no_compiler(tmp_path):
    compiler = program(
        tmp_path / "compiler", f"echo $$ > {tmp_path}/parent\nsleep 300 &\n"
        f"echo $! > {tmp_path}/child\nwait",
    )  # fmt: skip
    (tmp_path / "cache").mkdir(mode=0o700)
    rank = subprocess.Popen(
        [sys.executable, "-c", "from inside.torch import load_extension; load_extension()"],
        env={**os.environ, "TOWPATH_TORCH_CACHE": str(tmp_path / "cache"), "CXX": str(compiler)},
        stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    deadline = time.monotonic() + 60
    numbers = []
    while len(numbers) < 2:
        assert time.monotonic() < deadline
        time.sleep(0.05)
        files = [tmp_path / "parent", tmp_path / "child"]
        numbers = [int(file.read_text()) for file in files if file.exists() and file.read_text()]
    rank.kill()
    _, errors = rank.communicate()
    assert "towpath: compiling the backend for torch" in errors
    while any(Path(f"/proc/{number}").exists() for number in numbers):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_a_damaged_or_foreign_cache_is_not_loaded(tmp_path, monkeypatch):
    from inside.torch import build

    monkeypatch.setenv("TOWPATH_TORCH_CACHE", str(tmp_path))
    monkeypatch.setenv("CXX", str(program(tmp_path / "compiler", "exit 3")))
    folder = tmp_path / build._key()
    folder.mkdir()
    (folder / "towpath_torch.so").write_bytes(b"planted")
    assert "cannot compile the backend" in refusal(build.load_extension.__wrapped__)
    tmp_path.chmod(0o777)
    assert "can be written by other users" in refusal(build.load_extension.__wrapped__)


def test_pytorchs_own_tests_pass_as_the_guide_says():
    outcomes = json.loads((HERE / "torch_suite.json").read_text(encoding="utf-8"))
    rows = []
    for ranks in ("2", "3", "4"):
        of_gloo, of_ours = outcomes["gloo"][ranks], outcomes["towpath"][ranks]
        assert of_gloo.keys() == of_ours.keys()
        passes = [list(each.values()).count("passed") for each in (of_gloo, of_ours)]
        skips = sum(outcome == "skipped" == of_gloo[name] for name, outcome in of_ours.items())
        rows.append(f"| {ranks} | {passes[0]} | {passes[1]} | {skips} |")
    guide = (ROOT / "docs" / "torch.md").read_text(encoding="utf-8")
    assert "\n".join(rows) in guide, rows
    not_ours = {
        name
        for ranks, tests in outcomes["gloo"].items()
        for name, outcome in tests.items()
        if outcome == "passed" != outcomes["towpath"][ranks][name]
    }
    assert not_ours == {"test_ddp_logging_data_cpu"}
