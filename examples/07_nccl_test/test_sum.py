# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Tests of sum.cu without a GPU."""

from pathlib import Path

import pytest


@pytest.fixture(scope="module")
def program(towpath_nccl):
    return towpath_nccl.compile(Path(__file__).parent / "sum.cu")


@pytest.mark.parametrize("gpus", [2, 8])
@pytest.mark.parametrize("algorithm", ["Ring", "Tree"])
def test_sums_are_right(towpath_nccl, program, gpus, algorithm):
    done = towpath_nccl.run(program, "1000", ranks_per_host=gpus, env={"NCCL_ALGO": algorithm})
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"{gpus} GPUs, 1000 floats: 0 wrong\n"
