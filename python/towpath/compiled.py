# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Libraries that are compiled at their first use, and stored for only their user."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import sys
import sysconfig
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TextIO

from towpath import _core
from towpath.errors import ConfigError
from towpath.processes import run_ending_with_this_one

# Libraries of earlier versions that stay in a folder.
_KEPT = 4


def cache_folder(kind: str, named: str | None = None) -> Path:
    """The folder of one kind of compiled code, which only this user can write.

    Args:
        kind: the name of the folder in the user's cache.
        named: another folder, chosen by the user.

    Raises:
        ConfigError: other users may write to the folder, or it cannot be created.
    """
    try:
        if not named:
            return Path(_core.compile_cache(kind))
        folder = Path(named)
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        _core.check_private(str(folder))
    except (RuntimeError, OSError) as error:
        raise ConfigError(str(error)) from None
    return folder


def compiled(
    library: Path, command: Callable[[Path], Sequence[str]], *, subject: str, timeout_s: float
) -> Path:
    """Compiles a library unless it is already compiled. Its compilers end with this process.

    If several processes start at once, one of them compiles and the rest wait. A damaged library is
    compiled again.

    Args:
        library: the result, in a separate folder in `cache_folder`.
        command: the compiler's command line for an output file.
        subject: subject of the messages: "the torch backend".
        timeout_s: limit for the whole call, in seconds.

    Returns:
        `library`.

    Raises:
        ConfigError: the compiler fails or does not end in time.
    """

    def make(unfinished: Path, end: float) -> None:
        line = f"towpath: compiling {subject}; this takes a minute, once"
        print(line, file=sys.stderr, flush=True)
        _compile(library, command(unfinished), subject, end)

    return made_once(library, make, subject=subject, timeout_s=timeout_s)


def made_once(
    library: Path,
    make: Callable[[Path, float], None],
    *,
    subject: str,
    timeout_s: float,
    kept: int = _KEPT,
    others: Sequence[str] = (),
) -> Path:
    """Makes a file of compiled code unless that was done before, in one process at a time.

    Args:
        library: the result, in a folder of its own in `cache_folder`.
        make: writes a file before a time of the monotonic clock.
        subject: of the sentences: "the torch backend".
        timeout_s: for all of it, in seconds.
        kept: how many files of this kind the cache keeps, the newest ones.
        others: the names of files that `make` also writes into the folder.

    Returns:
        `library`.

    Raises:
        ConfigError: `make` raises it, or another process takes too long.
    """
    if is_intact(library):
        return library
    end = time.monotonic() + timeout_s
    library.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with (library.parent / "lock").open("a+") as lock:
        _take(lock, end, subject, timeout_s)
        if is_intact(library):
            return library
        unfinished = library.with_suffix(f".{os.getpid()}.tmp")
        try:
            make(unfinished, end)
            unfinished.replace(library)
        finally:
            unfinished.unlink(missing_ok=True)
        files = [library, *(library.with_name(name) for name in others)]
        _manifest(library).write_text(_core.manifest(list(map(str, files))), encoding="utf-8")
    _evict(library.parent, kept)
    return library


def _manifest(library: Path) -> Path:
    return library.with_suffix(".manifest")


def is_intact(library: Path) -> bool:
    """True if a file of compiled code has not changed since it was written."""
    return library.exists() and _core.is_current(str(_manifest(library)))


def _compile(library: Path, command: Sequence[str], subject: str, end: float) -> None:
    left_s = max(1.0, end - time.monotonic())
    done = run_ending_with_this_one(command, timeout_s=left_s)
    if done is None:
        raise ConfigError(
            f"{command[0]} did not compile {subject} in {left_s:.0f} s; name another compiler"
        )
    if done.returncode != 0:
        log = library.parent / "compiler.log"
        log.write_text(done.stderr, encoding="utf-8")
        first = next((line for line in done.stderr.splitlines() if "error:" in line), "")
        start = f"{first.partition('error:')[2].strip()}; " if first else ""
        raise ConfigError(
            f"{command[0]} cannot compile {subject}: {start}all of its messages are in {log}"
        )


def python_headers() -> Path:
    """The folder of Python's headers, for extensions.

    Raises:
        ConfigError: they are not installed.
    """
    folder = Path(sysconfig.get_path("include"))
    if not (folder / "Python.h").is_file():
        raise ConfigError(
            f"the headers of Python are not installed (there is no {folder / 'Python.h'}); "
            "install them, on Debian and Ubuntu with: apt-get install python3-dev"
        )
    return folder


def _take(lock: TextIO, end: float, subject: str, timeout_s: float) -> None:
    """Locks the file before the time `end` of the monotonic clock, and writes this process's number
    into it.
    """
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            break
        except BlockingIOError:
            if time.monotonic() < end:
                time.sleep(0.1)
                continue
            lock.seek(0)
            holder = lock.read().strip() or "unknown"
            raise ConfigError(
                f"process {holder} has been compiling {subject} for {timeout_s:.0f} s and holds "
                f"{lock.name}; end it and start again"
            ) from None
    lock.truncate(0)
    lock.write(str(os.getpid()))
    lock.flush()


def _evict(newest: Path, kept: int) -> None:
    """Removes the oldest folders next to the newest one."""
    folders = [each for each in newest.parent.iterdir() if (each / "lock").is_file()]
    folders.sort(key=lambda each: each.stat().st_mtime, reverse=True)
    for old in folders[kept:]:
        if old != newest:
            with contextlib.suppress(OSError):
                shutil.rmtree(old)
