# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""OpenSHMEM programs in C and C++: compiled with this package's library, and run as processes."""

from __future__ import annotations

import math
import os
import secrets
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from towpath.errors import ConfigError
from towpath.processes import ending_with_parent

# Time for the other PEs to report after one of them failed, in seconds.
_LAST_WORDS_S = 3.0
COMPILERS = {".c": "cc", ".cpp": "c++", ".cc": "c++", ".cxx": "c++"}


def compiler_flags() -> list[str]:
    """Flags with which a compiler finds shmem.h and the library, and the program finds the library
    at run time.
    """
    from towpath import _core

    package = Path(_core.__file__).parent
    return [f"-I{package / 'shmem_include'}", f"-L{package}", f"-Wl,-rpath,{package}",
            "-ltowpath_shmem"]  # fmt: skip


def compile_program(file: Path, program: Path, flags: Sequence[str] = ()) -> None:
    """Compiles a source into a program.

    Args:
        file: a source in C or C++; $CC and $CXX select compilers other than cc and c++.
        program: the program to create.
        flags: further compiler flags.

    Raises:
        ConfigError: the file is not such a source, or it does not compile; the text is the
        compiler's.
    """
    compiler = COMPILERS.get(file.suffix)
    if compiler is None:
        raise ConfigError(
            f"'{file}' does not have the name of a source; it must end in one of "
            f"{', '.join(COMPILERS)}"
        )
    if not file.is_file():
        raise ConfigError(f"there is no file '{file}'")
    compiler = os.environ.get("CC" if compiler == "cc" else "CXX", compiler)
    command = [compiler, "-O2", str(file), *flags, "-o", str(program), *compiler_flags(), "-lm"]
    try:
        done = subprocess.run(command, capture_output=True, text=True)
    except OSError as error:
        raise ConfigError(
            f"'{file}' needs the compiler '{compiler}', which cannot be started "
            f"({error.strerror}); install gcc and g++, or name other compilers in CC and CXX"
        ) from None
    if done.returncode != 0:
        raise ConfigError(f"'{file}' does not compile: {done.stderr.strip()}")


def run_program(
    program: Path, pes: int, arguments: Sequence[str] = (), *, timeout_s: float = 60.0
) -> int:
    """Runs a compiled program as the PEs of one group.

    A PE that fails ends all PEs. Standard error receives one line for each PE that ended by a
    signal or by a status of its own. No PE outlives this process.

    Args:
        program: a program linked with `compiler_flags`.
        pes: the number of processes.
        arguments: arguments of main().
        timeout_s: longest time that a PE waits for another PE, in seconds.

    Returns:
        The highest exit status of a PE, 128 + n after signal n, or the status of shmem_global_exit.
    """
    with _Pes(program, pes, arguments, timeout_s) as processes:
        return processes.wait()


class _Pes:
    """The processes of one program. As a context manager, it ends them."""

    def __init__(self, program: Path, pes: int, arguments: Sequence[str], timeout_s: float) -> None:
        self._read_end, write_end = os.pipe()
        self._notice = os.memfd_create("towpath-notice")
        self._open = [self._read_end, write_end, self._notice]
        self._processes: list[subprocess.Popen[bytes]] = []
        # The PEs that sent each word: they joined, printed the reason of a failure, or finished.
        self._sent: dict[str, set[int]] = {"joined": set(), "failed": set(), "finished": set()}
        self._exit: int | None = None  # the status of shmem_global_exit
        environment = {
            **os.environ, "TOWPATH_RANKS": str(pes), "TOWPATH_LAUNCHER_FD": str(write_end),
            "TOWPATH_NOTICE_FD": str(self._notice),
            "TOWPATH_RENDEZVOUS": f"shmem-{os.getpid()}-{secrets.token_hex(6)}",
            "TOWPATH_TIMEOUT_S": f"{timeout_s:g}",
        }  # fmt: skip
        try:
            for pe in range(pes):
                process = subprocess.Popen(
                    [str(program), *arguments], env={**environment, "TOWPATH_RANK": str(pe)},
                    pass_fds=(write_end, self._notice), preexec_fn=ending_with_parent(),
                )  # fmt: skip
                self._processes.append(process)
        except BaseException:
            self.__exit__()
            raise

    def __enter__(self) -> _Pes:
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._processes:
            if process.poll() is None:
                process.kill()
            process.wait()
        for descriptor in self._open:
            os.close(descriptor)

    def wait(self) -> int:
        """Waits until all processes have ended, or one of them has ended the program. Returns the
        status.
        """
        deadline = math.inf
        while True:
            codes = [process.poll() for process in self._processes]
            self._receive()
            if self._exit is not None:
                return self._exit
            if any(codes):
                deadline = min(deadline, time.monotonic() + _LAST_WORDS_S)
            if None not in codes or time.monotonic() > deadline:
                break
            self._give_notice(codes)
            time.sleep(0.005)
        if any(codes):
            self._report(codes)
        return max((128 - code if code < 0 else code for code in codes if code), default=0)

    def _receive(self) -> None:
        readable, _, _ = select.select([self._read_end], [], [], 0)
        lines = os.read(self._read_end, 4096).decode().split("\n") if readable else []
        for word, number in (line.split() for line in lines if line):
            if word == "exit":
                self._exit = int(number)
            else:
                self._sent[word].add(int(number))

    def _give_notice(self, codes: list[int | None]) -> None:
        """Reports the first PE that ended before it joined to the PEs that wait for it."""
        for pe, code in enumerate(codes):
            if code is not None and pe not in self._sent["joined"]:
                os.pwrite(self._notice, f"{pe} {_end_of(code)}".encode(), 0)
                return

    def _report(self, codes: list[int | None]) -> None:
        for pe, code in enumerate(codes):
            is_known = pe in self._sent["failed"] or (code == 0 and pe in self._sent["finished"])
            if code is not None and not is_known:
                line = f"PE {pe} (pid {self._processes[pe].pid}) {_end_of(code)}"
                print(line, file=sys.stderr)


def _end_of(code: int) -> str:
    """The predicate of a sentence about a process."""
    return f"was killed by {signal.Signals(-code).name}" if code < 0 else f"exited with {code}"


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
