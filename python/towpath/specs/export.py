# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Machines as JSON, which programs in C++ read with towpath/machine/load.hpp."""

from __future__ import annotations

import json
from pathlib import Path

from towpath.specs import catalogue, shipped
from towpath.specs.kinds import Spec


def json_of(spec: Spec) -> str:
    """A spec as the core reads it: resolved, every value in its unit, without sources.

    Args:
        spec: a machine of any kind.

    Raises:
        ConfigError: it is a machine of GPUs with too many devices or wires.
    """
    return _text(spec.data(), "") + "\n"


def write_shipped(folder: Path) -> list[Path]:
    """Write the JSON of every shipped machine, as NAME.json.

    Args:
        folder: where to; it must exist.

    Returns:
        The files.
    """
    files = []
    for name in sorted(shipped.kinds()):
        files.append(folder / f"{name}.json")
        files[-1].write_text(json_of(catalogue.load_any(name)), encoding="utf-8")
    return files


def _text(value: object, indent: str) -> str:
    """JSON with a line for each field, and for each item of a list of lists or blocks."""
    inner = indent + " "
    if isinstance(value, dict) and value and indent.count(" ") < 3:
        lines = [f"{inner}{json.dumps(key)}: {_text(item, inner)}" for key, item in value.items()]
        return "{\n" + ",\n".join(lines) + f"\n{indent}}}"
    if isinstance(value, list) and value and isinstance(value[0], (list, dict)):
        small = all(not isinstance(item, dict) or "form" not in item for item in value)
        lines = [inner + (json.dumps(item) if small else _text(item, inner)) for item in value]
        return "[\n" + ",\n".join(lines) + f"\n{indent}]"
    return json.dumps(value)


if __name__ == "__main__":  # python -m towpath.specs.export FOLDER
    import sys

    write_shipped(Path(sys.argv[1]))
