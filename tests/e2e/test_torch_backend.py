# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""The backends of torch.distributed. Skipped where torch or a C++ compiler is absent."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import towpath
from conftest import ROOT

torch = pytest.importorskip("torch", reason="torch is not installed")
distributed = pytest.importorskip("torch.distributed")

import torch_ranks  # noqa: E402

HERE = Path(__file__).parent


@pytest.fixture(scope="module", autouse=True)
def extension():
    """Compiled once, before ranks have deadlines."""
    from towpath.torch.build import load_extension

    return load_extension()


def run_ranks(script, ranks, arguments, **environment):
    """What each rank printed; all of them must end well."""
    processes = start_ranks(script, ranks, arguments, environment)
    printed = [process.communicate(timeout=300) for process in processes]
    ends = "\n---\n".join(errors[-1500:] for _, errors in printed)
    assert [process.returncode for process in processes] == [0] * ranks, ends
    return printed


def start_ranks(script, ranks, arguments, environment):
    return [
        subprocess.Popen(
            [sys.executable, str(script), *arguments(rank)],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env={**os.environ, "OMP_NUM_THREADS": "1", **environment, "RANK": str(rank)},
        )
        for rank in range(ranks)
    ]  # fmt: skip


@pytest.mark.parametrize("ranks", [2, 4])
def test_every_rank_passes_every_test(ranks, tmp_path):
    store = str(tmp_path / "store")
    printed = run_ranks(HERE / "torch_ranks.py", ranks, lambda rank: [str(rank), str(ranks), store])
    names = [test.__name__ for test in torch_ranks.TESTS]
    assert [output.split() for output, _ in printed] == [names] * ranks


SIMULATED = """
import os
import torch
import torch.distributed as dist
import towpath.torch

simulation = towpath.torch.simulate("dgx-h100:1", ranks_per_host=2)
rank = int(os.environ["RANK"])
dist.init_process_group("towpath-sim", init_method=os.environ["STORE"], rank=rank, world_size=2)
values = torch.full((1024,), float(rank))
for _ in range(3):
    dist.all_reduce(values)
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
    os.kill(os.getpid(), signal.SIGKILL)
try:
    dist.all_reduce(torch.ones(1000))
except dist.DistBackendError as error:
    print(error)
"""


def test_a_killed_rank_is_named_by_all_others(tmp_path):
    script = tmp_path / "program.py"
    script.write_text(KILLED, encoding="utf-8")
    processes = start_ranks(script, 3, lambda rank: [], {"STORE": f"file://{tmp_path}/store"})
    printed = [process.communicate(timeout=120) for process in processes]
    assert [process.returncode for process in processes] == [0, -9, 0], printed
    for rank in (0, 2):
        culprit = rf"rank 1 \(pid {processes[1].pid}\) died while rank {rank} waited for all_reduce"
        assert re.search(culprit, printed[rank][0]), printed[rank]


@pytest.mark.long
def test_the_example_prints_what_its_communication_costs():
    port = 20000 + os.getpid() % 20000
    printed = run_ranks(
        ROOT / "examples" / "05_torch" / "train.py", 4, lambda rank: [],
        WORLD_SIZE="4", MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port),
    )  # fmt: skip
    assert re.search(r"^all_reduce +4 +3 +12,595,200 ", printed[0][1], re.MULTILINE)
    assert "computation 450.0 us" in printed[0][1]


def test_no_compiler_is_one_sentence(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", "from towpath.torch.build import load_extension; load_extension()"],
        capture_output=True, text=True,
        env={**os.environ, "TOWPATH_TORCH_CACHE": str(tmp_path), "PATH": str(tmp_path), "CXX": ""},
    )  # fmt: skip
    assert "ConfigError" in done.stderr
    assert "needs a C++ compiler" in done.stderr
