# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Files that are written whole or not at all."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterable
from pathlib import Path


def write_text(path: str | os.PathLike[str], text: str | Iterable[str]) -> None:
    """Writes a file whole, or leaves what was there and says which file could not be written.

    Args:
        path: the file, which is replaced; a device, such as /dev/stdout, is written to.
        text: its content, or parts of it in their order.

    Raises:
        OSError: it cannot be written, with the name of the file.
    """
    target = Path(path)
    parts = [text] if isinstance(text, str) else text
    try:
        if target.exists() and not target.is_file():
            with open(target, "w", encoding="utf-8") as stream:
                stream.writelines(parts)
            return
        folder = target.resolve().parent
        number, unfinished = tempfile.mkstemp(prefix=f".{target.name}.", dir=folder)
        try:
            with open(number, "w", encoding="utf-8") as stream:
                stream.writelines(parts)
            os.chmod(unfinished, _mode_of(target))
            os.replace(unfinished, target.resolve())
        finally:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(unfinished)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from None


def _mode_of(target: Path) -> int:
    """The permissions of a file that is there, or of a new one."""
    if target.exists():
        return target.stat().st_mode & 0o777
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask
