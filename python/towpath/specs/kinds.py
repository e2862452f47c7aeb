# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""The kinds of machines in files: the rules to recognize and read each kind.

A new kind is an entry of KINDS, which contains all data about a kind below the public objects. The
modules that read specs are imported when a file is read, because importers look up shipped
machines, which are found by their kind.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from towpath.errors import ConfigError
from towpath.specs import formats
from towpath.specs.input_file import YamlDocument, parse_yaml, read_text

if TYPE_CHECKING:
    from towpath.specs.chip_cluster_spec import ChipClusterSpec
    from towpath.specs.chip_spec import ChipSpec
    from towpath.specs.host_spec import HostSpec
    from towpath.specs.machine_spec import MachineSpec
    from towpath.specs.mailbox_cluster_spec import MailboxClusterSpec


class Spec(Protocol):
    """Common attributes of specs of all kinds."""

    @property
    def name(self) -> str:
        """Name of the machine, such as "dgx-h100"."""
        ...

    @property
    def description(self) -> str:
        """Description in one line."""
        ...

    def data(self) -> dict[str, object]:
        """Data for the core: values without sources."""
        ...


@dataclass(frozen=True)
class SpecFile:
    """A text that describes a machine of some kind; `file` is its name in errors."""

    text: str
    file: str

    @cached_property
    def is_yaml(self) -> bool:
        """True if it does not have a format of another tool."""
        return not formats.is_xml(self.text) and not formats.is_topology_table(self.text)

    @cached_property
    def document(self) -> YamlDocument:
        """The content of the YAML, which is parsed once.

        Raises:
            ConfigError: the text is not valid YAML.
        """
        return parse_yaml(self.text, self.file)

    @property
    def form(self) -> object:
        """The form in the YAML, if the YAML is a block of fields."""
        data = self.document.data if self.is_yaml else None
        return data.get("form") if isinstance(data, dict) else None


@dataclass(frozen=True)
class SpecKind:
    """A kind of machine.

    Attributes:
        name: its name in programs.
        words: its name in sentences; "s" after the first word makes the plural.
        forms: the forms of its specs.
        parse: reads a file of this kind.
        expected: description of a valid file of this kind, for errors.
        options: the options of `towpath.load` that have an effect on it.
        is_descriptor: True if a document is a description of this kind by another tool.
    """

    name: str
    words: str
    forms: tuple[str, ...]
    parse: Callable[[SpecFile], Spec]
    expected: str
    options: tuple[str, ...] = ()
    is_descriptor: Callable[[YamlDocument], bool] = lambda document: False

    @property
    def plural(self) -> str:
        """The plural in sentences.

        >>> KINDS["gpu_cluster"].plural
        'clusters of GPUs'
        """
        first, *rest = self.words.split()
        return " ".join((f"{first}s", *rest))

    def recognises(self, file: SpecFile) -> bool:
        """True if a file describes a machine of this kind."""
        if not file.is_yaml:
            return self.name == "gpu_cluster"
        return file.form in self.forms or self.is_descriptor(file.document)

    def load(self, file: SpecFile) -> Any:
        """Reads the spec of a file of this kind.

        Raises:
            ConfigError: the file describes another kind, or its content is wrong.
        """
        if not self.recognises(file):
            problem = f"is not a {self.words}; it must be {self.expected}"
            raise ConfigError(problem, file=file.file, line=1)
        return self.parse(file)


def parse_gpu_machine(file: SpecFile, complete_from: str | None = None) -> MachineSpec:
    """Parses the machine with GPUs of a file: YAML, NCCL topology XML, or `nvidia-smi topo -m`.

    Args:
        file: the file.
        complete_from: the shipped machine that supplies values missing in files of other tools.

    Raises:
        ConfigError: the content of the file is wrong.
    """
    if formats.is_xml(file.text):
        from towpath.specs.importers import nccl_xml

        return nccl_xml.parse_system(file.text, file.file, complete_from)
    if formats.is_topology_table(file.text):
        from towpath.specs.importers import nvidia_smi

        return nvidia_smi.parse_table(file.text, file.file, complete_from)
    if complete_from is not None:
        raise ConfigError(
            "is a machine spec, which is complete; leave complete_from out", file=file.file, line=1
        )
    from towpath.specs.machine_spec import parse_machine_spec

    return parse_machine_spec(file.document, file.file)


