# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Message sizes in the form used by people: 64M, 8:1G, 1K:1M:4, 512,4096; 64 MiB."""

from __future__ import annotations

import operator
import re
from collections.abc import Iterable
from typing import SupportsIndex

from towpath.errors import ConfigError, quoted

Size = SupportsIndex | str
Sizes = Size | Iterable[Size]

SIZE_BYTES_MAX = 1 << 44
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
_SIZE = re.compile(r"([0-9]{1,14})(?:[.]([0-9]{1,9}))?([KMGT]?)(?:i?B)?", re.IGNORECASE | re.ASCII)
_FACTOR = re.compile(r"[0-9]{1,14}")
_ALLOWED = (
    "write a size such as 64M or 1.5M, a range 8:1G or 8:1G:4 (from, to, factor), or a list "
    "8,64,512; "
    "K, M, G, T are powers of 1,024"
)


def parse_size(text: str) -> int:
    """Number of bytes of a size such as "64M" (64 * 2**20, as in nccl-tests).

    Args:
        text: a number, optionally with a decimal point, and a unit.

    Raises:
        ConfigError: the text is not a size, or not a whole number of bytes.

    >>> parse_size("64M"), parse_size("1.5K")
    (67108864, 1536)
    """
    match = _SIZE.fullmatch(text.strip())
    size_bytes, rest = 0, 0
    if match is not None:
        digits = match[2] or ""
        scaled = int(match[1] + digits) * _UNITS[match[3].upper()]
        size_bytes, rest = divmod(scaled, 10 ** len(digits))
    if rest or not 1 <= size_bytes <= SIZE_BYTES_MAX:
        problem = "is not a whole number of bytes" if rest else "is not a size from 1 byte to 16T"
        raise ConfigError(f"{quoted(text)} {problem}; {_ALLOWED}")
    return size_bytes


def parse_sizes(text: str) -> list[int]:
    """The sizes in bytes of a range or list.

    Raises:
        ConfigError: the text is neither.

    >>> parse_sizes("8:64")
    [8, 16, 32, 64]
    """
    if ":" not in text:
        return [parse_size(part) for part in text.split(",")]
    parts = text.split(":")
    has_factor = len(parts) == 3 and _FACTOR.fullmatch(parts[2].strip()) is not None
    factor = int(parts[2]) if has_factor else 2
    if len(parts) > 3 or factor < 2 or (len(parts) == 3 and not has_factor):
        raise ConfigError(f"{quoted(text)} is not a range of sizes; {_ALLOWED}")
    size_bytes, last_bytes = parse_size(parts[0]), parse_size(parts[1])
    if size_bytes > last_bytes:
        raise ConfigError(f"{quoted(text)} ends before it starts; {_ALLOWED}")
    sizes = []
    while size_bytes <= last_bytes:
        sizes.append(size_bytes)
        size_bytes *= factor
    return sizes


def format_size(size_bytes: int) -> str:
    """A size in the largest binary unit that does not exceed it.

    >>> format_size(8), format_size(1536), format_size(1 << 30)
    ('8 B', '1.5 KiB', '1 GiB')
    """
    size, unit = float(size_bytes), "B"
    for larger in ("KiB", "MiB", "GiB", "TiB"):
        if size < 1024:
            break
        size, unit = size / 1024, larger
    return f"{size:.4g} {unit}"


def size_of(size_bytes: Size) -> int:
    """One size in bytes.

    Raises:
        ConfigError: the value is not a size from 1 byte to 16 TiB.

    >>> size_of("64M")
    67108864
    """
    if isinstance(size_bytes, str):
        return parse_size(size_bytes)
    try:
        size = operator.index(size_bytes)
    except TypeError:
        raise ConfigError(
            f"size_bytes is {quoted(size_bytes)}; it must be bytes as an int, or a text such as 64M"
        ) from None
    if not 1 <= size <= SIZE_BYTES_MAX:
        raise ConfigError(f"size_bytes is {size}; it must be 1 to {SIZE_BYTES_MAX}, 16 TiB")
    return size


def sizes_of(size_bytes: Sizes) -> list[int]:
    """One size or several, in the given order.

    Raises:
        ConfigError: a size is wrong, or there are none.

    >>> sizes_of("8:64"), sizes_of(1 << 20), sizes_of([8, "1K"])
    ([8, 16, 32, 64], [1048576], [8, 1024])
    """
    if isinstance(size_bytes, str):
        return parse_sizes(size_bytes)
    if isinstance(size_bytes, Iterable):
        sizes = [size_of(each) for each in size_bytes]
        if not sizes:
            raise ConfigError("size_bytes is empty; give at least one size")
        return sizes
    return [size_of(size_bytes)]
