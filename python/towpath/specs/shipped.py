# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""The specs that come with towpath, each read once."""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path
from typing import Literal

from towpath.errors import ConfigError, quoted
from towpath.specs.chip_spec import ChipSpec, parse_chip_spec
from towpath.specs.input_file import YamlDocument, parse_yaml, read_text
from towpath.specs.machine_spec import MachineSpec, parse_machine_spec

Kind = Literal["machine", "chip", "chip_cluster", "mailbox_cluster", "host"]
# What a name or a file can describe, in words.
KINDS: dict[Kind, str] = {
    "machine": "machine",
    "chip": "chip",
    "chip_cluster": "cluster of chips",
    "mailbox_cluster": "cluster with mailboxes",
    "host": "host",
}
# The form of a spec, or what every descriptor of Tenstorrent's drivers has.
_KINDS: tuple[tuple[Kind, re.Pattern[str]], ...] = (
    ("chip", re.compile(r"""(?m)^(form:[ \t]*["']?chip\b|functional_workers[ \t]*:)""")),
    (
        "chip_cluster",
        re.compile(r"""(?m)^(form:[ \t]*["']?chip_cluster\b|ethernet_connections[ \t]*:)"""),
    ),
    ("host", re.compile(r"""(?m)^form:[ \t]*["']?host\b""")),
    ("mailbox_cluster", re.compile(r"""(?m)^form:[ \t]*["']?mailbox_cluster\b""")),
)


def folder() -> Path:
    """Where the files are: inside an installed package, or beside `python/` in a source tree."""
    installed = Path(__file__).resolve().parent / "shipped"
    return installed if installed.is_dir() else Path(__file__).resolve().parents[3] / "machines"


def names(kind: Kind) -> list[str]:
    """The names of what comes with towpath, of one kind.

    >>> names("chip")
    ['blackhole', 'wormhole']
    """
    return sorted(name for name, one in kinds().items() if one == kind)


def kind_said_by(text: str) -> Kind:
    """What a text describes, by the form it names or what every descriptor has."""
    return next((kind for kind, pattern in _KINDS if pattern.search(text)), "machine")


def check(name: str, kind: Kind) -> None:
    """Raises ConfigError where nothing of that kind and name comes with towpath."""
    if name not in names(kind):
        raise no_such(name, kind, KINDS[kind])


def no_such(name: str, kind: Kind, what: str) -> ConfigError:
    """The error for a name that names nothing."""
    known = ", ".join(names(kind))
    return ConfigError(f"there is no {what} {quoted(name)}; shipped are {known}")


@lru_cache
def kinds() -> dict[str, Kind]:
    """What every shipped spec is, by name."""
    files = folder().glob("*.yaml")
    return {path.stem: kind_said_by(read_text(path)) for path in files}


@lru_cache
def machine(name: str) -> MachineSpec:
    """A shipped machine of GPUs. Specs are immutable, so its file is read once.

    Raises:
        ConfigError: there is no machine of that name.
    """
    document, file = _document(name, "machine")
    return parse_machine_spec(document, file)


@lru_cache
def chip(name: str) -> ChipSpec:
    """A shipped chip. Specs are immutable, so its file is read once.

    Raises:
        ConfigError: there is no chip of that name.
    """
    document, file = _document(name, "chip")
    return parse_chip_spec(document, file)


def _document(name: str, kind: Kind) -> tuple[YamlDocument, str]:
    check(name, kind)
    path = folder() / f"{name}.yaml"
    return parse_yaml(read_text(path), str(path)), str(path)
