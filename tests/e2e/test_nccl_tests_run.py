# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""NVIDIA's nccl-tests, unmodified, on 8 virtual GPUs, and on two hosts with Open MPI.
`$TOWPATH_NCCL_SOURCE` and `$TOWPATH_NCCL_TESTS_SOURCE` name the repositories of NCCL and of
nccl-tests."""

import re
import shutil

import pytest

import towpath
from conftest import mpi_flags, mpirun, repository, run_with_nccl, towpath_command
from inside.nccl import Library

pytestmark = pytest.mark.long
RELEASE = "2.27.5"
SIZES = ("-b", "1K", "-e", "64K", "-f", "8", "-n", "1", "-w", "1")
PROGRAMS = [
    "all_gather", "all_reduce", "alltoall", "alltoallv", "broadcast", "gather", "hypercube",
    "reduce", "reduce_scatter", "scatter", "sendrecv",
]  # fmt: skip


def made(checkout, folder, *flags):
    towpath_command("nccl", "build", repository("NCCL"), "--release", RELEASE)
    towpath_command(
        "nccl", "compile", str(checkout), "-o", str(folder), "--release", RELEASE,
        *(f"--flag={flag}" for flag in flags),
    )  # fmt: skip
    return folder


@pytest.fixture(scope="module")
def programs(nccl_tests, tmp_path_factory):
    return made(nccl_tests, tmp_path_factory.mktemp("programs"))


@pytest.fixture(scope="module")
def programs_with_mpi(nccl_tests, tmp_path_factory):
    return made(nccl_tests, tmp_path_factory.mktemp("programs_with_mpi"), *mpi_flags())


def output_of(program, gpus=("-g", "8")):
    done = run_with_nccl(program, *gpus, *SIZES, release=RELEASE)
    return done.stdout + done.stderr


def rows_of(text):
    """The words of each row of the table."""
    return [line.split() for line in text.splitlines() if re.match(r"\s+\d+\s+\d+\s", line)]


def wrong_elements(text):
    """The columns #wrong of all rows, out of place and in place."""
    rows = rows_of(text)
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


@pytest.mark.parametrize("name", PROGRAMS)
def test_no_element_is_wrong_on_two_hosts(programs_with_mpi, name):
    # Two processes with 8 GPUs each. A step of hypercube needs a process for each GPU.
    processes, gpus = (16, "1") if name == "hypercube" else (2, "8")
    command = mpirun(processes, str(programs_with_mpi / f"{name}_perf"), "-g", gpus, *SIZES)
    done = run_with_nccl(*command, release=RELEASE, hosts=2)
    text = done.stdout + done.stderr
    assert set(wrong_elements(text)) == {0}
    assert "# Out of bounds values : 0 OK" in text


# nccl-tests' collectives of which `expect` has the time.
@pytest.mark.parametrize("name", ["all_reduce", "all_gather", "reduce_scatter", "broadcast"])
@pytest.mark.parametrize("hosts", [1, 2])
def test_the_table_is_that_of_expect(programs_with_mpi, name, hosts):
    words = ("-g", "8", "-b", "8", "-e", "1M", "-f", "8", "-n", "2", "-w", "1")
    command = mpirun(hosts, str(programs_with_mpi / f"{name}_perf"), *words)
    done = run_with_nccl(*command, release=RELEASE, hosts=hosts, options=())
    found = [(int(row[0]), float(row[5]), float(row[9])) for row in rows_of(done.stdout)]
    assert len(found) == 6, done.stdout + done.stderr
    library = Library(release=RELEASE)
    machine = towpath.load("dgx-h100", hosts=hosts)
    for size_bytes, out_of_place_us, in_place_us in found:
        if size_bytes == 0:
            continue
        row = machine.expect(name, size_bytes=size_bytes, library=library).rows[0]
        expected = row.out_of_place or row.in_place
        assert out_of_place_us == pytest.approx(expected.time_us, rel=0.01)
        assert in_place_us == pytest.approx((row.in_place or expected).time_us, rel=0.01)
