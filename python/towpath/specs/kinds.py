# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""The kinds of machines that files describe: how each is recognised and read.

A new kind is an entry of KINDS. What is done with a kind, such as describing or drawing it, is
attached above this layer by its name.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from towpath.errors import ConfigError
from towpath.specs import shipped
from towpath.specs.chip_cluster_spec import ChipClusterSpec, parse_chip_cluster_spec
from towpath.specs.chip_spec import ChipSpec, parse_chip_spec
from towpath.specs.host_spec import parse_host_spec
from towpath.specs.importers import cluster_descriptor, nccl_xml, nvidia_smi, soc_descriptor
from towpath.specs.input_file import YamlDocument, parse_yaml, read_text
from towpath.specs.machine_spec import MachineSpec, parse_machine_spec
from towpath.specs.mailbox_cluster_spec import parse_mailbox_cluster_spec
from towpath.specs.shipped import Kind


@dataclass(frozen=True)
class SpecFile:
    """A text that describes a machine of some kind; `file` is its name in errors."""

    text: str
    file: str

    @cached_property
    def is_yaml(self) -> bool:
        """Whether it is not one of the formats of other tools."""
        return not nccl_xml.is_xml(self.text) and not nvidia_smi.is_table(self.text)

    @cached_property
    def document(self) -> YamlDocument:
        """What the YAML says; it is parsed once.

        Raises:
            ConfigError: it is not valid YAML.
        """
        return parse_yaml(self.text, self.file)

    @property
    def form(self) -> object:
        """The form that the YAML names, if it is a block of fields."""
        data = self.document.data if self.is_yaml else None
        return data.get("form") if isinstance(data, dict) else None


@dataclass(frozen=True)
class SpecKind:
    """A kind of machine.

    Attributes:
        name: its name in programs.
        words: its name in sentences.
        forms: the forms of its specs.
        is_descriptor: whether a document is a description of this kind by another tool.
        parse: reads a file of this kind.
        expected: what a file of this kind must be, for errors.
    """

    name: Kind
    forms: tuple[str, ...]
    parse: Callable[[SpecFile], Any]
    expected: str
    is_descriptor: Callable[[YamlDocument], bool] = lambda document: False

    @property
    def words(self) -> str:
        """Its name in sentences."""
        return shipped.KINDS[self.name]

    def recognises(self, file: SpecFile) -> bool:
        """Whether a file describes a machine of this kind."""
        if not file.is_yaml:
            return self.name == "machine"
        return file.form in self.forms or self.is_descriptor(file.document)

    def load(self, file: SpecFile) -> Any:
        """The spec that a file of this kind holds.

        Raises:
            ConfigError: it describes something else, or something in it is wrong.
        """
        if not self.recognises(file):
            problem = f"is not a {self.words}; it must be {self.expected}"
            raise ConfigError(problem, file=file.file, line=1)
        return self.parse(file)


def parse_gpu_machine(file: SpecFile, complete_from: str | None = None) -> MachineSpec:
    """The machine of GPUs that a file holds: YAML, NCCL topology XML, or `nvidia-smi topo -m`.

    Args:
        file: the file.
        complete_from: the shipped machine that supplies what files of other tools do not say.

    Raises:
        ConfigError: something in it is wrong.
    """
    if nccl_xml.is_xml(file.text):
        return nccl_xml.parse_system(file.text, file.file, complete_from)
    if nvidia_smi.is_table(file.text):
        return nvidia_smi.parse_table(file.text, file.file, complete_from)
    if complete_from is not None:
        raise ConfigError("is a machine spec, which nothing completes", file=file.file, line=1)
    return parse_machine_spec(file.document, file.file)


def _parse_chip(file: SpecFile) -> ChipSpec:
    if soc_descriptor.is_soc_descriptor(file.document):
        return soc_descriptor.parse_soc_descriptor(file.document, file.file)
    return parse_chip_spec(file.document, file.file)


def _parse_chip_cluster(file: SpecFile) -> ChipClusterSpec:
    def chip_named(name: str) -> ChipSpec:
        """A shipped chip, or a file relative to the folder of the cluster's."""
        if name in shipped.names("chip"):
            return shipped.chip(name)
        path = Path(file.file).parent / name
        if not path.is_file():
            raise shipped.no_such(name, "chip", "file or chip")
        chip: ChipSpec = KINDS["chip"].load(SpecFile(read_text(path), str(path)))
        return chip

    if cluster_descriptor.is_cluster_descriptor(file.document):
        return cluster_descriptor.parse_cluster_descriptor(file.document, file.file)
    return parse_chip_cluster_spec(file.document, file.file, chip_named)


KINDS: dict[Kind, SpecKind] = {
    kind.name: kind
    for kind in (
        SpecKind(
            name="machine",
            forms=("template", "graph"),
            parse=parse_gpu_machine,
            expected="a spec whose form is 'template' or 'graph'",
        ),
        SpecKind(
            name="chip",
            forms=("chip",),
            parse=_parse_chip,
            expected="a spec whose form is 'chip', or a SoC descriptor",
            is_descriptor=soc_descriptor.is_soc_descriptor,
        ),
        SpecKind(
            name="chip_cluster",
            forms=("chip_cluster",),
            parse=_parse_chip_cluster,
            expected="a spec whose form is 'chip_cluster', or a cluster descriptor",
            is_descriptor=cluster_descriptor.is_cluster_descriptor,
        ),
        SpecKind(
            name="mailbox_cluster",
            forms=("mailbox_cluster",),
            parse=lambda file: parse_mailbox_cluster_spec(file.document, file.file),
            expected="a spec whose form is 'mailbox_cluster'",
        ),
        SpecKind(
            name="host",
            forms=("host",),
            parse=lambda file: parse_host_spec(file.document, file.file),
            expected="a spec whose form is 'host'",
        ),
    )
}


def kind_of(file: SpecFile) -> SpecKind:
    """The kind of what a file describes; a machine where it says nothing known."""
    return next((kind for kind in KINDS.values() if kind.recognises(file)), KINDS["machine"])
