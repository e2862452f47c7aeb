# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Programs that use NCCL in ways that hang, or give wrong data without a word, on GPUs. On virtual
GPUs each ends with a sentence. `$TOWPATH_NCCL_SOURCE` names NCCL's repository."""

import pytest

from conftest import run_with_nccl

pytestmark = pytest.mark.slow
RELEASE = "2.21.5"
COUNT = 1 << 20
SUM = f"AllReduce of {COUNT} float32 (sum)"
# The programs are made of public reports: github.com/NVIDIA/nccl/issues/ and the number.
SENTENCES = {
    # 195
    "order": (
        f"rank 0 waits in {SUM} for rank 1, which has it in a stream behind {SUM} of another "
        "communicator"
    ),
    # 1417
    "lengths": f"AllReduce of {COUNT - 2} float32 (sum)",
    # 296
    "collectives": f"AllGather of {COUNT // 2} float32",
    "types": f"AllReduce of {COUNT} float16 (sum)",
    # 257
    "steps": f"rank 0 waits in {SUM} for rank 1, which has not called it: its last call is {SUM}",
    # 479
    "exchange": (
        f"rank 0 waits in Send of {COUNT} float32 to rank 1, and rank 1 has called its Recv from "
        f"rank 0 and has it in a stream behind Send of {COUNT} float32 to rank 0"
    ),
    # 788
    "parts": (
        f"rank 1 waits in Recv of {COUNT} float32 from rank 0, and rank 0 has not called its Send "
        "to rank 1"
    ),
    "group": f"rank 0 waits in {SUM} for rank 1, which has called it in a group that has not ended",
    "enter": "rank 1 of 2 has not entered the communicator",
}


@pytest.fixture(scope="module")
def mistakes(compiled):
    program = compiled("mistakes", RELEASE)
    run(program, "steps", "corrected")  # compiles the device code, which has no deadline
    run(program, "exchange", "corrected")
    return program


def run(program, *words):
    return run_with_nccl(program, *words, release=RELEASE)


@pytest.mark.parametrize("name", SENTENCES)
def test_a_mistake_ends_with_the_rank_its_call_and_the_other_rank(mistakes, name, monkeypatch):
    monkeypatch.setenv("TOWPATH_VIRTUAL_GPU_DEADLINE_S", "5")
    found = run(mistakes, name)
    assert found.returncode == 70, found.stdout + found.stderr
    assert SENTENCES[name] in found.stderr
    if name in ("lengths", "collectives", "types"):  # the rank that calls first is not determined
        assert SUM in found.stderr
        assert "all ranks must make the same calls in the same order" in found.stderr


@pytest.mark.parametrize("name", SENTENCES)
def test_the_corrected_program_is_right_and_silent(mistakes, name):
    found = run(mistakes, name, "corrected")
    assert (found.returncode, found.stdout, found.stderr) == (0, "right\n", "")


def test_a_call_that_nccl_refuses_is_not_compared_with_calls_of_other_ranks(mistakes):
    found = run(mistakes, "refused")
    assert (found.returncode, found.stdout, found.stderr) == (0, "right\n", "")
