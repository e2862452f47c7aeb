# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Files that commands write."""

from __future__ import annotations

import os
import shlex
import sys
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
