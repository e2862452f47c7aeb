# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Reads pickles of plain data, without executing anything in them.

A pickle is a program for a machine with a stack. The machine here has only the operations that
build numbers, texts, lists, tuples and dicts, so no function and no class is reached. Each
operation takes at least a byte of the file, so the file bounds the memory.
"""

from __future__ import annotations

import pickletools
from collections.abc import Callable
from typing import Any

from towpath.errors import ConfigError, quoted

_OPERATIONS_MAX = 10_000_000
_KEYS = (str, int, float, bytes, type(None))
_VALUES = frozenset(
    "BININT BININT1 BININT2 LONG1 LONG4 BINFLOAT BINUNICODE SHORT_BINUNICODE BINUNICODE8 BINBYTES "
    "SHORT_BINBYTES BINBYTES8".split()
)
_CONSTANTS = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False}
_EMPTY: dict[str, Callable[[], Any]] = {
    "EMPTY_LIST": list,
    "EMPTY_TUPLE": tuple,
    "EMPTY_DICT": dict,
}
_TUPLES = {"TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3}
_PUTS = ("BINPUT", "LONG_BINPUT", "MEMOIZE")
_IGNORED = ("PROTO", "FRAME")


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
    machine = _Machine(len(data))
    try:
        for count, (operation, argument, place) in enumerate(pickletools.genops(data)):
            if operation.name == "STOP":
                return machine.pop()
            if count > _OPERATIONS_MAX:
                problem = f"is a pickle with more than {_OPERATIONS_MAX} operations, the maximum"
                raise ConfigError(problem, file=file)
            if not machine.run(operation.name, argument):
                what = quoted(str(argument)) if argument is not None else operation.name
                raise ConfigError(
                    f"is a pickle that would run {what} at byte {place}, so it is not read: a "
                    "flight recorder dump has only plain data",
                    file=file,
                )
    except ConfigError:
        raise
    except Exception as error:  # a damaged pickle raises errors of many kinds
        problem = f"is a damaged pickle ({type(error).__name__})"
        raise ConfigError(problem, file=file) from None
    raise ConfigError("is a damaged pickle (it has no end)", file=file)


class _Machine:
    """The stack and the memory of a pickle."""

    def __init__(self, size_bytes: int) -> None:
        self._size_bytes = size_bytes
        self._stack: list[Any] = []
        self._marks: list[int] = []
        self._memory: dict[int, Any] = {}

    def pop(self) -> Any:
        """Removes the last value."""
        if len(self._stack) <= (self._marks[-1] if self._marks else 0):
            raise IndexError("the stack is empty")
        return self._stack.pop()

    def run(self, name: str, argument: Any) -> bool:
        """Runs an operation. False if it builds more than plain data."""
        if name in _IGNORED:
            return True
        if name in _VALUES:
            self._stack.append(argument)
        elif name in _CONSTANTS:
            self._stack.append(_CONSTANTS[name])
        elif name in _EMPTY:
            self._stack.append(_EMPTY[name]())
        elif name in _TUPLES:
            values = [self.pop() for _ in range(_TUPLES[name])]
            self._stack.append(tuple(reversed(values)))
        elif name in _PUTS:
            self._put(len(self._memory) if argument is None else argument)
        elif name in ("BINGET", "LONG_BINGET"):
            self._stack.append(self._memory[argument])
        else:
            return self._run_on_marks(name)
        return True

    def _run_on_marks(self, name: str) -> bool:
        """Runs an operation that fills a container, or on marks."""
        match name:
            case "MARK":
                self._marks.append(len(self._stack))
            case "POP":
                self.pop()
            case "POP_MARK":
                self._marked()
            case "DUP":
                self._stack.append(self._stack[-1])
            case "TUPLE":
                self._stack.append(tuple(self._marked()))
            case "APPEND":
                self._extend([self.pop()])
            case "APPENDS":
                self._extend(self._marked())
            case "SETITEM":
                self._set([self.pop(), self.pop()][::-1])
            case "SETITEMS":
                self._set(self._marked())
            case _:
                return False
        return True

    def _marked(self) -> list[Any]:
        """Removes the values above the last mark."""
        start = self._marks.pop()
        values = self._stack[start:]
        del self._stack[start:]
        return values

    def _put(self, index: int) -> None:
        if index > self._size_bytes:
            raise ValueError("the index exceeds the file")
        self._memory[index] = self._stack[-1]

    def _extend(self, values: list[Any]) -> None:
        if type(self._stack[-1]) is not list:
            raise TypeError("is not a list")
        self._stack[-1].extend(values)

    def _set(self, values: list[Any]) -> None:
        target = self._stack[-1]
        if type(target) is not dict or len(values) % 2:
            raise TypeError("is not a dict")
        for key, value in zip(values[::2], values[1::2], strict=True):
            # Hashing a nested tuple may take a time that is exponential in its depth.
            if not isinstance(key, _KEYS):
                raise TypeError("is not a key")
            target[key] = value
