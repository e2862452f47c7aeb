# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Element types and reductions by name."""

from __future__ import annotations

from towpath import _core
from towpath.names import chosen

OPERATIONS: tuple[str, ...] = _core.OPERATIONS
# As PyTorch, NCCL's tests, CUDA and C call them.
_TYPE_WORDS = {
    "char": "int8", "i8": "int8", "byte": "uint8", "u8": "uint8", "int": "int32", "i32": "int32",
    "uint": "uint32", "u32": "uint32", "long": "int64", "i64": "int64", "ulong": "uint64",
    "u64": "uint64", "half": "float16", "fp16": "float16", "f16": "float16", "bf16": "bfloat16",
    "float": "float32", "fp32": "float32", "f32": "float32", "single": "float32",
    "double": "float64", "fp64": "float64", "f64": "float64",
}  # fmt: skip
_OPERATION_WORDS = {"add": "sum", "mul": "prod", "product": "prod", "mean": "avg", "average": "avg"}


def type_named(text: str, what: str = "dtype") -> str:
    """The element type that a text names: "float16", "half", "bf16".

    Args:
        text: the given text.
        what: name of the option or field for the error.

    Raises:
        ConfigError: there is no such type.
    """
    return chosen(what, text, _core.DATA_TYPES, _TYPE_WORDS)


def operation_named(text: str, what: str = "op") -> str:
    """The reduction that a text names: "sum", "avg", "mean".

    Args:
        text: the given text.
        what: name of the option or field for the error.

    Raises:
        ConfigError: there is no such reduction.
    """
    return chosen(what, text, OPERATIONS, _OPERATION_WORDS)


def type_bytes(type_name: str) -> int:
    """The size of one element in bytes.

    >>> type_bytes("int8"), type_bytes("bfloat16"), type_bytes("float64")
    (1, 2, 8)
    """
    return int(type_name.lstrip("abcdefghijklmnopqrstuvwxyz")) // 8