def _parse_chip(file: SpecFile) -> ChipSpec:
    if formats.is_soc_descriptor(file.document):
        from towpath.specs.importers import soc_descriptor

        return soc_descriptor.parse_soc_descriptor(file.document, file.file)
    from towpath.specs.chip_spec import parse_chip_spec

    return parse_chip_spec(file.document, file.file)


def _parse_chip_cluster(file: SpecFile) -> ChipClusterSpec:
    from towpath.specs import shipped

    def chip_named(name: str) -> ChipSpec:
        """A shipped chip, or a file relative to the folder of the cluster's file."""
        if name in shipped.names("chip"):
            return shipped.chip(name)
        path = Path(file.file).parent / name
        if not path.is_file():
            raise shipped.no_such(name, "chip", "file or chip")
        chip: ChipSpec = KINDS["chip"].load(SpecFile(read_text(path), str(path)))
        return chip

    if formats.is_cluster_descriptor(file.document):
        from towpath.specs.importers import cluster_descriptor

        return cluster_descriptor.parse_cluster_descriptor(file.document, file.file)
    from towpath.specs.chip_cluster_spec import parse_chip_cluster_spec

    return parse_chip_cluster_spec(file.document, file.file, chip_named)


def _parse_mailbox_cluster(file: SpecFile) -> MailboxClusterSpec:
    from towpath.specs.mailbox_cluster_spec import parse_mailbox_cluster_spec

    return parse_mailbox_cluster_spec(file.document, file.file)


def _parse_host(file: SpecFile) -> HostSpec:
    from towpath.specs.host_spec import parse_host_spec

    return parse_host_spec(file.document, file.file)


# The registry, in the order of lists and tables.
KINDS: dict[str, SpecKind] = {
    kind.name: kind
    for kind in (
        SpecKind(
            name="gpu_cluster",
            words="cluster of GPUs",
            forms=("template", "graph", "mixed"),
            parse=parse_gpu_machine,
            expected="a spec whose form is 'template', 'graph' or 'mixed'",
            options=("hosts", "ranks", "ranks_per_host", "complete_from", "settings", "without"),
        ),
        SpecKind(
            name="chip_cluster",
            words="cluster of chips",
            forms=("chip_cluster",),
            parse=_parse_chip_cluster,
            expected="a spec whose form is 'chip_cluster', or a cluster descriptor",
            is_descriptor=formats.is_cluster_descriptor,
        ),
        SpecKind(
            name="mailbox_cluster",
            words="cluster with mailboxes",
            forms=("mailbox_cluster",),
            parse=_parse_mailbox_cluster,
            expected="a spec whose form is 'mailbox_cluster'",
            options=("ranks",),
        ),
        SpecKind(
            name="chip",
            words="chip",
            forms=("chip",),
            parse=_parse_chip,
            expected="a spec whose form is 'chip', or a SoC descriptor",
            options=("harvest_mask",),
            is_descriptor=formats.is_soc_descriptor,
        ),
        SpecKind(
            name="host",
            words="host",
            forms=("host",),
            parse=_parse_host,
            expected="a spec whose form is 'host'",
        ),
    )
}


def kind_of(file: SpecFile) -> SpecKind:
    """The kind of machine in a file; a cluster of GPUs if the kind is not recognized."""
    return next((kind for kind in KINDS.values() if kind.recognises(file)), KINDS["gpu_cluster"])


def check_options(name: str, kind: str, options: Iterable[str]) -> None:
    """Rejects options of `towpath.load` that would have no effect.

    Args:
        name: name of the machine, for the error.
        kind: its kind.
        options: the given options.

    Raises:
        ConfigError: an option does not apply to machines of this kind; its field is the option.
    """
    for option in options:
        if option not in KINDS[kind].options:
            able = " and ".join(each.plural for each in KINDS.values() if option in each.options)
            raise ConfigError(
                f"{option} applies to {able}; '{name}' is a {KINDS[kind].words}", field=option
            )
