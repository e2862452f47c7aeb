# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""NCCL's kernels with data. `$TOWPATH_NCCL_SOURCE` names its repository, which these tests need."""

import pytest

from conftest import run_with_nccl

pytestmark = pytest.mark.slow
RELEASE, MENDED = "2.21.5", "2.27.5"
COUNTS = "0,1,7,1024,10007"


@pytest.fixture(scope="module")
def sweep(compiled):
    """The program that compares collectives with exact results."""
    return compiled("sweep", RELEASE)


def result_of(program, *words, **variables):
    """The last line of a program."""
    done = run_with_nccl(program, *words, release=RELEASE, options=(), **variables)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.splitlines()[-1]


@pytest.mark.parametrize("protocol", ["LL", "LL128", "Simple"])
@pytest.mark.parametrize("algorithm", ["Ring", "Tree"])
@pytest.mark.parametrize("ranks", [2, 3, 8])
def test_all_reduce_is_exact(sweep, ranks, algorithm, protocol):
    found = result_of(
        sweep, str(ranks), "all_reduce", "float", "sum", "out,in,shifted", COUNTS,
        NCCL_ALGO=algorithm, NCCL_PROTO=protocol,
    )  # fmt: skip
    assert found == "15 cases, 0 wrong"


@pytest.mark.parametrize("ranks", [4, 8])
def test_all_reduce_in_the_switch_is_exact(sweep, ranks):
    words = (str(ranks), "all_reduce", "float", "sum", "out,in,shifted", COUNTS)
    found = result_of(sweep, *words, NCCL_ALGO="NVLS", NCCL_PROTO="Simple")
    assert found == "15 cases, 0 wrong"


def test_lanes_of_a_warp_end_a_loop_together(sweep):
    """A warp of LL128 takes several slices of a misaligned array through its shared memory."""
    words = ("2", "all_reduce", "float", "sum", "shifted", "100000")
    found = result_of(
        sweep, *words, NCCL_ALGO="Ring", NCCL_PROTO="LL128", NCCL_MAX_NCHANNELS="1",
    )  # fmt: skip
    assert found == "1 cases, 0 wrong"


def test_memory_that_nccl_sets_to_zero_is_not_touched(compiled):
    """The queues of work of this release have 32 MiB for each rank."""
    assert int(result_of(compiled("memory", RELEASE))) < 8 * 32


# A chunk of 2.21.5 is longer than its slot with few threads and channels.
LONG_CHUNK = {
    "NCCL_NTHREADS": 64, "NCCL_MAX_NCHANNELS": 2, "NCCL_ALGO": "Ring", "NCCL_PROTO": "LL"
}  # fmt: skip


def test_a_line_that_is_overwritten_before_it_is_read_is_named(sweep, monkeypatch):
    monkeypatch.setenv("TOWPATH_VIRTUAL_GPU_DEADLINE_S", "5")
    words = ("8", "all_reduce", "float", "sum", "out", "262144")
    found = run_with_nccl(sweep, *words, release=RELEASE, **LONG_CHUNK)
    assert found.returncode != 0
    assert "rank 7, channel 1 waits for data of rank 6 in slot 7 (LL)" in found.stderr
    assert "its data reaches beyond the end of it" in found.stderr


def test_a_release_with_chunks_that_fit_is_exact_and_silent(compiled):
    words = ("8", "all_reduce", "float", "sum", "out", "262144")
    found = run_with_nccl(compiled("sweep", MENDED), *words, release=MENDED, **LONG_CHUNK)
    assert (found.stdout, found.stderr) == ("1 cases, 0 wrong\n", "")
