# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Finds and loads machines: shipped ones by name, and others from a file of any supported kind."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from towpath.errors import ConfigError
from towpath.names import comparable
from towpath.specs import kinds, shipped
from towpath.specs.input_file import read_text
from towpath.specs.kinds import KINDS, Spec, SpecFile

if TYPE_CHECKING:
    from towpath.specs.chip_cluster_spec import ChipClusterSpec
    from towpath.specs.chip_spec import ChipSpec
    from towpath.specs.host_spec import HostSpec
    from towpath.specs.machine_spec import MachineSpec
    from towpath.specs.mailbox_cluster_spec import MailboxClusterSpec


def named(text: str) -> tuple[str, dict[str, int]]:
    """The name that a text selects, with its options of `towpath.load`.

    Case is ignored in the name of a shipped machine, and "-" and "_" are equivalent. "NAME:N" is a
    cluster of N hosts.

    Args:
        text: the given text; the path of a file is returned unchanged.

    >>> named("DGX_H100:2")
    ('dgx-h100', {'hosts': 2})
    """
    if Path(text).is_file():
        return text, {}
    known = {comparable(name): name for name in shipped.kinds()}
    name, colon, hosts = text.rpartition(":")
    if colon and hosts.isdecimal() and (comparable(name) in known or Path(name).is_file()):
        return known.get(comparable(name), name), {"hosts": int(hosts)}
    return known.get(comparable(text), text), {}


def load_any(name_or_path: str | Path) -> Spec:
    """The spec for a name or a file, in its shipped size.

    Raises:
        ConfigError: there is no such machine, or its description contains an error.
    """
    spec: Spec = _load(name_or_path, kind_of(name_or_path))
    return spec


def load(
    name_or_path: str | Path,
    hosts: int | None = None,
    ranks: int | None = None,
    complete_from: str | None = None,
    *,
    settings: Iterable[str] = (),
    without: Iterable[str] = (),
) -> MachineSpec:
    """The spec of a shipped machine, or of a file: YAML, NCCL topology XML, `nvidia-smi topo -m`.

    Args:
        name_or_path: a name from `shipped.names("gpu_cluster")`, or a path to a file, whose content
            determines its format.
        hosts: number of hosts.
        ranks: total number of GPUs, instead of `hosts`.
        complete_from: for the last two kinds of file, the shipped machine that supplies the missing
            values: the connections between GPUs, their costs, and the fabric between hosts.
        settings: changed values, as "path.to.field=value".
        without: failed devices, as "host0/nic3"; "nic3" means this adapter in every host.

    Raises:
        ConfigError: there is no such machine, or its description contains an error.
    """
    name = str(name_or_path)
    if complete_from is None and name in shipped.names("gpu_cluster"):
        spec = shipped.machine(name)
    else:
        path = _path_of(name_or_path, "gpu_cluster")
        spec = parse(read_text(path), str(path), complete_from)
    settings, without = tuple(settings), tuple(without)
    if settings:
        from towpath.specs.override import with_settings

        spec = with_settings(spec, settings)
    if without:
        spec = spec.model_copy(update={"without": (*spec.without, *without)})
        spec.sized(hosts, ranks).layout()  # what is not there is said at once
    return spec.sized(hosts, ranks)


def load_chip(name_or_path: str | Path, harvest_mask: int | None = None) -> ChipSpec:
    """The spec of a shipped chip, or of a file: YAML of the form chip, or a SoC descriptor.

    Args:
        name_or_path: a name from `shipped.names("chip")`, or a path to a file, whose content
            determines its format.
        harvest_mask: the harvested rows or columns, instead of those in the spec.

    Raises:
        ConfigError: there is no such chip, or its description contains an error.
    """
    spec: ChipSpec = _load(name_or_path, "chip")
    return spec if harvest_mask is None else spec.with_harvest_mask(harvest_mask)


