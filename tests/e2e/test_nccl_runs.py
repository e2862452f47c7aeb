# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""NCCL's kernels with data. `$TOWPATH_NCCL_SOURCE` names its repository, which these tests need."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from conftest import output_of, towpath_command

pytestmark = pytest.mark.slow
RELEASE = "2.21.5"
COUNTS = "0,1,7,1024,10007"


@pytest.fixture(scope="module")
def sweep(tmp_path_factory):
    """The program that compares collectives with exact results."""
    named = os.environ.get("TOWPATH_NCCL_SOURCE")
    if not named:
        pytest.skip("TOWPATH_NCCL_SOURCE names no repository of NCCL")
    program = tmp_path_factory.mktemp("nccl") / "sweep"
    towpath_command("nccl", "build", named, "--release", RELEASE)
    source = Path(__file__).parent / "nccl" / "sweep.cu"
    towpath_command("nccl", "compile", str(source), "-o", str(program), "--release", RELEASE)
    return program


def result_of(program, *words, **variables):
    """The last line of a program on a DGX H100."""
    options = [f"--env={name}={value}" for name, value in variables.items()]
    return output_of(
        sys.executable, "-m", "towpath", "nccl", "run", "--machine", "dgx-h100", "--hosts", "1",
        "--release", RELEASE,
        *options, "--", str(program), *words,
    ).splitlines()[-1]  # fmt: skip


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


def test_a_line_that_is_overwritten_before_it_is_read_is_named(sweep, monkeypatch):
    """A chunk of this release is longer than its slot with few threads and channels."""
    monkeypatch.setenv("TOWPATH_VIRTUAL_GPU_DEADLINE_S", "5")
    variables = {"NTHREADS": 64, "MAX_NCHANNELS": 2, "ALGO": "Ring", "PROTO": "LL"}
    found = subprocess.run(
        [
            sys.executable, "-m", "towpath", "nccl", "run", "--machine", "dgx-h100", "--hosts", "1",
            "--release", RELEASE, "--real-time",
            *(f"--env=NCCL_{name}={value}" for name, value in variables.items()),
            "--", str(sweep), "8", "all_reduce", "float", "sum", "out", "262144",
        ],
        capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    assert found.returncode != 0
    assert "rank 7, channel 1 waits for data of rank 6 in slot 7 (LL)" in found.stderr
    assert "its data reaches beyond the end of it" in found.stderr
