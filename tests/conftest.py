# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""What tests share: where other people's data lies, and how to do without."""

import contextlib
import fcntl
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path

import pytest
from typer.testing import CliRunner

from inside.cli import main as cli
from inside.errors import Interruption
from towpath import ConfigError

ROOT = Path(__file__).parents[1]

# Builds of NCCL on this computer change what is chosen; only tests of NCCL itself have them.
if "TOWPATH_NCCL_SOURCE" not in os.environ:
    os.environ["TOWPATH_NCCL_CACHE"] = f"{tempfile.gettempdir()}/towpath-no-nccl-{os.getuid()}"

# Programs that a test starts import from tests/support as the test does.
os.environ["PYTHONPATH"] = os.pathsep.join(
    [str(ROOT / "tests" / "support"), *filter(None, [os.environ.get("PYTHONPATH")])]
)


def shared_data() -> Path:
    """The folder of data made by others: $TOWPATH_DATA, or shared/data beside the project."""
    return Path(os.environ.get("TOWPATH_DATA", ROOT.parent / "shared" / "data"))


def schedule_files() -> list[Path]:
    """Schedules that others wrote, as MSCCL XML; none where the data is absent."""
    return sorted((shared_data() / "schedules" / "azure").glob("*.xml"))


def plan_files() -> list[Path]:
    """Execution plans of MSCCL++ that others wrote; none where the data is absent."""
    return sorted((shared_data() / "schedules" / "mscclpp").glob("*.json"))


def refusal(call, *arguments, **options) -> str:
    """The one sentence with which a call refuses what it is given."""
    with pytest.raises(ConfigError) as caught:
        call(*arguments, **options)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def joined(spec) -> list[str]:
    """Every link of a cluster of chips as its two ends, in the notation of files."""
    return [f"{link.one} {link.other}" for link in spec.links]


def towpath_command(*line: str, interruption: Interruption | None = None):
    """What the command prints; its errors are raised."""
    result = CliRunner().invoke(
        cli.app, line, standalone_mode=False, obj=interruption or Interruption()
    )
    if result.exception is not None:
        raise result.exception
    return result


def output_of(*command, **options) -> str:
    """What a command prints; the test fails with all of it if the command does."""
    done = subprocess.run(
        [str(part) for part in command], capture_output=True, text=True, timeout=3000, **options
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


# --- programs that use NCCL ----------------------------------------------------------------------


def repository(name: str) -> str:
    """The repository that $TOWPATH_NAME_SOURCE names. The test is skipped without one."""
    found = os.environ.get(f"TOWPATH_{name}_SOURCE")
    if not found:
        pytest.skip(f"TOWPATH_{name}_SOURCE names no repository")
    return found


@pytest.fixture(scope="session")
def compiled(tmp_path_factory):
    """Compiles a program of tests/e2e/nccl for a release of NCCL, once."""
    source = repository("NCCL")
    folder = tmp_path_factory.mktemp("nccl")

    def program(name: str, release: str) -> Path:
        made = folder / f"{name}-{release}"
        if not made.exists():
            code = ROOT / "tests" / "e2e" / "nccl" / f"{name}.cu"
            towpath_command("nccl", "build", source, "--release", release)
            towpath_command("nccl", "compile", str(code), "-o", str(made), "--release", release)
        return made

    return program


@pytest.fixture(scope="session")
def nccl_tests(tmp_path_factory) -> Path:
    """The files of nccl-tests."""
    source = repository("NCCL_TESTS")
    folder = tmp_path_factory.mktemp("nccl_tests")
    command = ["git", "-c", f"safe.directory={source}", "-C", source, "archive", "HEAD"]
    archive = subprocess.run(command, check=True, capture_output=True)
    subprocess.run(["tar", "x", "-C", folder], input=archive.stdout, check=True)
    return folder


def mpi_flags() -> list[str]:
    """Options of the compiler for nccl-tests with Open MPI. The test is skipped without it."""
    if not (shutil.which("mpirun") and shutil.which("mpicxx")):
        pytest.skip("there is no Open MPI")
    show = ["mpicxx", "--showme:compile"]
    flags = subprocess.run(show, check=True, capture_output=True, text=True).stdout.split()
    return [*flags, "-lmpi", "-DMPI_SUPPORT", "-DOMPI_SKIP_MPICXX"]


def mpirun(processes: int, *words: str) -> list[str]:
    """The command that starts a program in several processes, also as root."""
    root = [f"OMPI_ALLOW_RUN_AS_ROOT{end}=1" for end in ("", "_CONFIRM")]
    return ["env", *root, "mpirun", "-n", str(processes), "--oversubscribe", *words]


def run_with_nccl(
    program: Path | str,
    *words: str,
    release: str,
    hosts: int = 1,
    options: Sequence[str] = ("--real-time",),
    **variables,
) -> subprocess.CompletedProcess[str]:
    """A program that has run on DGX H100s, with any status.

    Args:
        program: from `compiled`.
        words: of its command.
        release: of NCCL.
        hosts: described hosts.
        options: of `towpath nccl run`.
        variables: that the program gets.
    """
    command = [
        sys.executable, "-m", "towpath", "nccl", "run", "--machine", "dgx-h100",
        "--hosts", str(hosts), "--release", release, *options,
        *(f"--env={name}={value}" for name, value in variables.items()),
        "--", str(program), *words,
    ]  # fmt: skip
    return subprocess.run(command, capture_output=True, text=True, timeout=7200, check=False)


@pytest.fixture
def data_folder() -> Path:
    folder = shared_data()
    if not folder.is_dir():
        pytest.skip(f"needs data made by others in {folder} (or $TOWPATH_DATA)")
    return folder


# --- the package as it is installed, outside the checkout ---------------------------------------


@contextlib.contextmanager
def build_folder():
    """The build folder, held against the other processes of a parallel run that would change it."""
    folder = ROOT / "build"
    if not (folder / "libtowpath.a").exists():
        pytest.skip("needs the build folder that `make build` leaves")
    with (folder / "tests.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield folder


@pytest.fixture(scope="session")
def wheel(tmp_path_factory) -> Path:
    """A wheel of the checkout, from the build folder, in which nothing has to be compiled again.

    It is built once, for all processes of a parallel run.
    """
    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent
    with build_folder():
        if not list(folder.glob("wheel/towpath-*.whl")):
            output_of(
                sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps",
                "--no-build-isolation", "--disable-pip-version-check",
                "--wheel-dir", folder / "wheel", ROOT,
            )  # fmt: skip
    (path,) = folder.glob("wheel/towpath-*.whl")
    return path


@pytest.fixture(scope="session")
def installed(wheel, tmp_path_factory) -> Path:
    """The folder into which the wheel is unpacked."""
    folder = tmp_path_factory.mktemp("installed")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    return folder


@pytest.fixture
def run_installed(installed, tmp_path):
    """Runs Python with arguments in an empty folder, where `towpath` is that of the wheel.

    The packages that towpath depends on are those of this environment; its own editable
    installation is out of sight, because `-S` leaves out what a `.pth` file adds.
    """
    paths = [str(installed), sysconfig.get_path("platlib"), sysconfig.get_path("purelib")]
    environment = {"PYTHONPATH": os.pathsep.join(paths), "PATH": os.environ["PATH"]}

    def call(*arguments: str) -> str:
        return output_of(sys.executable, "-S", *arguments, cwd=tmp_path, env=environment)

    return call
