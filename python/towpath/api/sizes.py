# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Sizes as a program gives them: bytes, texts such as "64M" or "8:1G:4", or several of them."""

from __future__ import annotations

import operator
from collections.abc import Iterable
from typing import SupportsIndex

from towpath.errors import ConfigError, quoted
from towpath.specs.sizes import SIZE_BYTES_MAX, parse_size, parse_sizes

Size = SupportsIndex | str
Sizes = Size | Iterable[Size]


def size_of(size_bytes: Size) -> int:
    """One size in bytes.

    Raises:
        ConfigError: it is not a size from 1 byte to 16 TiB.

    >>> size_of("64M")
    67108864
    """
    if isinstance(size_bytes, str):
        return parse_size(size_bytes)
    try:
        size = operator.index(size_bytes)
    except TypeError:
        raise ConfigError(
            f"size_bytes is {quoted(size_bytes)}; allowed are bytes as an int, or a text: 64M"
        ) from None
    if not 1 <= size <= SIZE_BYTES_MAX:
        raise ConfigError(f"size_bytes is {size}; allowed is 1 to {SIZE_BYTES_MAX}, 16 TiB")
    return size


def sizes_of(size_bytes: Sizes) -> list[int]:
    """One size or several, in the order given.

    Raises:
        ConfigError: one is wrong, or there is none.

    >>> sizes_of("8:64"), sizes_of(1 << 20), sizes_of([8, "1K"])
    ([8, 16, 32, 64], [1048576], [8, 1024])
    """
    if isinstance(size_bytes, str):
        return parse_sizes(size_bytes)
    if isinstance(size_bytes, Iterable):
        sizes = [size_of(each) for each in size_bytes]
        if not sizes:
            raise ConfigError("size_bytes is empty; it must hold at least one size")
        return sizes
    return [size_of(size_bytes)]
