# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Specs as YAML, in the form in which they can be read."""

from __future__ import annotations

from typing import Any

import yaml

from towpath.specs.spec_model import Frozen

_WIDTH = 100
_HEADING = (
    "# Written by towpath {version}. Every value may be edited; `towpath show FILE` checks it.\n"
)


class _Dumper(yaml.SafeDumper):
    """Indents blocks, writes small ones on one line, and does not use aliases."""

    def ignore_aliases(self, data: Any) -> bool:
        return True

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> Any:
        return super().increase_indent(flow, False)


def _mapping(dumper: yaml.SafeDumper, data: dict[str, Any]) -> yaml.Node:
    is_small = not any(isinstance(value, dict) for value in data.values()) and (
        sum(len(str(item)) + len(name) for name, item in data.items()) < _WIDTH - 30
    )
    return dumper.represent_mapping("tag:yaml.org,2002:map", data.items(), flow_style=is_small)


def _sequence(dumper: yaml.SafeDumper, data: list[Any]) -> yaml.Node:
    is_small = all(isinstance(item, (int, float, str)) for item in data) and (
        sum(len(str(item)) for item in data) < _WIDTH - 30
    )
    return dumper.represent_sequence("tag:yaml.org,2002:seq", data, flow_style=is_small)


_Dumper.add_representer(dict, _mapping)
_Dumper.add_representer(list, _sequence)


def yaml_of(spec: Frozen) -> str:
    """A spec as a YAML file. Reading it gives an equal spec.

    Args:
        spec: any spec.

    Returns:
        The text of the file, without fields that have their default values.
    """
    from importlib.metadata import version

    data = spec.model_dump(mode="json", exclude_defaults=True)
    if "form" in data:
        data = {"form": data.pop("form"), **data}
    heading = _HEADING.format(version=version("towpath"))
    return heading + yaml.dump(data, Dumper=_Dumper, sort_keys=False, width=_WIDTH)
