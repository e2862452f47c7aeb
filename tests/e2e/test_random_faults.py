# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Faults at random moments on the live ways in: no hang, no wrong blame, and nothing is left."""

import json
import os
import random
import re
import subprocess
import sys
from collections import Counter
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
FAULTS = ("kill", "segfault", "exception", "exit 0", "exit 3", "stop")
TIMEOUT_S = 60
STOPPED_TIMEOUT_S = 1
ROUNDS_MAX = 2000
SHARES = {"launch shm": 400, "launch ucx": 200, "torch": 200, "shmem": 200}


def drawn(way, count):
    """(number, fault, rounds before it), the same in every run."""
    for number in range(count):
        chance = random.Random(f"{way} {number}")
        how = chance.choice([each for each in FAULTS if (way, each) != ("shmem", "exception")])
        yield number, how, int(ROUNDS_MAX ** chance.random())


def timeout_of(fault):
    return STOPPED_TIMEOUT_S if fault == "stop" else TIMEOUT_S


def names_the_culprit(sentences):
    """Each sentence of a survivor names rank 1, and no other rank as the one that ended."""
    innocent = "|".join(str(rank) for rank in range(RANKS) if rank != CULPRIT)
    ended = rf"(rank|PE) ({innocent}) (\(pid [^)]*\) )?(left|died|was killed|is stopped)"
    return bool(sentences) and all(
        re.search(rf"(rank|PE) {CULPRIT}\b", each) and not re.search(ended, each)
        for each in sentences
    )


def by_launch(transport, faults, tmp_path):
    for number, how, rounds in faults:
        try:
            towpath.launch(
                blame_ranks.reduce, RANKS, transport=transport, timeout_s=timeout_of(how),
                arguments=(how, rounds),
            )  # fmt: skip
        except RankError as error:
            is_named = error.rank == CULPRIT and len(error.others) == RANKS - 1
            said = list(error.others.values())
            yield number, how, is_named and names_the_culprit(said), str(error)
        else:
            yield number, how, False, "nobody failed"


def by_torch(transport, faults, tmp_path):
    pytest.importorskip("torch", reason="torch is not installed")
    faults = list(faults)
    done = subprocess.run(
        [sys.executable, str(HERE / "torch_blame.py"), *[f"{f[1]}:{f[2]}" for f in faults]],
        stdout=subprocess.PIPE, text=True, timeout=1800,
        env={**os.environ, "OMP_NUM_THREADS": "1", "TOWPATH_TRANSPORT": transport},
    )  # fmt: skip
    for (number, how, _), line in zip(faults, done.stdout.splitlines(), strict=True):
        _, said = json.loads(line)
        others = [str(said[rank]) for rank in range(RANKS) if rank != CULPRIT]
        yield number, how, names_the_culprit(others), line


def by_shmem(transport, faults, tmp_path):
    program = tmp_path / "faults"
    compile_program(ROOT / "tests" / "e2e" / "shmem" / "faults.c", program)
    for number, how, rounds in faults:
        done = subprocess.run(
            [sys.executable, "-m", "towpath", "shmem", "run", str(program), "--pes",
             str(RANKS), "--timeout", str(timeout_of(how)), "--", how, str(rounds)],
            capture_output=True, text=True, timeout=100,
        )  # fmt: skip
        lines = done.stderr.splitlines()
        others = [line for line in lines if re.match(r"PE [02]: ", line)]
        is_named = done.returncode != 0 and len(others) == RANKS - 1 and names_the_culprit(others)
        yield number, how, is_named, done.stderr


WAYS = {
    "launch shm": ("shm", by_launch), "launch ucx": ("ucx", by_launch),
    "torch": ("shm", by_torch), "shmem": ("shm", by_shmem),
}  # fmt: skip


def left_behind():
    """Processes of ranks, files of ours in shared memory, and its bytes."""
    ranks = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if str(os.getpid()) == (entry / "stat").read_text().rpartition(")")[2].split()[1]:
                ranks.append((entry / "cmdline").read_bytes())
        except OSError:
            continue
    names = sorted(name for name in os.listdir("/dev/shm") if "towpath" in name)
    return ranks, names


def inject(way, count, tmp_path):
    """How often which fault was named; the sentences of those that were not."""
    transport, run = WAYS[way]
    if transport not in _core.live_transports():
        pytest.skip("this build has no UCX")
    before = left_behind()
    bytes_before = os.statvfs("/dev/shm").f_bfree
    named, wrong = Counter(), []
    for number, how, is_named, said in run(transport, drawn(way, count), tmp_path):
        named[how] += is_named
        if not is_named:
            wrong.append((f"{way} {number}", how, said))
    print(way, dict(named), wrong)
    assert left_behind() == before
    # Other tests, which run beside this one, have memory of theirs.
    assert os.statvfs("/dev/shm").f_bfree > bytes_before - (64 << 20) // 4096
    return named, wrong


@pytest.mark.parametrize("way", ["launch shm", "shmem"])
def test_some_random_faults_are_named_and_leave_nothing(way, tmp_path):
    named, wrong = inject(way, 6, tmp_path)
    assert wrong == [] and named.total() == 6


@pytest.mark.long
@pytest.mark.parametrize("way", SHARES)
def test_a_thousand_random_faults_are_named_and_leave_nothing(way, tmp_path):
    named, wrong = inject(way, SHARES[way], tmp_path)
    assert wrong == []
    assert named.total() == SHARES[way]
