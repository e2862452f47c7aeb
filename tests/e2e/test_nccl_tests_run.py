# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""NVIDIA's nccl-tests, unmodified, on 8 virtual GPUs. `$TOWPATH_NCCL_SOURCE` and
`$TOWPATH_NCCL_TESTS_SOURCE` name the repositories of NCCL and of nccl-tests."""

import re
import shutil

import pytest

from conftest import repository, run_with_nccl, towpath_command

pytestmark = pytest.mark.long
RELEASE = "2.27.5"
SIZES = ("-b", "1K", "-e", "64K", "-f", "8", "-n", "1", "-w", "1")
PROGRAMS = [
    "all_gather", "all_reduce", "alltoall", "alltoallv", "broadcast", "gather", "hypercube",
    "reduce", "reduce_scatter", "scatter", "sendrecv",
]  # fmt: skip


def made(checkout, folder):
    towpath_command("nccl", "build", repository("NCCL"), "--release", RELEASE)
    towpath_command("nccl", "compile", str(checkout), "-o", str(folder), "--release", RELEASE)
    return folder


@pytest.fixture(scope="module")
def programs(nccl_tests, tmp_path_factory):
    return made(nccl_tests, tmp_path_factory.mktemp("programs"))


def output_of(program, gpus=("-g", "8")):
    done = run_with_nccl(program, *gpus, *SIZES, release=RELEASE)
    return done.stdout + done.stderr


def wrong_elements(text):
    """The columns #wrong of all rows, out of place and in place."""
    rows = [line.split() for line in text.splitlines() if re.match(r"\s+\d+\s+\d+\s", line)]
    assert len(rows) == 3, text
    return [int(row[column]) for row in rows for column in (-5, -1) if row[column] != "N/A"]


def test_all_programs_compile(programs):
    assert sorted(each.name for each in programs.iterdir()) == [f"{name}_perf" for name in PROGRAMS]


@pytest.mark.parametrize("name", PROGRAMS)
def test_no_element_is_wrong(programs, name):
    # The steps of hypercube depend on each other. With all GPUs in a thread they are in one group.
    gpus = ("-t", "8", "-g", "1") if name == "hypercube" else ("-g", "8")
    text = output_of(programs / f"{name}_perf", gpus)
    assert set(wrong_elements(text)) == {0}
    assert "# Out of bounds values : 0 OK" in text


def test_steps_of_a_hypercube_in_one_group_are_wrong(programs):
    assert min(wrong_elements(output_of(programs / "hypercube_perf"))) > 0


def test_a_missing_element_is_reported_by_nccl_tests(nccl_tests, tmp_path):
    checkout = shutil.copytree(nccl_tests, tmp_path / "nccl_tests")
    source = checkout / "src" / "all_reduce.cu"
    code = source.read_text()
    assert code.count("ncclAllReduce(sptr, rptr, count, type") == 1
    source.write_text(code.replace("(sptr, rptr, count, type", "(sptr, rptr, count - 1, type"))
    text = output_of(made(checkout, tmp_path / "planted") / "all_reduce_perf")
    assert min(wrong_elements(text)) > 0
    assert re.search(r"# Out of bounds values : \d+ FAILED", text)
