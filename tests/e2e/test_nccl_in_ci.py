# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""The plug-in of pytest and the function of CMake for programs that use NCCL, by their example."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "07_nccl_test"
RELEASE = "2.21.5"


@pytest.fixture(scope="module")
def built():
    source = os.environ.get("TOWPATH_NCCL_SOURCE")
    if not source:
        pytest.skip("TOWPATH_NCCL_SOURCE names no repository of NCCL")
    command = [sys.executable, "-m", "towpath", "nccl", "build", source, "--release", RELEASE]
    subprocess.run(command, check=True, capture_output=True)


def pytest_run(folder, **variables):
    command = [sys.executable, "-m", "pytest", "-q", "-rs", "-p", "no:cacheprovider", str(folder)]
    return subprocess.run(
        command, capture_output=True, text=True, cwd=folder, env={**os.environ, **variables}
    )


def copied(folder):
    return shutil.copytree(EXAMPLE, folder / "example")


def test_without_a_release_tests_are_skipped_with_the_command_that_builds_one(tmp_path):
    done = pytest_run(copied(tmp_path), TOWPATH_NCCL_CACHE=str(tmp_path / "none"))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "4 skipped" in done.stdout
    assert "towpath nccl build PATH" in done.stdout


@pytest.mark.slow
def test_the_example_passes_in_pytest(built, tmp_path):
    done = pytest_run(copied(tmp_path))
    assert "4 passed" in done.stdout, done.stdout + done.stderr


@pytest.mark.slow
def test_an_error_in_the_program_fails_the_test(built, tmp_path):
    folder = copied(tmp_path)
    code = (folder / "sum.cu").read_text()
    assert code.count("gpu + 1);") == 1
    (folder / "sum.cu").write_text(code.replace("gpu + 1);", "gpu + 2);"))
    done = pytest_run(folder)
    assert "4 failed" in done.stdout, done.stdout + done.stderr


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("ctest") is None, reason="there is no CMake")
def test_the_example_passes_in_ctest(built, tmp_path):
    folder, build = copied(tmp_path), tmp_path / "build"
    bin_folder = str(Path(sys.executable).parent)
    environment = {**os.environ, "PATH": f"{bin_folder}:{os.environ['PATH']}"}
    for command in (
        ["cmake", "-S", str(folder), "-B", str(build)],
        ["cmake", "--build", str(build)],
        ["ctest", "--test-dir", str(build), "--output-on-failure"],
    ):
        done = subprocess.run(command, capture_output=True, text=True, env=environment)
        assert done.returncode == 0, done.stdout + done.stderr
    assert "100% tests passed, 0 tests failed out of 2" in done.stdout
