# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""One rank of three does something wrong, on every way in: all others name it, and say why, soon.

A table of faults and ways. vLLM is no row: it takes its collectives from the torch backend.
"""

import json
import os
import re
import secrets
import subprocess
import sys
import time
from pathlib import Path

import blame_ranks
import pytest

import towpath
from conftest import ROOT
from inside import _core
from inside.kernels import compile_program
from towpath import RankError

HERE = Path(__file__).parent
RANKS = 3
CULPRIT = blame_ranks.CULPRIT
# Far above what a report takes, far below the timeout of a wait.
SOON_S = 20
TIMEOUT_S = 60
STOPPED_TIMEOUT_S = 2  # nobody knows of a stop before
FAULTS = ("kill", "stop", "segfault", "exception", "exit 0", "exit 3", "return", "allocation",
          "mismatch")  # fmt: skip

DIED = r"died|was killed by"
LEFT = r"left"
LATE = r"is stopped|was stopped|is the straggler|waited .* without success|did not|without success"
DIFFERS = r"wants|made a different call|disagree|calls"

# What is said of the culprit, by way and fault; a sentence in brackets says why a cell is empty.
BY_LAUNCH = {
    "kill": DIED, "stop": LATE, "segfault": DIED, "exception": r"failed \(Fault: on purpose\)",
    "exit 0": "exited early with status 0", "exit 3": "exited early with status 3", "return": LEFT,
    "allocation": DIFFERS, "mismatch": DIFFERS,
}  # fmt: skip
EXPECTED = {
    "launch": BY_LAUNCH,
    "torch": {
        "kill": DIED, "stop": LATE, "segfault": DIED, "exception": LEFT, "exit 0": DIED,
        "exit 3": DIED, "return": LEFT, "allocation": "[torch allocates on a rank of its own]",
        "mismatch": DIFFERS,
    },
    "shmem": {
        "kill": DIED, "stop": LATE, "segfault": DIED, "exception": "[C has none]",
        "exit 0": "exited before shmem_finalize", "exit 3": "exited before shmem_finalize",
        "return": "calls shmem_finalize", "allocation": "calls shmem_malloc of 77 bytes",
        "mismatch": "calls shmem_broadcastmem",
    },
    "kernel": {
        "kill": "SIGKILL", "stop": "SIGSTOP|stopped", "segfault": "SIGSEGV|follows a pointer",
        "exception": "throws a value of type int", "exit 0": r"exit\(0\) without nvshmem_finalize",
        "exit 3": r"exit\(3\) without nvshmem_finalize", "return": "the return of 0 from main",
        "allocation": "mismatched symmetric allocations", "mismatch": "nvshmem_finalize at",
    },
    "penny": {
        **BY_LAUNCH, "kill": DIED, "exit 0": "exited early", "exit 3": "exited early",
        "exception": "failed", "return": "rank 1 wants penny end",
    },
}  # fmt: skip
TRANSPORTS = {
    "launch": ("shm", "ucx"),
    "torch": ("shm", "ucx"),
    "shmem": ("shm",),  # PEs are processes of one host
    "kernel": ("shm",),
    "penny": ("shm",),
}
CELLS = [
    pytest.param(
        way,
        transport,
        fault,
        id=f"{way}-{transport}-{fault}",
    )
    for way, transports in TRANSPORTS.items()
    for transport in transports
    for fault in FAULTS
]


def timeout_of(fault):
    return STOPPED_TIMEOUT_S if fault == "stop" else TIMEOUT_S


def sentences_of(function, transport, fault, arguments):
    """Of each rank that `launch` reports, and the culprit it names."""
    limit_s = timeout_of(fault)
    with pytest.raises(RankError) as caught:
        towpath.launch(function, RANKS, transport=transport, timeout_s=limit_s, arguments=arguments)
    return {**caught.value.others, caught.value.rank: str(caught.value)}, caught.value.rank


def by_launch(transport, fault, tmp_path):
    said, culprit = sentences_of(blame_ranks.reduce, transport, fault, (fault,))
    # Ranks that differ each take the other for the culprit.
    assert culprit == CULPRIT or fault in ("allocation", "mismatch")
    return said


def by_penny(transport, fault, tmp_path):
    pytest.importorskip("torch", reason="torch is not installed")
    arguments = (f"blame-{secrets.token_hex(4)}", fault, timeout_of(fault))
    return sentences_of(blame_ranks.reduce_by_penny, transport, fault, arguments)[0]


def by_torch(transport, fault, tmp_path):
    pytest.importorskip("torch", reason="torch is not installed")
    done = subprocess.run(
        [sys.executable, str(HERE / "torch_blame.py"), f"{fault}:{blame_ranks.ROUNDS}"],
        capture_output=True, text=True, timeout=250,
        env={**os.environ, "OMP_NUM_THREADS": "1", "TOWPATH_TRANSPORT": transport,
             "TOWPATH_ADDRESS": "127.0.0.1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    _, said = json.loads(done.stdout.splitlines()[-1])
    return dict(enumerate(said))


def by_shmem(transport, fault, tmp_path):
    program = tmp_path / "faults"
    compile_program(ROOT / "tests" / "e2e" / "shmem" / "faults.c", program)
    how = {"return": "finalize", "allocation": "malloc on one", "mismatch": "another call"}
    done = subprocess.run(
        [sys.executable, "-m", "towpath", "shmem", "run", str(program), "--pes",
         str(RANKS), "--timeout", str(timeout_of(fault)), "--", how.get(fault, fault)],
        capture_output=True, text=True, timeout=100,
    )  # fmt: skip
    assert done.returncode != 0
    lines = done.stderr.splitlines()
    return {
        pe: " ".join(line for line in lines if line.startswith(f"PE {pe}")) for pe in range(RANKS)
    }


KERNEL = """#include <cstdlib>
#include <cstring>
#include <nvshmem.h>
#include <nvshmemx.h>
#include <signal.h>
__global__ void ring(uint64_t* word, int round) {
  nvshmemx_signal_op(word, round, NVSHMEM_SIGNAL_SET, (nvshmem_my_pe() + 1) % nvshmem_n_pes());
  nvshmem_signal_wait_until(word, NVSHMEM_CMP_GE, round);
}
int main(int argc, char** argv) {
  nvshmem_init();
  const char* const how = argv[1];
  uint64_t* const word = static_cast<uint64_t*>(nvshmem_calloc(1, 8));
  for (int round = 1; round <= 40; ++round) {
    if (nvshmem_my_pe() == 1 && round == 20) {
      if (!strcmp(how, "kill")) raise(SIGKILL);
      if (!strcmp(how, "stop")) raise(SIGSTOP);
      if (!strcmp(how, "segfault")) *(volatile int*)nullptr = 1;
      if (!strcmp(how, "exception")) throw 5;
      if (!strcmp(how, "exit 0")) exit(0);
      if (!strcmp(how, "exit 3")) exit(3);
      if (!strcmp(how, "return")) return 0;
      if (!strcmp(how, "allocation")) nvshmem_malloc(64);
      if (!strcmp(how, "mismatch")) nvshmem_finalize();
    }
    ring<<<1, 1>>>(word, round);
    cudaDeviceSynchronize();
  }
  nvshmem_finalize();
  return 0;
}
"""


def by_kernel(transport, fault, tmp_path):
    file = tmp_path / "blame.cu"
    file.write_text(KERNEL)
    program = towpath.kernel(file)
    with pytest.raises(RankError) as caught:
        program.run_live(RANKS, arguments=[fault], timeout_s=timeout_of(fault))
    assert caught.value.rank == CULPRIT or fault in ("allocation", "mismatch"), str(caught.value)
    whole = str(caught.value).replace("\n", " ")
    return {CULPRIT: whole, **caught.value.others}


WAYS = {
    "launch": by_launch, "torch": by_torch, "shmem": by_shmem, "kernel": by_kernel,
    "penny": by_penny,
}  # fmt: skip


def blamed_in(sentence, rank):
    """Whether a sentence makes that rank the one at fault."""
    return re.search(rf"(rank|PE) {rank} (\(pid [^)]*\) )?({LEFT}|{DIED}|is stopped)", sentence)


@pytest.mark.parametrize(("way", "transport", "fault"), CELLS)
def test_the_rank_at_fault_is_named_with_the_reason(way, transport, fault, tmp_path):
    expected = EXPECTED[way][fault]
    if expected.startswith("["):
        pytest.skip(expected)
    if transport == "ucx" and "ucx" not in _core.live_transports():
        pytest.skip("this build has no UCX")
    began = time.monotonic()
    said = WAYS[way](transport, fault, tmp_path)
    took_s = time.monotonic() - began
    assert took_s < SOON_S + timeout_of(fault) * (fault == "stop")
    survivors = [rank for rank in said if rank != CULPRIT]
    assert len(survivors) == RANKS - 1 or way == "kernel", said
    for rank in survivors:
        assert re.search(rf"(rank|PE) {CULPRIT}\b", said[rank]), said
        for innocent in survivors:
            # A rank that heard of a difference from another one hears its sentence.
            assert fault in ("allocation", "mismatch") or not blamed_in(said[rank], innocent), said
    everything = " ".join(str(sentence) for sentence in said.values())
    assert re.search(expected, everything), said
    for noise in ("Traceback", "terminate called", "nothing in particular"):
        assert noise not in everything, said
