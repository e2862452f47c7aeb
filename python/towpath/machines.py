# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Finds and loads machines: the shipped ones by name, others from a file of any known kind."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from towpath.errors import ConfigError, quoted
from towpath.input_file import parse_yaml, read_text
from towpath.machine_spec import MachineSpec, parse_machine_spec


def shipped_machines() -> list[str]:
    """The names of the machines that come with towpath.

    >>> "dgx-h100" in shipped_machines()
    True
    """
    return sorted(path.stem for path in _shipped_folder().glob("*.yaml"))


def load(
    name_or_path: str | Path,
    hosts: int | None = None,
    ranks: int | None = None,
    complete_from: str | None = None,
) -> MachineSpec:
    """The spec of a shipped machine, or of a file: YAML, NCCL topology XML, `nvidia-smi topo -m`.

    Args:
        name_or_path: a name from `shipped_machines()`, or a path to a file, known by its content.
        hosts: another number of hosts.
        ranks: another number of GPUs altogether, instead of `hosts`.
        complete_from: for the last two kinds of file, the shipped machine that supplies what they
            do not say: how the GPUs are joined, what they cost, and the fabric between hosts.

    Raises:
        ConfigError: there is no such machine, or something in it is wrong.
    """
    name = str(name_or_path)
    if name in shipped_machines():
        path = _shipped_folder() / f"{name}.yaml"
    elif Path(name).is_file():
        path = Path(name)
    else:
        known = ", ".join(shipped_machines())
        raise ConfigError(f"there is no file or machine {quoted(name)}; shipped are {known}")
    return parse(read_text(path), str(path), complete_from).sized(hosts, ranks)


def parse(text: str, file: str, complete_from: str | None = None) -> MachineSpec:
    """The spec that a text holds; `file` is its name in errors.

    Raises:
        ConfigError: something in it is wrong.
    """
    from towpath.topology_import import nccl_xml, nvidia_smi

    if nccl_xml.is_xml(text):
        return nccl_xml.parse_system(text, file, complete_from)
    if nvidia_smi.is_table(text):
        return nvidia_smi.parse_table(text, file, complete_from)
    if complete_from is not None:
        raise ConfigError("is a machine spec, which nothing completes", file=file, line=1)
    return parse_machine_spec(parse_yaml(text, file), file)


@lru_cache
def shipped(name: str) -> MachineSpec:
    """A shipped machine as it is; specs are immutable, so each file is read once.

    Raises:
        ConfigError: there is no machine of that name.
    """
    if name not in shipped_machines():
        known = ", ".join(shipped_machines())
        raise ConfigError(f"there is no machine {quoted(name)}; shipped are {known}")
    path = _shipped_folder() / f"{name}.yaml"
    return parse_machine_spec(parse_yaml(read_text(path), str(path)), str(path))


def _shipped_folder() -> Path:
    """Inside an installed package, or beside `python/` in a source tree."""
    package = Path(__file__).resolve().parent
    installed = package / "machines"
    return installed if installed.is_dir() else package.parents[1] / "machines"
