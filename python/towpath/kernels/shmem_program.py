# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""OpenSHMEM programs in C and C++: compiled against this package's library, run as processes."""

from __future__ import annotations

import os
import secrets
import select
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from towpath.errors import ConfigError

COMPILERS = {".c": "cc", ".cpp": "c++", ".cc": "c++", ".cxx": "c++"}


def compiler_flags() -> list[str]:
    """What a compiler needs to find shmem.h and the library, and the program to find it later."""
    from towpath import _core

    package = Path(_core.__file__).parent
    return [f"-I{package / 'shmem_include'}", f"-L{package}", f"-Wl,-rpath,{package}",
            "-ltowpath_shmem"]  # fmt: skip


def compile_program(file: Path, program: Path, flags: Sequence[str] = ()) -> None:
    """Compiles a source into a program.

    Args:
        file: in C or C++; $CC and $CXX name other compilers than cc and c++.
        program: what is made.
        flags: further ones of the compiler.

    Raises:
        ConfigError: the file is no such source, or it does not compile; the text is the compiler's.
    """
    compiler = COMPILERS.get(file.suffix)
    if compiler is None:
        raise ConfigError(f"'{file}' is not a source by its name; allowed: {', '.join(COMPILERS)}")
    if not file.is_file():
        raise ConfigError(f"there is no file '{file}'")
    compiler = os.environ.get("CC" if compiler == "cc" else "CXX", compiler)
    command = [compiler, "-O2", str(file), *flags, "-o", str(program), *compiler_flags(), "-lm"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise ConfigError(f"'{file}' does not compile: {done.stderr.strip()}")


def run_program(
    program: Path, pes: int, arguments: Sequence[str] = (), *, timeout_s: float = 60.0
) -> int:
    """Runs a compiled program as the PEs of one group.

    Args:
        program: linked with `compiler_flags`.
        pes: how many processes.
        arguments: of main().
        timeout_s: how long a PE waits for another before it gives up, in seconds.

    Returns:
        The highest exit status of a PE, 128 + n after signal n; or what shmem_global_exit gave.
    """
    read_end, write_end = os.pipe()
    environment = {
        **os.environ, "TOWPATH_RANKS": str(pes), "TOWPATH_EXIT_FD": str(write_end),
        "TOWPATH_RENDEZVOUS": f"shmem-{os.getpid()}-{secrets.token_hex(6)}",
        "TOWPATH_TIMEOUT_S": str(max(1, round(timeout_s))),
    }  # fmt: skip
    processes = []
    try:
        for pe in range(pes):
            processes.append(
                subprocess.Popen(
                    [str(program), *arguments],
                    env={**environment, "TOWPATH_RANK": str(pe)},
                    pass_fds=(write_end,),
                )
            )
        return _wait_for(processes, read_end)
    finally:
        for process in processes:
            if process.poll() is None:
                process.kill()
            process.wait()
        os.close(read_end)
        os.close(write_end)


def _wait_for(processes: list[subprocess.Popen[bytes]], read_end: int) -> int:
    """Until all have ended well, one has not, or one ended all."""
    while True:
        readable, _, _ = select.select([read_end], [], [], 0)
        if readable:
            return int(os.read(read_end, 64).split()[0])
        codes = [process.poll() for process in processes]
        ended = [code for code in codes if code is not None]
        if len(ended) == len(codes) or any(ended):
            return max((128 - code if code < 0 else code for code in ended), default=0)
        time.sleep(0.005)


def run_source(
    file: Path,
    pes: int,
    arguments: Sequence[str] = (),
    *,
    flags: Sequence[str] = (),
    timeout_s: float = 60.0,
) -> int:
    """Compiles a source and runs it; see `compile_program` and `run_program`."""
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / file.stem
        compile_program(file, program, flags)
        return run_program(program, pes, arguments, timeout_s=timeout_s)
