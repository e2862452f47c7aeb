# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""NCCL with ranks in several processes on one and two described hosts.

These tests need NCCL's repository, which `$TOWPATH_NCCL_SOURCE` names, and nccl-tests in
`$TOWPATH_NCCL_TESTS_SOURCE`.
"""

import contextlib
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

import towpath
from conftest import mpi_flags, mpirun, repository, towpath_command
from inside.nccl import Library

pytestmark = pytest.mark.slow
RELEASE = "2.21.5"
COUNTS = "0,1,7,1024,10007"
# In a file of its own NCCL's log has whole lines. The C library cuts those on its output.
LOG = {"DEBUG": "INFO", "DEBUG_FILE": "/dev/stdout"}
COLLECTIVES = "all_reduce,all_gather,reduce_scatter,broadcast,reduce,sendrecv,alltoall"
SIZES = (8, 4096, 65536, 1 << 20)


class Run:
    """A program in processes on hosts with `gpus` GPUs each."""

    def __init__(self, program, words, folder, **options):
        hosts, per_host = options.pop("hosts"), options.pop("per_host")
        release, real_time = options.pop("release", RELEASE), options.pop("real_time", True)
        gpus, variables = options.pop("gpus", per_host), options.pop("variables", {})
        command = [
            sys.executable, "-m", "towpath", "nccl", "run", "--machine", "dgx-h100",
            "--hosts", str(hosts), "--ranks-per-host", str(gpus), "--release", release,
            *([] if per_host is None else ["--processes-per-host", str(per_host)]),
            *(["--real-time"] if real_time else []),
            *(f"--env=NCCL_{name}={value}" for name, value in variables.items()),
            "--", str(program), *words,
        ]  # fmt: skip
        # A folder of its own for files that it may leave.
        self._folder = tempfile.mkdtemp(dir=folder)
        self.mark = f"{self._folder}-id"
        environment = {
            **os.environ, "NCCL_TEST_ID": self.mark, "TMPDIR": self._folder, **options
        }  # fmt: skip
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
        )

    def lines(self):
        """The output of a run that succeeds."""
        output, errors = self.process.communicate(timeout=900)
        assert self.process.returncode == 0, errors
        return output.splitlines()

    def errors(self):
        """The errors of a run that fails."""
        _, errors = self.process.communicate(timeout=900)
        assert self.process.returncode != 0
        return errors

    def processes(self):
        """Its processes that have not ended."""
        found = set()
        for folder in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if self.mark.encode() in (folder / "environ").read_bytes():
                    found.add(int(folder.name))
        return found - {self.process.pid}

    def left_behind(self):
        """Files that it has left on this computer."""
        shared = [name for name in os.listdir("/dev/shm") if name.startswith(("nccl", "towpath"))]
        return [*shared, *os.listdir(self._folder)]


def test_two_processes_on_one_host_get_exact_data(compiled, tmp_path):
    words = ("2", COLLECTIVES, "float", "sum", "out,in", COUNTS)
    run = Run(compiled("sweep", RELEASE), words, tmp_path, hosts=1, per_host=2)
    assert run.lines() == ["60 cases, 0 wrong"] * 2


@pytest.mark.parametrize(
    ("variables", "way"),
    [
        ({}, "P2P/CUMEM"),
        ({"CUMEM_ENABLE": "0"}, "P2P/IPC"),
        ({"P2P_DISABLE": "1"}, "SHM/direct/direct"),
        ({"P2P_DISABLE": "1", "SHM_DISABLE": "1"}, "NET/IB/[01]/GDRDMA"),
    ],
)
def test_each_way_between_processes_of_a_host_is_exact(compiled, tmp_path, variables, way):
    words = ("2", "all_reduce", "float", "sum", "out,in", COUNTS)
    variables = LOG | variables
    run = Run(compiled("sweep", RELEASE), words, tmp_path, hosts=1, per_host=2, variables=variables)
    text = "\n".join(run.lines())
    assert text.count("10 cases, 0 wrong") == 2
    ways = re.findall(r" via (\S+)", text)
    assert ways
    assert all(re.match(way, each) for each in ways), ways


def test_multicast_memory_of_four_processes_is_exact(compiled, tmp_path):
    words = ("4", "all_reduce", "float", "sum", "out,in,shifted", COUNTS)
    variables = {"ALGO": "NVLS", "PROTO": "Simple"}
    run = Run(compiled("sweep", RELEASE), words, tmp_path, hosts=1, per_host=4, variables=variables)
    assert run.lines() == ["15 cases, 0 wrong"] * 4


def test_a_program_that_starts_its_processes_itself_gets_exact_data(compiled, tmp_path):
    program = compiled("sweep", RELEASE)
    script = tmp_path / "launcher.sh"
    script.write_text(
        "#!/bin/sh\nexport WORLD_SIZE=4\nfor rank in 0 1 2 3; do\n"
        f'RANK=$rank LOCAL_RANK=$((rank % 2)) {program} "$@" &\ndone\nwait\n'
    )
    script.chmod(0o755)
    words = ("4", "all_reduce", "float", "sum", "out", COUNTS)
    run = Run(script, words, tmp_path, hosts=2, per_host=None, gpus=2)
    assert run.lines() == ["5 cases, 0 wrong"] * 4


def test_two_hosts_with_two_processes_get_exact_data(compiled, tmp_path):
    words = ("4", COLLECTIVES, "float", "sum", "out,in", COUNTS)
    run = Run(compiled("sweep", RELEASE), words, tmp_path, hosts=2, per_host=2)
    assert run.lines() == ["60 cases, 0 wrong"] * 4


def test_two_hosts_with_the_ranks_of_each_in_one_process_get_exact_data(compiled, tmp_path):
    words = ("4", "all_reduce", "float", "sum", "out,in,shifted", COUNTS)
    run = Run(compiled("sweep", RELEASE), words, tmp_path, hosts=2, per_host=1, gpus=2)
    assert run.lines() == ["15 cases, 0 wrong"] * 2


@pytest.mark.parametrize("protocol", ["LL", "LL128", "Simple"])
@pytest.mark.parametrize("algorithm", ["Ring", "Tree"])
@pytest.mark.parametrize("release", ["2.21.5", "2.27.5"])
def test_each_algorithm_and_protocol_is_exact_on_two_hosts(
    compiled, tmp_path, release, algorithm, protocol
):
    words = ("4", "all_reduce", "float", "sum", "out,in,shifted", f"{COUNTS},262144")
    run = Run(
        compiled("sweep", release), words, tmp_path, hosts=2, per_host=2, release=release,
        variables={"ALGO": algorithm, "PROTO": protocol},
    )  # fmt: skip
    assert run.lines() == ["18 cases, 0 wrong"] * 4


def test_the_adapters_are_those_of_the_machine(compiled, tmp_path):
    words = ("4", "all_reduce", "float", "sum", "out", "1")
    variables = LOG | {"DEBUG_SUBSYS": "INIT,GRAPH"}
    run = Run(
        compiled("sweep", RELEASE), words, tmp_path, hosts=2, per_host=2, variables=variables
    )  # fmt: skip
    text = "\n".join(run.lines())
    found = set(re.findall(r"\[receive\] via NET/IB/([0-9]+)/GDRDMA", text))
    assert found == {"0", "1"}


def test_the_times_on_two_hosts_are_those_of_expect(compiled, tmp_path):
    program = compiled("process_times", RELEASE)
    run = Run(program, map(str, SIZES), tmp_path, hosts=2, per_host=2, real_time=False)
    found = {int(size): float(time_us) for size, time_us in (line.split() for line in run.lines())}
    machine = towpath.load("dgx-h100", hosts=2, ranks_per_host=2)
    library = Library(release=RELEASE)
    expected = machine.expect("all_reduce", size_bytes=list(SIZES), library=library).rows
    assert list(found) == list(SIZES)
    for row in expected:
        assert found[row.size_bytes] == pytest.approx(row.out_of_place.time_us, rel=0.01)


def test_a_killed_process_is_named_and_all_end(compiled, tmp_path):
    words = ("4", "all_reduce", "float", "sum", "out", "1024")
    run = Run(compiled("sweep", RELEASE), words, tmp_path, hosts=2, per_host=2, SWEEP_KILLED="2")
    errors = run.errors()
    assert re.search(r"towpath: rank 2 \(process \d+\) was killed by signal 9 \(Killed\)", errors)
    assert run.process.returncode == 128 + signal.SIGKILL
    assert not run.processes()
    assert not run.left_behind()


@pytest.mark.parametrize("hosts", [1, 2])
def test_a_rank_that_ends_early_is_named_by_the_others(compiled, tmp_path, hosts):
    words = ("2", "all_reduce", "float", "sum", "out", "1024")
    run = Run(
        compiled("sweep", RELEASE), words, tmp_path, hosts=hosts, per_host=2 // hosts,
        SWEEP_ABSENT="1", TOWPATH_VIRTUAL_GPU_DEADLINE_S="3",
    )  # fmt: skip
    errors = run.errors()
    assert "kernels do not end: nothing has changed for 3 s" in errors
    assert re.search(r"rank 1 \(process \d+\) has ended", errors)


def test_a_rank_that_never_joins_is_named_by_the_others(compiled, tmp_path):
    program = compiled("sweep", RELEASE)
    words = ("4", "all_reduce", "float", "sum", "out", "1024")
    script = tmp_path / "absent.sh"
    script.write_text(f'#!/bin/sh\n[ "$RANK" = 3 ] && exit 0\nexec {program} "$@"\n')
    script.chmod(0o755)
    run = Run(
        script, words, tmp_path, hosts=2, per_host=2, TOWPATH_VIRTUAL_GPU_DEADLINE_S="3"
    )  # fmt: skip
    errors = run.errors()
    assert "a call of NCCL does not return: nothing has changed for 3 s" in errors
    assert "rank 3 of 4 has not entered the communicator" in errors


def test_two_runs_at_once_leave_nothing_behind(compiled, tmp_path):
    words = ("4", "all_reduce", "float", "sum", "out,in", COUNTS)
    runs = [Run(compiled("sweep", RELEASE), words, tmp_path, hosts=2, per_host=2) for _ in range(2)]
    assert [run.lines() for run in runs] == [["10 cases, 0 wrong"] * 4] * 2
    assert not [name for run in runs for name in run.left_behind()]


def test_nothing_stays_behind_a_killed_launcher(compiled, tmp_path):
    words = ("4", "all_reduce", "float", "sum", "out", ",".join(["1024"] * 20_000))
    run = Run(compiled("sweep", RELEASE), words, tmp_path, hosts=2, per_host=2)
    while not Path(run.mark).exists():  # written by rank 0
        assert run.process.poll() is None
        time.sleep(0.05)
    run.process.kill()
    run.process.communicate()
    deadline = time.monotonic() + 60
    while run.processes():
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert not run.left_behind()


@pytest.fixture(scope="module")
def with_mpi(nccl_tests, tmp_path_factory):
    """nccl-tests' all_reduce_perf with Open MPI."""
    flags = [*mpi_flags(), "-DNCCL_OS_LINUX"]
    towpath_command("nccl", "build", repository("NCCL"), "--release", RELEASE)
    flags += [f"-I{nccl_tests / name}" for name in ("src", "verifiable", "os")]
    names = ("src/all_reduce.cu", "src/common.cu", "src/timer.cc", "src/util.cu")
    files = [str(nccl_tests / name) for name in (*names, "verifiable/verifiable.cu", "os/linux.cc")]
    made = tmp_path_factory.mktemp("with_mpi") / "all_reduce_perf"
    towpath_command(
        "nccl", "compile", *files, "-o", str(made), "--release", RELEASE,
        *(f"--flag={flag}" for flag in flags),
    )  # fmt: skip
    return made


