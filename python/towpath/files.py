# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Files that are written completely or not at all."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterable
from pathlib import Path


def write_text(path: str | os.PathLike[str], text: str | Iterable[str]) -> None:
    """Writes a text file completely, or keeps the old one and raises an error that names the file.

    Args:
        path: the file, which is replaced; a device, such as /dev/stdout, is written to.
        text: its content, or parts of it in their order.

    Raises:
        OSError: the file cannot be written; the error names it.
    """
    parts = [text] if isinstance(text, str) else text
    _write(path, (part.encode() for part in parts))


def write_bytes(path: str | os.PathLike[str], content: bytes) -> None:
    """Writes a file of bytes completely, as `write_text` does.

    Args:
        path: the file, which is replaced.
        content: its content.

    Raises:
        OSError: the file cannot be written. The error names it.
    """
    _write(path, [content])


def _write(path: str | os.PathLike[str], parts: Iterable[bytes]) -> None:
    target = Path(path).resolve()
    is_device = target.exists() and not target.is_file()
    try:
        if is_device or (target.exists() and not os.access(target.parent, os.W_OK)):
            with open(target, "wb") as stream:
                stream.writelines(parts)
            return
        mode = target.stat().st_mode & 0o777 if target.exists() else 0o666
        unfinished = target.with_name(f".{target.name}.{secrets.token_hex(4)}")
        number = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
        try:
            with open(number, "wb") as stream:
                stream.writelines(parts)
            os.replace(unfinished, target)
        finally:
            unfinished.unlink(missing_ok=True)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from None
