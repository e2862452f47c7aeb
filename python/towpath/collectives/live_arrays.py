# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Requirements on the arrays that are passed to a Communicator."""

from __future__ import annotations

from typing import Any

import numpy as np

from towpath import _core
from towpath.errors import ConfigError, quoted

# Name -> how numpy stores it.
TYPES = {name: np.dtype("uint16" if name == "bfloat16" else name) for name in _core.DATA_TYPES}
_BYTES = np.dtype(np.uint8)


def shape_of(array: np.ndarray) -> tuple[int, ...]:
    if not isinstance(array, np.ndarray):
        raise ConfigError(f"the array is a {type(array).__name__}; it must be a numpy array")
    return array.shape


def type_name(array: np.ndarray, dtype: str | None) -> str:
    if not array.dtype.isnative:
        raise ConfigError(
            f"the array's elements, {array.dtype.str}, have another byte order than this host; "
            "convert them with astype(array.dtype.newbyteorder('='))"
        )
    name = array.dtype.name if dtype is None else dtype
    if name not in TYPES:
        raise ConfigError(f"the array is of type {quoted(name)}; choose one of {', '.join(TYPES)}")
    if array.dtype.name != name and array.dtype != np.dtype(TYPES[name]):
        raise ConfigError(f"the array has elements of {array.dtype.name}, not {name}")
    return name


def checked_out(out: np.ndarray, shape: tuple[int, ...], kind: np.dtype[Any]) -> np.ndarray:
    if out.shape != shape or out.dtype != kind:
        raise ConfigError(
            f"out is {out.dtype.name} of shape {out.shape}; it must be {kind.name} of shape {shape}"
        )
    if not out.flags.c_contiguous or not out.flags.writeable:
        raise ConfigError("out must be contiguous and writable")
    return out


def like(target: np.ndarray, source: Any) -> np.ndarray:
    """The bytes of `source`, which must look like `target`."""
    is_array = isinstance(source, np.ndarray)
    array = np.ascontiguousarray(source, None if is_array else target.dtype)
    if array.shape != target.shape or array.dtype != target.dtype:
        raise ConfigError(
            f"source is {array.dtype} of shape {array.shape}, but target is "
            f"{target.dtype} of shape {target.shape}"
        )
    return as_bytes(array)


def as_bytes(array: np.ndarray) -> np.ndarray:
    return array.reshape(-1).view(_BYTES)
