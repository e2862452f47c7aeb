#!/usr/bin/env python3
# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Runs the checks of style and types. Prints what fails; exits 1 if an enforced check does.

Usage: tools/lint.py [--all] [NAME ...]
Without names, the enforced checks; with --all, also those that the sources do not pass yet.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tidy import source_files

ROOT = Path(__file__).parent.parent


@dataclass(frozen=True)
class Check:
    """One check.

    Attributes:
        name: What it is called on the command line.
        command: The command line, run in the root; it exits other than 0 where the check fails.
        is_enforced: Whether `make test` runs it: true as soon as the sources pass it.
    """

    name: str
    command: Callable[[], list[str]]
    is_enforced: bool


def installed(program: str) -> str:
    """A program beside the interpreter: the version that pyproject.toml asks for."""
    return str(Path(sys.executable).parent / program)


def cpp_files() -> list[str]:
    return [
        path for path in source_files(ROOT)
        if path.endswith((".cpp", ".hpp")) and (ROOT / path).is_file()
    ]  # fmt: skip


def text_files() -> list[str]:
    suffixes = (".md", ".py", ".cpp", ".hpp", ".h", ".yaml", ".toml", ".sh", ".jinja")
    return [path for path in source_files(ROOT) if path.endswith(suffixes)]


CHECKS = [
    Check("tidy", lambda: [sys.executable, "tools/tidy.py"], True),
    Check("ruff", lambda: [installed("ruff"), "check", "--quiet", "."], True),
    Check("ruff-format", lambda: [installed("ruff"), "format", "--check", "--quiet", "."], True),
    Check(
        "clang-format",
        lambda: [installed("clang-format"), "--dry-run", "-Werror", *cpp_files()],
        True,
    ),
    Check("limits", lambda: [sys.executable, "tools/limits.py"], True),
    Check("classes", lambda: [sys.executable, "tools/classes.py"], True),
    Check("words", lambda: [sys.executable, "tools/words.py"], True),
    Check("prose", lambda: [sys.executable, "tools/prose.py"], True),
    Check("subjects", lambda: [sys.executable, "tools/subjects.py"], True),
    Check("codespell", lambda: [installed("codespell"), *text_files()], True),
    Check("mypy", lambda: [installed("mypy"), "--no-error-summary"], True),
]


def chosen(arguments: list[str]) -> list[Check]:
    """The checks that a command line names."""
    if "--all" in arguments:
        return CHECKS
    if not arguments:
        return [check for check in CHECKS if check.is_enforced]
    known = {check.name: check for check in CHECKS}
    unknown = [name for name in arguments if name not in known]
    if unknown:
        sys.exit(f"lint: no check is called {unknown[0]!r}; there are {', '.join(known)}")
    return [known[name] for name in arguments]


def main(arguments: list[str]) -> int:
    failed = False
    for check in chosen(arguments):
        command = check.command()
        if not Path(command[0]).is_file():
            sys.exit(f"lint: {command[0]} is not installed; `make lint` installs it")
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
        if done.returncode == 0:
            continue
        output = (done.stdout + done.stderr).strip()
        word = "fails" if check.is_enforced else "is not enforced yet and fails"
        print(f"{output}\nlint: {check.name} {word}")
        failed = True
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
