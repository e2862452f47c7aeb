# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Files that commands write."""

from __future__ import annotations

import json
import os
import shlex
import sys
from collections.abc import Callable
from pathlib import Path

from towpath.errors import ConfigError, quoted


def check_output(path: Path | None) -> None:
    """Before minutes of work whose result could then not be written.

    Raises:
        ConfigError: it could not.
    """
    if path is None:
        return
    folder = path.parent
    if path.is_dir():
        problem = "it is a directory"
    elif not folder.is_dir():
        problem = f"there is no directory {quoted(str(folder))}"
    elif not os.access(path if path.exists() else folder, os.W_OK):
        problem = "permission denied"
    else:
        return
    raise ConfigError(f"cannot be written: {problem}", file=str(path))


def command_line() -> str:
    """What was typed, for the page that came of it."""
    return shlex.join(["towpath", *sys.argv[1:]])


def results_folder(out: Path | None, name: str) -> Path:
    """The folder that was asked for, or one of this name; made if it is not there."""
    folder = out or Path(name.replace("/", "-"))
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def deliver(
    found: object, text: str, folder: Path, as_json: bool, write_pages: Callable[[], object]
) -> None:
    """What was found: as JSON and pages in the folder, and for whoever waited."""
    plain = json.dumps(found, indent=1)
    (folder / "study.json").write_text(plain + "\n", encoding="utf-8")
    write_pages()
    print(plain if as_json else text)
    print(f"study: {folder / 'study.html'}", file=sys.stderr)