def load_chip_cluster(name_or_path: str | Path) -> ChipClusterSpec:
    """The spec of a shipped cluster of chips, or of a file.

    Args:
        name_or_path: a name from `shipped.names("chip_cluster")`, or a path to a file, whose
            content determines its format: YAML of the form chip_cluster, or one of Tenstorrent's
            cluster descriptors.

    Raises:
        ConfigError: there is no such cluster, or its description contains an error.
    """
    spec: ChipClusterSpec = _load(name_or_path, "chip_cluster")
    return spec


def load_host(name_or_path: str | Path) -> HostSpec:
    """The spec of a shipped host, or of a file of the form host.

    Args:
        name_or_path: a name from `shipped.names("host")`, or a path to a file.

    Raises:
        ConfigError: there is no such host, or its description contains an error.
    """
    spec: HostSpec = _load(name_or_path, "host")
    return spec


def load_mailbox_cluster(name_or_path: str | Path) -> MailboxClusterSpec:
    """The spec of a shipped cluster with mailboxes, or of a file.

    Args:
        name_or_path: a name from `shipped.names("mailbox_cluster")`, or a path to a YAML file of
            the form mailbox_cluster.

    Raises:
        ConfigError: there is no such cluster, or its description contains an error.
    """
    spec: MailboxClusterSpec = _load(name_or_path, "mailbox_cluster")
    return spec


def kind_of(name_or_path: str | Path) -> str:
    """The kind of a name or file; for a missing file, a cluster of GPUs.

    Args:
        name_or_path: a shipped name, or a path to a file.

    Raises:
        ConfigError: the file cannot be read, or is not valid YAML.
    """
    name = str(name_or_path)
    if name in shipped.kinds():
        return shipped.kinds()[name]
    if not Path(name).is_file():
        return "gpu_cluster"
    return kinds.kind_of(SpecFile(read_text(name), name)).name


def parse(text: str, file: str, complete_from: str | None = None) -> MachineSpec:
    """The machine with GPUs that a text describes.

    Args:
        text: YAML, NCCL topology XML, or the output of `nvidia-smi topo -m`.
        file: name of the file in errors.
        complete_from: shipped machine that supplies missing values.

    Raises:
        ConfigError: the description contains an error.
    """
    source = SpecFile(text, file)
    if (kind := kinds.kind_of(source)).name != "gpu_cluster":
        problem = f"is a {kind.words}, not a cluster of GPUs; towpath show describes it"
        raise ConfigError(problem, file=file, line=1)
    return kinds.parse_gpu_machine(source, complete_from)


def parse_chip(text: str, file: str) -> ChipSpec:
    """The chip that a text describes.

    Args:
        text: YAML of the form chip, or a SoC descriptor.
        file: name of the file in errors.

    Raises:
        ConfigError: the description contains an error.
    """
    spec: ChipSpec = KINDS["chip"].load(SpecFile(text, file))
    return spec


def parse_chip_cluster(text: str, file: str) -> ChipClusterSpec:
    """The cluster of chips that a text describes.

    Args:
        text: YAML of the form chip_cluster, or a cluster descriptor.
        file: name of the file in errors. Chips that are not shipped are files, relative to its
            folder.

    Raises:
        ConfigError: the description contains an error.
    """
    spec: ChipClusterSpec = KINDS["chip_cluster"].load(SpecFile(text, file))
    return spec


@lru_cache
def shipped_chip_cluster(name: str) -> ChipClusterSpec:
    """A shipped cluster of chips, unchanged; specs are immutable, so each file is read once.

    Raises:
        ConfigError: there is no cluster of chips of that name.
    """
    shipped.check(name, "chip_cluster")
    return load_chip_cluster(name)


def _load(name_or_path: str | Path, kind: str) -> Any:
    path = _path_of(name_or_path, kind)
    return KINDS[kind].load(SpecFile(read_text(path), str(path)))


def _path_of(name_or_path: str | Path, kind: str) -> Path:
    name = str(name_or_path)
    if name in shipped.kinds():
        return shipped.folder() / f"{name}.yaml"
    if Path(name).is_file():
        return Path(name)
    raise shipped.no_such(name, kind, f"file or {KINDS[kind].words}")
