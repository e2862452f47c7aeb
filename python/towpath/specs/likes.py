# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Blocks of a machine file that copy those of a shipped machine: `gpu_cost: {like: dgx-h100}`."""

from __future__ import annotations

from typing import Any

from towpath.errors import ConfigError, quoted
from towpath.specs.input_file import FieldPath, YamlDocument

_SOURCE_LENGTH_MAX = 1000


def with_likes(document: YamlDocument, file: str) -> YamlDocument:
    """The document, with each block that refers to another machine filled from that machine.

    A block with the field `like` has the fields of the other machine at the same place, and its own
    fields. The sources of the copied values begin with the machine's name.

    Args:
        document: a machine spec as written.
        file: name of the file, for errors.

    Raises:
        ConfigError: there is no such machine, or it has no such block.
    """
    return document._replace(data=_filled(document.data, (), document, file))


def _filled(data: object, path: FieldPath, document: YamlDocument, file: str) -> object:
    if isinstance(data, list):
        return [_filled(item, (*path, n), document, file) for n, item in enumerate(data)]
    if not isinstance(data, dict):
        return data
    own = {name: _filled(item, (*path, name), document, file) for name, item in data.items()}
    if "like" not in own or not path:
        return own
    donor = own.pop("like")
    return _merged(_block(donor, path, document, file), own)


def _block(donor: object, path: FieldPath, document: YamlDocument, file: str) -> object:
    from towpath.specs import shipped

    field = ".".join(map(str, path))
    line = document.lines.get((*path, "like"), 1)
    known = shipped.names("gpu_cluster")
    if not isinstance(donor, str) or donor not in known:
        problem = f"is {quoted(donor)}; choose one of {', '.join(known)}"
        raise ConfigError(problem, file=file, line=line, field=f"{field}.like")
    block: Any = shipped.machine(donor).model_dump(exclude_none=True)
    for step in path:
        if not isinstance(block, dict) or step not in block:
            problem = f"is {quoted(donor)}, which has no {field}"
            raise ConfigError(problem, file=file, line=line, field=f"{field}.like")
        block = block[step]
    return _named(block, donor)


def _named(block: Any, donor: str) -> Any:
    """The block with the donor's name before each source."""
    if not isinstance(block, dict):
        return block
    return {
        name: f"{donor}: {item}"[:_SOURCE_LENGTH_MAX]
        if name == "source" and isinstance(item, str)
        else _named(item, donor)
        for name, item in block.items()
    }


def _merged(under: Any, over: Any) -> Any:
    if not isinstance(under, dict) or not isinstance(over, dict):
        return over
    names = [*under, *(name for name in over if name not in under)]
    return {
        name: _merged(under[name], over[name]) if name in over and name in under
        else over[name] if name in over else under[name]
        for name in names
    }  # fmt: skip
