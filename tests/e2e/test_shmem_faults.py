# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""An OpenSHMEM program in which one PE fails: every PE names it, with the reason, at once."""

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from conftest import ROOT
from inside.kernels import compile_program

PES = 4
# Far above what a report takes, far below the timeout of a wait.
SOON_S = 20
TIMEOUT_S = 60


@pytest.fixture(scope="module")
def program(tmp_path_factory) -> Path:
    made = tmp_path_factory.mktemp("shmem") / "faults"
    compile_program(ROOT / "tests" / "e2e" / "shmem" / "faults.c", made)
    return made


def command(program: Path, how: str, timeout_s: float) -> list[str]:
    return [sys.executable, "-m", "towpath", "shmem", "run", str(program),
            "--pes", str(PES), "--timeout", str(timeout_s), "--", how]  # fmt: skip


def run(program: Path, how: str, timeout_s: float = TIMEOUT_S) -> tuple[int, list[str], str, float]:
    """The exit status, the lines of standard error, standard output, and the time in seconds."""
    began = time.monotonic()
    done = subprocess.run(
        command(program, how, timeout_s), capture_output=True, text=True, timeout=100
    )
    return done.returncode, done.stderr.splitlines(), done.stdout, time.monotonic() - began


def test_without_a_fault_it_ends_well(program):
    assert run(program, "nothing")[:3] == (0, [], "all is well\n")


# The fault of PE 1, the exit status, what the other PEs report of it, and what PE 1 or the launcher
# adds.
FAULTS = [
    ("kill", 137, "died", "PE 1 (pid {}) was killed by SIGKILL"),
    ("segfault", 139, "died", "PE 1 (pid {}) was killed by SIGSEGV"),
    ("abort", 134, "died", "PE 1 (pid {}) was killed by SIGABRT"),
    ("exit 0", 1, "exited before shmem_finalize", "PE 1 (pid {}) exited with 0"),
    ("_exit 0", 1, "died", "PE 1 (pid {}) exited with 0"),
    ("exit 3", 3, "exited before shmem_finalize", "PE 1 (pid {}) exited with 3"),
    ("wrong PE", 1, "shmem_long_p names PE 7; it must be 0 to 3",
     "PE 1: shmem_long_p names PE 7; it must be 0 to 3"),
    ("beyond", 1, "shmem_putmem names 16 bytes at PE 0 that are not all symmetric "
     "(they begin 7992 bytes after the start of an allocation of 8000 bytes)",
     "PE 1: shmem_putmem names 16 bytes"),
    ("far beyond", 1, "shmem_long_p names 8 bytes at PE 0", "PE 1: shmem_long_p names 8 bytes"),
    ("on the stack", 1, "shmem_long_p names 8 bytes at PE 0", "PE 1: shmem_long_p names 8 bytes"),
    ("not a team", 1, "shmem_team_sync has a handle that is not a team's", "PE 1: "),
    ("root outside", 1, "shmem_broadcastmem names root 99; it must be 0 to 3", "PE 1: "),
    ("overlap", 1, "shmem_long_sum_reduce has a destination of 16 bytes that overlaps", "PE 1: "),
]  # fmt: skip


@pytest.mark.parametrize(("how", "status", "report", "own"), FAULTS, ids=[f[0] for f in FAULTS])
def test_every_pe_names_the_one_that_failed(program, how, status, report, own):
    code, lines, printed, took_s = run(program, how)
    assert code == status
    assert printed == ""
    assert took_s < SOON_S
    start, _, end = own.partition("{}")
    assert any(line.startswith(start) and end in line for line in lines), lines
    for pe in (0, 2, 3):
        [line] = [line for line in lines if line.startswith(f"PE {pe}: ")]
        assert "rank 1 (pid " in line
        assert report in line


MISMATCHES = {
    "finalize": "shmem_finalize",
    "malloc on one": "shmem_malloc of 77 bytes",
    "free on one": "shmem_free",
    "another call": "shmem_broadcastmem of 8 bytes from root 0",
    "another type": "shmem_double_sum_reduce of 8 bytes",
    "another operation": "shmem_long_max_reduce of 8 bytes",
    "another size": "shmem_long_sum_reduce of 16 bytes",
}


@pytest.mark.parametrize("how", MISMATCHES)
def test_different_calls_end_before_any_data_is_written(program, how):
    code, lines, printed, took_s = run(program, how)
    assert code == 1
    assert printed == ""
    assert took_s < SOON_S
    call = MISMATCHES[how]
    assert len(lines) == PES
    for line in lines:
        assert "PEs disagree: " in line
        assert f"PE 1 calls {call}, but PE 0 calls shmem_barrier_all" in line or (
            f"PE 2 calls shmem_barrier_all, but PE 1 calls {call}" in line
        )


@pytest.mark.parametrize(("how", "end"), [("exit", "exited with 0"), ("kill", "killed by SIGKILL")])
def test_a_pe_that_ends_before_it_joins_is_named(program, how, end):
    code, lines, _, took_s = run(program, f"{how} before init")
    assert code != 0
    assert took_s < SOON_S
    said = [line for line in lines if f"{end} before shmem_init while group" in line]
    assert len(said) == PES - 1, lines
    assert {line.partition("rank 1 ")[0] for line in said} == {"PE 0: ", "PE 2: ", "PE 3: "}


@pytest.mark.parametrize(
    ("how", "state"),
    [
        ("stop", "rank 1 (pid "),
        ("never raised", "PEs 0, 2, 3 are waiting in shmem_barrier_all; PE 1 is waiting in "
         "shmem_long_wait_until"),
    ],
)  # fmt: skip
def test_a_wait_in_vain_says_where_each_pe_is(program, how, state):
    code, lines, _, _ = run(program, how, timeout_s=2)
    assert code == 1
    late = [line for line in lines if " without success for " in line]
    assert late
    for line in lines:
        assert state in line


def pes_of(program: Path) -> list[int]:
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            arguments = (entry / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if arguments[0] == os.fsencode(program):
            found.append(int(entry.name))
    return found


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_no_pe_outlives_its_launcher(program, number):
    # A background job of a shell ignores some of these signals, and so do its children.
    launcher = subprocess.Popen(
        ["env", "--default-signal", *command(program, "never ends", TIMEOUT_S)],
        stderr=subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip
    deadline = time.monotonic() + 30
    try:
        while len(pes_of(program)) < PES:
            assert time.monotonic() < deadline
            time.sleep(0.02)
        launcher.send_signal(number)
        launcher.wait(timeout=30)
        while pes_of(program):
            assert time.monotonic() < deadline
            time.sleep(0.02)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(launcher.pid, signal.SIGKILL)
