# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""The specs that come with towpath. Each is read once."""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from towpath.errors import ConfigError, quoted
from towpath.specs.input_file import YamlDocument, parse_yaml, read_text
from towpath.specs.kinds import KINDS

if TYPE_CHECKING:
    from towpath.specs.chip_spec import ChipSpec
    from towpath.specs.machine_spec import MachineSpec

_FORM = re.compile(r"^form: ([a-z_]+)$", re.MULTILINE)


def folder() -> Path:
    """The folder of the files: inside an installed package, or next to `python/` in a
    source tree.
    """
    installed = Path(__file__).resolve().parent / "shipped"
    return installed if installed.is_dir() else Path(__file__).resolve().parents[3] / "machines"


def names(kind: str) -> list[str]:
    """The names of the shipped specs of one kind.

    >>> names("chip")
    ['blackhole', 'wormhole']
    """
    return sorted(name for name, found in kinds().items() if found == kind)


def check(name: str, kind: str) -> None:
    """Checks that a spec of that kind and name is shipped.

    Raises:
        ConfigError: there is no such spec.
    """
    if name not in names(kind):
        raise no_such(name, kind, KINDS[kind].words)


def no_such(name: str, kind: str, what: str) -> ConfigError:
    """The error for an unknown name."""
    known = ", ".join(names(kind))
    return ConfigError(f"there is no {what} {quoted(name)}; choose one of {known}")


@lru_cache
def kinds() -> dict[str, str]:
    """The kind of every shipped spec, by name."""
    kind_of_form = {form: kind.name for kind in KINDS.values() for form in kind.forms}
    return {path.stem: kind_of_form[_form_of(path)] for path in folder().glob("*.yaml")}


def description(name: str) -> str:
    """The description of a shipped spec, without checking the rest of its file."""
    data: Any = parse_yaml(read_text(folder() / f"{name}.yaml"), name).data
    return data["description"]


@lru_cache
def machine(name: str) -> MachineSpec:
    """A shipped machine with GPUs. Specs are immutable, so its file is read once.

    Raises:
        ConfigError: there is no machine of that name.
    """
    from towpath.specs.machine_spec import parse_machine_spec

    document, file = _document(name, "gpu_cluster")
    return parse_machine_spec(document, file)


@lru_cache
def chip(name: str) -> ChipSpec:
    """A shipped chip. Specs are immutable, so its file is read once.

    Raises:
        ConfigError: there is no chip of that name.
    """
    from towpath.specs.chip_spec import parse_chip_spec

    document, file = _document(name, "chip")
    return parse_chip_spec(document, file)


def _form_of(path: Path) -> str:
    """The form of a shipped spec, from its line in the file: parsing all files takes longer than a
    small run.
    """
    found = _FORM.search(read_text(path))
    assert found is not None, path
    return found[1]


def _document(name: str, kind: str) -> tuple[YamlDocument, str]:
    check(name, kind)
    path = folder() / f"{name}.yaml"
    return parse_yaml(read_text(path), str(path)), str(path)