def table_of(program, hosts, processes):
    """Rows of nccl-tests: bytes, microseconds and wrong elements."""
    command = [
        sys.executable, "-m", "towpath", "nccl", "run", "--machine", "dgx-h100",
        "--hosts", str(hosts), "--ranks-per-host", str(processes // hosts), "--release", RELEASE,
        "--", *mpirun(processes, str(program), *"-b 8 -e 64K -f 8 -g 1 -n 2 -w 1".split()),
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stderr + done.stdout
    rows = [line.split() for line in done.stdout.splitlines() if re.match(r"\s+\d", line)]
    return [(int(row[0]), float(row[5]), row[8]) for row in rows]


@pytest.mark.parametrize(("hosts", "processes"), [(1, 2), (2, 4)])
def test_nccl_tests_with_mpi_print_the_table_of_expect(with_mpi, hosts, processes):
    found = table_of(with_mpi, hosts, processes)
    sizes = [8, 64, 512, 4096, 32768]
    machine = towpath.load("dgx-h100", hosts=hosts, ranks_per_host=processes // hosts)
    library = Library(release=RELEASE)
    expected = machine.expect("all_reduce", size_bytes=sizes, library=library).rows
    assert [row[0] for row in found] == sizes
    assert {row[2] for row in found} == {"0"}
    for (_, time_us, _), row in zip(found, expected, strict=True):
        assert time_us == pytest.approx(row.out_of_place.time_us, rel=0.01)
