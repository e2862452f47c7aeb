# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Values of a machine set on the command line: `fabric.spine.oversubscription=2`."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator
from itertools import product
from typing import Any

from towpath.errors import ConfigError, quoted
from towpath.specs.input_file import YamlDocument, parse_yaml
from towpath.specs.machine_spec import MachineSpec
from towpath.specs.spec_model import MUST_BE_A_BLOCK, validated

SOURCE = "set by the caller"
COMBINATIONS_MAX = 1000
# Fields that a fabric of another shape needs, where it does not have them.
_FABRICS: dict[str, dict[str, Any]] = {
    "rails": {},
    "leaf_spine": {
        "adapters_per_leaf": 32, "spines": 16,
        "oversubscription": {"value": 1, "source": "assumed: full bisection"},
    },
    "fat_tree": {"radix": 64},
    "dragonfly": {
        "adapters_per_router": 16, "routers_per_group": 16, "global_links_per_router": 16,
    },
}  # fmt: skip


def combinations(settings: Iterable[str]) -> list[tuple[str, ...]]:
    """Every combination of settings, some of which list several values.

    Args:
        settings: "path=value" or "path=value,value".

    Raises:
        ConfigError: a setting does not have this form, or there are too many combinations.

    >>> combinations(["a.b=1,2", "c=3"])
    [('a.b=1', 'c=3'), ('a.b=2', 'c=3')]
    """
    choices = []
    count = 1
    for setting in settings:
        path, values = _split(setting)
        choices.append([f"{path}={value}" for value in values.split(",")])
        count *= len(choices[-1])
        if count > COMBINATIONS_MAX:
            raise ConfigError(f"--set has more than {COMBINATIONS_MAX} combinations, the maximum")
    return list(product(*choices))


def with_settings(spec: MachineSpec, settings: Iterable[str]) -> MachineSpec:
    """The machine with changed values.

    Args:
        spec: the machine.
        settings: "path=value" each, such as "link_types.nvlink.rate_gb_per_s=400". The path of a
            quantity sets its value. A new fabric.shape sets the other fields of the fabric to
            typical values.

    Raises:
        ConfigError: a path does not exist, or a value is not allowed there.
    """
    data: dict[str, Any] = spec.model_dump()
    for setting in settings:
        path, text = _split(setting)
        value = parse_yaml(f"value: {text}", "--set").data
        assert isinstance(value, dict)
        if path == "fabric.shape" and data.get("fabric"):
            data["fabric"] = _reshaped(data["fabric"], value["value"])
            problem = _problem(spec, data)
        else:
            problem = _set(spec, data, path, value["value"])
        if problem is not None:
            raise ConfigError(f"--set {path}={text}: {problem}")
    return spec.with_fields(data)


def _problem(spec: MachineSpec, data: dict[str, Any]) -> str | None:
    """The problem of changed data. None if they are a machine."""
    try:
        validated(type(spec), YamlDocument(data, {}), "")
    except ConfigError as error:
        return error.problem
    return None


def _split(setting: str) -> tuple[str, str]:
    path, equals, value = setting.partition("=")
    if not equals or not path.strip() or not value.strip():
        raise ConfigError(f"--set is {quoted(setting)}; it must be like path.to.field=value")
    return path.strip(), value.strip()


def _set(spec: MachineSpec, data: dict[str, Any], path: str, value: Any) -> str | None:
    """Sets a value. Returns its problem, if it has one."""
    block: Any = data
    steps = path.split(".")
    for step in steps[:-1]:
        block = block.get(step) if isinstance(block, dict) else None
    last = steps[-1]
    if not isinstance(block, dict) or last not in block or last == "source":
        raise ConfigError(f"--set has no field {quoted(path)}; {_nearest(path, data)}")
    old = block[last]
    quantity = {"value": value, "source": SOURCE}
    if isinstance(old, dict) and "value" in old and "source" in old:
        block[last] = quantity
    elif isinstance(old, (dict, list, tuple)):
        raise ConfigError(f"--set has {quoted(path)}, which is a block; {_nearest(path, data)}")
    else:
        block[last] = value
        # The file of the machine does not have the field, which may be a quantity.
        if old is None and (_problem(spec, data) or "").endswith(MUST_BE_A_BLOCK):
            block[last] = quantity
    return _problem(spec, data)


def _nearest(path: str, data: dict[str, Any]) -> str:
    paths = list(_paths(data, ""))
    last = path.rpartition(".")[2]
    near = [each for each in paths if each.rpartition(".")[2] == last]
    others = [each for each in paths if each not in near]
    near += difflib.get_close_matches(path, others, cutoff=0.5)
    return f"nearest are {', '.join((near or paths)[:3])}"


def _paths(data: dict[str, Any], prefix: str) -> Iterator[str]:
    """The path of each value that can be set."""
    for name, value in data.items():
        path = f"{prefix}{name}"
        if isinstance(value, dict) and not ("value" in value and "source" in value):
            yield from _paths(value, f"{path}.")
        elif not isinstance(value, (list, tuple)) and name not in ("source", "form"):
            yield path


def _reshaped(fabric: dict[str, Any], shape: Any) -> dict[str, Any]:
    """A fabric of another shape with the same links."""
    if shape == fabric["shape"]:
        return fabric
    if shape not in _FABRICS:
        return fabric | {"shape": shape}  # the model names what is allowed
    spine = fabric.get("spine") or {}
    between = fabric.get("switch_link_type") or spine.get("link_type") or fabric["link_type"]
    new = {"shape": shape, "link_type": fabric["link_type"], "hash_seed": fabric["hash_seed"]}
    if shape == "rails":
        full = {"value": 1, "source": "assumed: full bisection"}
        return new | {"spine": {"link_type": between, "oversubscription": full}}
    if shape == "dragonfly":
        new["global_link_type"] = between
    return new | {"switch_link_type": between} | _FABRICS[str(shape)]
