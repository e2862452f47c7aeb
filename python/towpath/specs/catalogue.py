# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Finds and loads machines: the shipped ones by name, others from a file of any known kind."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import TypeVar

from towpath.errors import ConfigError
from towpath.specs import shipped
from towpath.specs.chip_cluster_spec import ChipClusterSpec, parse_chip_cluster_spec
from towpath.specs.chip_spec import ChipSpec, parse_chip_spec
from towpath.specs.host_spec import HostSpec, parse_host_spec
from towpath.specs.input_file import YamlDocument, parse_yaml, read_text
from towpath.specs.machine_spec import MachineSpec, parse_machine_spec
from towpath.specs.mailbox_cluster_spec import MailboxClusterSpec, parse_mailbox_cluster_spec
from towpath.specs.shipped import KINDS, Kind

Spec = TypeVar("Spec")



def load(
    name_or_path: str | Path,
    hosts: int | None = None,
    ranks: int | None = None,
    complete_from: str | None = None,
) -> MachineSpec:
    """The spec of a shipped machine, or of a file: YAML, NCCL topology XML, `nvidia-smi topo -m`.

    Args:
        name_or_path: a name from `shipped.names("machine")`, or a path to a file, known by its
            content.
        hosts: another number of hosts.
        ranks: another number of GPUs altogether, instead of `hosts`.
        complete_from: for the last two kinds of file, the shipped machine that supplies what they
            do not say: how the GPUs are joined, what they cost, and the fabric between hosts.

    Raises:
        ConfigError: there is no such machine, or something in it is wrong.
    """
    path = _path_of(name_or_path, "machine")
    return parse(read_text(path), str(path), complete_from).sized(hosts, ranks)


def load_chip(name_or_path: str | Path, harvest_mask: int | None = None) -> ChipSpec:
    """The spec of a shipped chip, or of a file: YAML of the form chip, or a SoC descriptor.

    Args:
        name_or_path: a name from `shipped.names("chip")`, or a path to a file, known by its
            content.
        harvest_mask: which rows or columns are harvested, instead of those that the spec names.

    Raises:
        ConfigError: there is no such chip, or something in it is wrong.
    """
    path = _path_of(name_or_path, "chip")
    spec = parse_chip(read_text(path), str(path))
    return spec if harvest_mask is None else spec.with_harvest_mask(harvest_mask)


def load_chip_cluster(name_or_path: str | Path) -> ChipClusterSpec:
    """The spec of a shipped cluster of chips, or of a file.

    Args:
        name_or_path: a name from `shipped.names("chip_cluster")`, or a path to a file, known by
            its content: YAML of the form chip_cluster, or one of Tenstorrent's cluster descriptors.

    Raises:
        ConfigError: there is no such cluster, or something in it is wrong.
    """
    path = _path_of(name_or_path, "chip_cluster")
    return parse_chip_cluster(read_text(path), str(path))


def load_host(name_or_path: str | Path) -> HostSpec:
    """The spec of a shipped host, or of a file of the form host.

    Raises:
        ConfigError: there is no such host, or something in it is wrong.
    """
    return _load_form(name_or_path, "host", parse_host_spec)


def load_mailbox_cluster(name_or_path: str | Path) -> MailboxClusterSpec:
    """The spec of a shipped cluster with mailboxes, or of a file.

    Args:
        name_or_path: a name from `shipped.names("mailbox_cluster")`, or a path to a YAML file of
            the form mailbox_cluster.

    Raises:
        ConfigError: there is no such cluster, or something in it is wrong.
    """
    return _load_form(name_or_path, "mailbox_cluster", parse_mailbox_cluster_spec)


