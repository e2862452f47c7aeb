# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Follows a tutorial: saves its files, runs its commands, and compares their output with the page.

    python tools/follow_tutorial.py docs/tutorial_gpu_kernel.md

A fence with the name of a file holds its text. A fence `console` holds a command and its output;
`...` stands for any text. The commands run with this Python's towpath, in a new folder. Prints each
command with its seconds. Ends with status 1 at the first difference.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

TIMEOUT_S = 600


def files(text: str) -> Iterator[tuple[str, str]]:
    """Name and content of each file that the page asks for."""
    yield from re.findall(r"^```(\S+\.\w+)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def dialogues(text: str) -> Iterator[tuple[str, list[str]]]:
    """Command and printed lines of each console block."""
    for block in re.findall(r"^```console\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        command, *printed = block.splitlines()
        yield command.removeprefix("$ "), printed


def difference(command: str, printed: list[str], folder: Path) -> str | None:
    """Runs a command in a folder; None if it prints those lines, in any order.

    Processes of a run print in any order. A page that shows one line of an error expects a failure.
    """
    program, *words = shlex.split(command)
    start = ["-m", "towpath"] if program == "towpath" else []
    done = subprocess.run(
        [sys.executable, *start, *words],
        cwd=folder, capture_output=True, text=True, timeout=TIMEOUT_S,
    )  # fmt: skip
    is_error = program == "towpath" and len(printed) == 1 and printed[0].startswith("towpath: ")
    if (done.returncode != 0) != is_error:
        return f"'{command}' ends with status {done.returncode}: {done.stdout}{done.stderr}"
    found = f"{done.stdout}\n{done.stderr}".splitlines()  # a terminal shows both
    for line in printed:
        wanted = ".*".join(re.escape(part.strip()) for part in line.split("..."))
        if not any(re.fullmatch(wanted, each.strip()) for each in found):
            return f"'{command}' does not print '{line}': {done.stdout}{done.stderr}"
    return None


def follow(page: Path, folder: Path) -> str | None:
    """The first difference between a page and what happens in a folder, or None."""
    text = page.read_text(encoding="utf-8")
    for name, content in files(text):
        (folder / name).write_text(content, encoding="utf-8")
    steps = list(dialogues(text))
    if not steps:
        return f"{page} has no commands"
    for command, printed in steps:
        begin_s = time.monotonic()
        found = difference(command, printed, folder)
        if found is not None:
            return found
        print(f"{time.monotonic() - begin_s:7.2f} s  {command}", flush=True)
    return None


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as made:
        sys.exit(follow(Path(sys.argv[1]), Path(made)))
