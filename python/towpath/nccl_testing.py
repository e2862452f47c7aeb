# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""A plug-in of pytest for programs that use NCCL: it runs them on a host without a GPU.

pytest loads it wherever Towpath is installed. A test asks for the fixture `towpath_nccl`.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest


class NcclRunner:
    """Compiles programs for virtual GPUs, and runs them there.

    Attributes:
        releases: the releases of NCCL that are built on this host, the newest last.
    """

    def __init__(self, folder: Path, releases: list[str]) -> None:
        """Prepares a folder.

        Args:
            folder: for compiled programs.
            releases: of NCCL.
        """
        self._folder = folder
        self._count = 0
        self.releases = releases

    def compile(self, *files: str | Path, flags: tuple[str, ...] = (), release: str = "") -> Path:
        """Compiles a program.

        Args:
            files: its C++ and CUDA sources.
            flags: options of the compiler, such as "-Isrc".
            release: of NCCL, such as "2.27.5". Empty: the newest one that is built.

        Returns:
            The program.

        Raises:
            AssertionError: it does not compile.
        """
        self._count += 1
        program = self._folder / f"program-{self._count}"
        words = ["compile", *map(str, files), "-o", str(program), *_option("--release", release)]
        done = _towpath([*words, *(f"--flag={flag}" for flag in flags)], timeout_s=3600)
        assert done.returncode == 0, done.stderr
        return program

    def run(
        self,
        program: str | Path,
        *arguments: str,
        machine: str = "dgx-h100",
        hosts: int = 1,
        ranks_per_host: int | None = None,
        processes_per_host: int | None = None,
        release: str = "",
        env: Mapping[str, str] | None = None,
        timeout_s: float = 300,
    ) -> subprocess.CompletedProcess[str]:
        """Runs a program to completion.

        Args:
            program: from `compile`, or compiled by `towpath nccl compile`.
            arguments: of the program.
            machine: a described machine: a name or a file.
            hosts: number of its hosts.
            ranks_per_host: GPUs of each host. None: all.
            processes_per_host: how often the program is started on each host. None: once, on the
                first host.
            release: of NCCL, the one that the program was compiled for.
            env: variables of the program, such as NCCL_ALGO.
            timeout_s: the program fails after this time.

        Returns:
            Its status, standard output and standard error.

        Raises:
            subprocess.TimeoutExpired: it did not end.
        """
        words = ["run", "--machine", machine, "--hosts", str(hosts), *_option("--release", release)]
        if ranks_per_host is not None:
            words += ["--ranks-per-host", str(ranks_per_host)]
        if processes_per_host is not None:
            words += ["--processes-per-host", str(processes_per_host)]
        for name, value in (env or {}).items():
            words += ["--env", f"{name}={value}"]
        return _towpath([*words, "--", str(program), *arguments], timeout_s)


def _option(name: str, value: str) -> list[str]:
    return [name, value] if value else []


def _towpath(words: list[str], timeout_s: float) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "towpath", "nccl", *words]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        try:
            output, errors = process.communicate(timeout=timeout_s)
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            raise
    return subprocess.CompletedProcess(command, process.returncode, output, errors)


@pytest.fixture(scope="session")
def towpath_nccl(tmp_path_factory: pytest.TempPathFactory) -> NcclRunner:
    """Runs programs that use NCCL without a GPU. Skips the test if no release of NCCL is built."""
    found = _towpath(["list", "--json"], timeout_s=60)
    assert found.returncode == 0, found.stderr
    releases = [row["release"] for row in json.loads(found.stdout)["results"]]
    own = [release for release in releases if release[0].isdigit()]
    if not own:
        pytest.skip("no release of NCCL is built: towpath nccl build PATH --release 2.21.5")
    return NcclRunner(tmp_path_factory.mktemp("nccl"), own)