def _load_form(
    name_or_path: str | Path, kind: Kind, parse_spec: Callable[[YamlDocument, str], Spec]
) -> Spec:
    """The spec of what only YAML of that form describes."""
    path = _path_of(name_or_path, kind)
    document = parse_yaml(read_text(path), str(path))
    if _has_form(document, kind):
        return parse_spec(document, str(path))
    problem = f"is no {KINDS[kind]}; it must be a spec whose form is '{kind}'"
    raise ConfigError(problem, file=str(path), line=1)


def _has_form(document: YamlDocument, form: str) -> bool:
    return isinstance(document.data, dict) and document.data.get("form") == form


def kind_of(name_or_path: str | Path) -> Kind:
    """What that names, shipped or in a file; a machine where there is no such file."""
    name = str(name_or_path)
    if name in shipped.kinds():
        return shipped.kinds()[name]
    return shipped.kind_said_by(read_text(name)) if Path(name).is_file() else "machine"


def parse(text: str, file: str, complete_from: str | None = None) -> MachineSpec:
    """The spec that a text holds; `file` is its name in errors.

    Raises:
        ConfigError: something in it is wrong.
    """
    from towpath.specs.importers import nccl_xml, nvidia_smi

    if nccl_xml.is_xml(text):
        return nccl_xml.parse_system(text, file, complete_from)
    if nvidia_smi.is_table(text):
        return nvidia_smi.parse_table(text, file, complete_from)
    if (kind := shipped.kind_said_by(text)) != "machine":
        problem = f"is a {KINDS[kind]}, not a cluster of GPUs; towpath show describes it"
        raise ConfigError(problem, file=file, line=1)
    if complete_from is not None:
        raise ConfigError("is a machine spec, which nothing completes", file=file, line=1)
    return parse_machine_spec(parse_yaml(text, file), file)


def parse_chip(text: str, file: str) -> ChipSpec:
    """The chip that a text holds; `file` is its name in errors.

    Raises:
        ConfigError: something in it is wrong.
    """
    from towpath.specs.importers import soc_descriptor

    document = parse_yaml(text, file)
    if soc_descriptor.is_soc_descriptor(document):
        return soc_descriptor.parse_soc_descriptor(document, file)
    if _has_form(document, "chip"):
        return parse_chip_spec(document, file)
    problem = "is no chip; it must be a spec whose form is 'chip', or a SoC descriptor"
    raise ConfigError(problem, file=file, line=1)


def parse_chip_cluster(text: str, file: str) -> ChipClusterSpec:
    """The cluster of chips that a text holds; `file` is its name in errors.

    Chips that are no shipped ones are files, relative to the folder of `file`.

    Raises:
        ConfigError: something in it is wrong.
    """
    from towpath.specs.importers import cluster_descriptor

    def chip_named(name: str) -> ChipSpec:
        if name in shipped.names("chip"):
            return shipped.chip(name)
        path = Path(file).parent / name
        if not path.is_file():
            raise shipped.no_such(name, "chip", "file or chip")
        return load_chip(path)

    document = parse_yaml(text, file)
    if cluster_descriptor.is_cluster_descriptor(document):
        return cluster_descriptor.parse_cluster_descriptor(document, file)
    if _has_form(document, "chip_cluster"):
        return parse_chip_cluster_spec(document, file, chip_named)
    problem = "is no cluster of chips; it must be a spec whose form is 'chip_cluster', or a"
    raise ConfigError(f"{problem} cluster descriptor", file=file, line=1)


@lru_cache
def shipped_chip_cluster(name: str) -> ChipClusterSpec:
    """A shipped cluster of chips as it is; specs are immutable, so each file is read once.

    Raises:
        ConfigError: there is no cluster of chips of that name.
    """
    shipped.check(name, "chip_cluster")
    return load_chip_cluster(name)






def _path_of(name_or_path: str | Path, kind: Kind) -> Path:
    name = str(name_or_path)
    if name in shipped.kinds():
        return shipped.folder() / f"{name}.yaml"
    if Path(name).is_file():
        return Path(name)
    raise shipped.no_such(name, kind, f"file or {KINDS[kind]}")
