# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""The library of kernels, compiled for processors or for GPUs: the functions of `penny.cu`."""

from __future__ import annotations

import ctypes
import hashlib
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from towpath import _core
from towpath.collectives.live_communicator import Communicator
from towpath.compiled import cache_folder, compiled
from towpath.errors import ConfigError
from towpath.kernels.gpu_kernel import GpuKernel
from towpath.kernels.nvshmem_home import nvshmem_home
from towpath.kernels.penny_source import compile_flags, sources

FUNCTIONS = (
    "penny_unique_id", "penny_begin", "penny_end", "penny_allocate", "penny_release",
    "penny_all_reduce",
)  # fmt: skip
_ERROR_BYTES = 256
# nvcc takes a minute.
_BUILD_TIMEOUT_S = 900.0


class Library(Protocol):
    """Functions of `penny.cu`, called by name with numbers and addresses as arguments."""

    def call(self, function: str, arguments: Sequence[int]) -> None:
        """Calls a function of the library that returns no value."""


def checked_call(library: Library, function: str, *arguments: int) -> None:
    """Calls a function whose last argument receives its error.

    Raises:
        ConfigError: the function reports an error.
    """
    error = ctypes.create_string_buffer(_ERROR_BYTES)
    library.call(function, [*arguments, ctypes.addressof(error)])
    if error.value:
        raise ConfigError(error.value.decode())


class HostLibrary:
    """Kernels that run in this process, between processes of this host."""

    def __init__(self, communicator: Communicator) -> None:
        """Compiles the library, unless it is already compiled.

        Args:
            communicator: the communicator of the processes; it stays open as long as this object is
                used.
        """
        source = GpuKernel(str(sources() / "penny.cu"), FUNCTIONS, compile_flags())
        compiled = str(source.compile(live=True, checked=False))
        self._pe = _core.LivePe(communicator._open, compiled, communicator.timeout_s)

    def call(self, function: str, arguments: Sequence[int]) -> None:
        """Calls a function, and returns when the streams are idle. See `Library.call`."""
        self._pe.call(function, [int(argument) for argument in arguments])


class GpuLibrary:
    """Kernels that run on the GPU of this process."""

    def __init__(self, architecture: str) -> None:
        """Compiles the library with nvcc, unless it is already compiled.

        Args:
            architecture: architecture of the GPU: "sm_90".

        Raises:
            ConfigError: nvcc or NVSHMEM is missing, or nvcc fails.
        """
        self._library = ctypes.CDLL(str(build_for_gpu(architecture)), mode=ctypes.RTLD_GLOBAL)

    def call(self, function: str, arguments: Sequence[int]) -> None:
        """Calls a function. Kernels may still run when it returns. See `Library.call`."""
        getattr(self._library, function)(*(ctypes.c_uint64(argument) for argument in arguments))


def build_command(source: Path, library: Path, architecture: str) -> list[str]:
    """The nvcc command that builds the library for GPUs.

    Args:
        source: penny.cu, with its headers in the neighboring folder `include`.
        library: the output file.
        architecture: architecture of the GPU: "sm_90".

    Raises:
        ConfigError: nvcc or NVSHMEM is missing.
    """
    nvcc = shutil.which("nvcc")
    if nvcc is None:
        raise ConfigError("tensors of a GPU need nvcc the first time; it is not in $PATH")
    home = nvshmem_home()
    if home is None:
        raise ConfigError(
            "tensors of a GPU need NVSHMEM; pip install nvidia-nvshmem-cu13, or set NVSHMEM_HOME"
        )
    libraries = home / "lib"
    host = next(iter(sorted(libraries.glob("libnvshmem_host.so*"))), None)
    if host is None:
        raise ConfigError(f"NVSHMEM in {home} has no lib/libnvshmem_host.so")
    return [
        nvcc, "-std=c++17", "-O3", f"-arch={architecture}", "-rdc=true", "-shared",
        "-Xcompiler", "-fPIC", f"-I{source.parent / 'include'}", f"-I{home / 'include'}",
        str(source), "-o", str(library), f"-L{libraries}", "-lnvshmem_device", f"-l:{host.name}",
        "-Xlinker", f"-rpath={libraries}",
    ]  # fmt: skip


def build_for_gpu(architecture: str) -> Path:
    """The library for GPUs, built by nvcc unless it already exists.

    Raises:
        ConfigError: nvcc or NVSHMEM is missing, or nvcc fails.
    """
    source = sources() / "penny.cu"
    command = build_command(source, Path("penny.so"), architecture)
    digest = hashlib.sha256("\n".join(command).encode())
    for file in (source, *sorted((sources() / "include" / "penny").iterdir())):
        digest.update(file.read_bytes())
    return compiled(
        cache_folder("penny") / digest.hexdigest()[:16] / "penny.so",
        lambda unfinished: build_command(source, unfinished, architecture),
        subject="penny for GPUs", timeout_s=_BUILD_TIMEOUT_S,
    )  # fmt: skip
