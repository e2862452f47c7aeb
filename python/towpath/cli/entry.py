# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Entry point of `towpath`: exit codes, and each error as one sentence."""

from __future__ import annotations

import atexit
import errno
import gc
import os
import sys

from towpath.cli import interrupt
from towpath.errors import Interruption

# New objects after which garbage is looked for: imports make a hundred thousand, and none of it.
_COLLECTED_FROM = 100_000
_PIPE_CLOSED = 141  # as a program that SIGPIPE ends


def main() -> None:
    """Runs the command line and exits.

    Exit codes: 0 success; 1 wrong data, an incorrect schedule, or values out of tolerance; 2 a
    mistake in the command or in a file, or a failed run; 130 Ctrl-C; 141 a closed pipe.
    """
    _spare_what_takes_long()
    interruption = Interruption()
    try:
        with interrupt.interruptible(lambda: interruption.sentence):
            code = _run(interruption)
    except Exception as error:
        sentence = _sentence(error)
        if sentence is None:
            raise
        print(f"towpath: {' '.join(sentence.split())}", file=sys.stderr)
        code = 2
    sys.exit(code)


def _spare_what_takes_long() -> None:
    """Skips work of the interpreter and of pydantic that a short process does not need."""
    gc.set_threshold(_COLLECTED_FROM)
    atexit.register(_end_without_collecting)
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")


def _end_without_collecting() -> None:
    """Lets the system free the memory at exit, without a final garbage collection."""
    gc.freeze()
    core = sys.modules.get("towpath._core")
    if core is not None:
        core.allow_leaks()


def _run(interruption: Interruption) -> int:
    from towpath.cli import main as commands

    stdout = sys.stdout
    try:
        code = commands.app(prog_name="towpath", standalone_mode=False, obj=interruption)
    except SystemExit:
        if sys.stdout is not stdout:  # typer wraps it if the reader of the pipe has gone
            raise SystemExit(_PIPE_CLOSED) from None
        raise
    if sys.stdout is not None:  # started without one
        sys.stdout.flush()
    return code if isinstance(code, int) else 0


def _sentence(error: Exception) -> str | None:
    """The message for an error; None if the error is a bug."""
    import typer

    if isinstance(error, typer.TyperException):
        return error.format_message()
    if isinstance(error, MemoryError):
        return "this needs more memory than there is"
    if isinstance(error, OSError) and error.errno is not None:
        name = "standard output" if error.errno == errno.ENOSPC else None
        parts = (error.filename or name, error.strerror or error)
        return ": ".join(str(part) for part in parts if part)
    if isinstance(error, ValueError) or _is_failure(error):
        return str(error)
    return None


def _is_failure(error: Exception) -> bool:
    from towpath.errors import TowpathError

    return isinstance(error, TowpathError)
