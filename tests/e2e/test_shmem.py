# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""OpenSHMEM programs run between processes, and say what Open MPI's OpenSHMEM says."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from conftest import ROOT

PROGRAMS = ROOT / "tests" / "e2e" / "shmem"


def run(file: Path, pes: int, *options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "towpath", "shmem", "run", str(file), "--pes", str(pes),
         *options],
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip


@pytest.mark.parametrize("pes", [1, 2, 5])
def test_a_program_in_c_runs(pes):
    done = run(PROGRAMS / "exchange.c", pes)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout == f"{pes} PEs, total {50 * pes * (pes + 1)}\n"


def test_a_program_in_cpp_runs():
    done = run(PROGRAMS / "teams.cpp", 4)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_same_source_says_the_same_with_open_mpi(tmp_path):
    if shutil.which("oshcc") is None or shutil.which("oshrun") is None:
        pytest.skip("Open MPI's oshcc and oshrun are not installed (openmpi-bin, libopenmpi-dev)")
    program = tmp_path / "exchange"
    source = str(PROGRAMS / "exchange.c")
    made = subprocess.run(["oshcc", source, "-o", str(program)], capture_output=True, text=True)
    if made.returncode != 0:
        pytest.skip(f"oshcc does not compile here: {made.stderr.strip()[:200]}")
    environment = {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1",
                   "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}  # fmt: skip
    theirs = subprocess.run(
        ["oshrun", "--oversubscribe", "-n", "2", str(program)],
        capture_output=True, text=True, timeout=120, env=environment,
    )  # fmt: skip
    # Debian's Open MPI may fault when it ends, after the program has said all it has to say.
    if "PEs, total" not in theirs.stdout:
        pytest.skip(f"oshrun does not run here: {theirs.stderr.strip()[:200]}")
    assert run(Path(source), 2).stdout.splitlines()[0] == theirs.stdout.splitlines()[0]


def test_a_context_has_the_numbers_of_its_team():
    done = run(PROGRAMS / "contexts.c", 4)
    assert done.returncode == 0, done.stdout + done.stderr
    nothing = "word -1, counter 0, signal 0, bits 5, values 0 0 0 0"
    assert sorted(done.stdout.splitlines()) == sorted([
        "0: alone 0, number -1", "1: alone 0, number 0", "2: alone 0, number -1",
        "3: alone 0, number -1", f"0: {nothing}", f"2: {nothing}",
        "1: word 3, counter 2, signal 0, bits 5, values 0 0 0 0",
        "3: word -1, counter 0, signal 3, bits 4, values 1 3 3 1",
    ])  # fmt: skip


def test_a_pe_outside_the_team_of_a_context_is_refused():
    done = run(PROGRAMS / "contexts.c", 4, "--", "outside")
    assert done.returncode == 1
    said = "shmem_ctx_long_p names PE 2 of a context's team; it must be 0 to 1"
    assert said in done.stderr


def test_a_forked_child_is_no_pe():
    done = run(PROGRAMS / "contexts.c", 4, "--", "fork")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "was called by a forked child of a PE" in done.stderr


def test_mistakes_are_one_sentence(tmp_path):
    source = tmp_path / "wrong.c"
    source.write_text(
        "#include <shmem.h>\nint main(void) { int here = 0; shmem_init();"
        " shmem_int_p(&here, 1, 0); shmem_finalize(); return 0; }"
    )
    done = run(source, 1)
    assert done.returncode == 1
    assert "shmem_int_p names 4 bytes at PE 0 that are not all symmetric" in done.stderr
    source.write_text(
        "#include <shmem.h>\nstatic int there[2]; int main(void) { shmem_init();"
        " shmem_putmem(there, shmem_malloc(8), 1 << 30, 0); return 0; }"
    )
    assert f"shmem_putmem names {1 << 30} bytes at PE 0" in run(source, 1).stderr
    source.write_text("int main(void) { return undeclared; }")
    assert "does not compile" in run(source, 1).stderr


def test_global_exit_ends_all(tmp_path):
    source = tmp_path / "exit.c"
    source.write_text(
        "#include <shmem.h>\nint main(void) { shmem_init();"
        " if (shmem_my_pe() == 1) shmem_global_exit(7);"
        " shmem_barrier_all(); shmem_barrier_all(); return 0; }"
    )
    assert run(source, 3).returncode == 7


def test_the_public_feature_tests_pass(tmp_path):
    """openshmem-org/tests-uh: $TOWPATH_SHMEM_TESTS names its folder feature_tests/C."""
    folder = os.environ.get("TOWPATH_SHMEM_TESTS")
    if folder is None:
        pytest.skip("$TOWPATH_SHMEM_TESTS does not name the folder feature_tests/C of tests-uh")
    sources = sorted(Path(folder).glob("test_shmem_*.c"))
    assert sources
    for source in sources:
        done = run(source, 4, "--timeout", "30", "--flag=-w")
        ends_by_itself = source.stem != "test_shmem_global_exit"
        assert (done.returncode == 0) == ends_by_itself, source.name + done.stdout + done.stderr
        assert "failed" not in done.stdout.lower(), source.name + done.stdout
