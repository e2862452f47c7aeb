# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Reads pickles of plain data, without executing anything in them.

A pickle is a program. Each of its operations is checked first: only operations that build
numbers, texts, lists, tuples, sets and dicts are allowed, so no function and no class is reached.
"""

from __future__ import annotations

import io
import pickle
import pickletools
from typing import Any

from towpath.errors import ConfigError, quoted

_ALLOWED = frozenset(
    "PROTO FRAME STOP MARK POP POP_MARK DUP NONE NEWTRUE NEWFALSE INT BININT BININT1 BININT2 LONG "
    "LONG1 LONG4 FLOAT BINFLOAT STRING BINSTRING SHORT_BINSTRING BINBYTES SHORT_BINBYTES BINBYTES8 "
    "UNICODE SHORT_BINUNICODE BINUNICODE BINUNICODE8 EMPTY_LIST APPEND APPENDS LIST EMPTY_TUPLE "
    "TUPLE TUPLE1 TUPLE2 TUPLE3 EMPTY_DICT DICT SETITEM SETITEMS EMPTY_SET ADDITEMS FROZENSET GET "
    "BINGET LONG_BINGET PUT BINPUT LONG_BINPUT MEMOIZE".split()
)
_OPERATIONS_MAX = 50_000_000
_MEMO_MAX = 50_000_000


class _Plain(pickle.Unpickler):
    """An unpickler that has no classes."""

    def find_class(self, module: str, name: str) -> Any:
        raise pickle.UnpicklingError("has a class")

    def persistent_load(self, pid: Any) -> Any:
        raise pickle.UnpicklingError("has a reference to another file")


def is_pickle(data: bytes) -> bool:
    """True if bytes begin like a pickle of protocol 2 to 5."""
    return len(data) > 2 and data[0] == 0x80 and 2 <= data[1] <= 5


def load_plain(data: bytes, file: str) -> Any:
    """The plain data of a pickle.

    Args:
        data: the pickle.
        file: its name, for errors.

    Raises:
        ConfigError: the pickle is damaged, or contains more than plain data.
    """
    try:
        for count, (operation, argument, place) in enumerate(pickletools.genops(data)):
            if operation.name not in _ALLOWED:
                what = quoted(str(argument)) if argument is not None else operation.name
                raise ConfigError(
                    f"is a pickle that would run {what} at byte {place}, so it is not read: a "
                    "flight recorder dump has only plain data",
                    file=file,
                )
            is_large = "PUT" in operation.name and int(argument or 0) > _MEMO_MAX
            if count > _OPERATIONS_MAX or is_large:
                raise ConfigError("is a pickle that is too large", file=file)
        return _Plain(io.BytesIO(data)).load()
    except ConfigError:
        raise
    except Exception as error:  # a damaged pickle raises errors of many kinds
        problem = f"is a damaged pickle ({type(error).__name__})"
        raise ConfigError(problem, file=file) from None
