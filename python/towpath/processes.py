# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Processes that end with their parent."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
from collections.abc import Callable, Sequence

_PR_SET_PDEATHSIG = 1  # prctl(2)
_LIBC = ctypes.CDLL(None)
# Runs a command, and kills its whole process group once standard input ends. Standard input is a
# pipe whose other end only the parent has.
_GUARD = """
exec 3<&0
"$@" </dev/null 3<&- &
job=$!
(read -r _ <&3; kill -KILL 0) &
guard=$!
wait $job
status=$?
kill $guard
exit $status
"""


def ending_with_parent() -> Callable[[], None]:
    """A `preexec_fn` of subprocess: the kernel kills the process once its parent has ended.

    The parent is the thread that calls this. Processes that the child starts are not included.
    """
    parent = os.getpid()

    def prepare() -> None:
        _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)  # the parent has ended meanwhile

    return prepare


def run_ending_with_this_one(
    command: Sequence[str], *, timeout_s: float
) -> subprocess.CompletedProcess[str] | None:
    """Runs a command, which ends with all its processes when this process ends for any reason.

    Args:
        command: a program and its arguments.
        timeout_s: time in seconds after which all its processes are killed.

    Returns:
        Its status, output and errors; None if it was killed.
    """
    read_end, write_end = os.pipe()
    try:
        try:
            process = subprocess.Popen(
                ["/bin/sh", "-c", _GUARD, "sh", *command], start_new_session=True, text=True,
                stdin=read_end, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            )  # fmt: skip
        finally:
            os.close(read_end)
        try:
            output, errors = process.communicate(timeout=timeout_s)
        except subprocess.TimeoutExpired:
            return None
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    finally:
        os.close(write_end)
    return subprocess.CompletedProcess(list(command), process.returncode, output, errors)
