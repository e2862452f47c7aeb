# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""The description of a cluster of small processors with packetizers and mailboxes on a ring.

Every quantity has a value in the unit in the name of its field, and a source. The blocks of
parameters come from the tables of the C++ core (src/towpath/machine/mailbox_cluster.hpp).
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field, model_validator

from towpath.errors import ConfigError
from towpath.specs.input_file import YamlDocument
from towpath.specs.parameter_models import from_table, quantity_model
from towpath.specs.spec_model import (
    Block,
    Frozen,
    Name,
    Quantity,
    Text,
    errors_of_core,
    validated,
    values_of,
)

if TYPE_CHECKING:
    from towpath._core import MailboxCluster

Word = Annotated[str, Field(pattern=r"^[a-z][a-z ]{0,31}$", strict=True)]
_KIND = "mailbox_cluster"

if TYPE_CHECKING:
    Nodes = Quantity[int]
    Cores = Quantity[int]
    CoreClock = Quantity[float]
    InterconnectClock = Quantity[float]
    WordBytes = Quantity[int]
else:
    Nodes = quantity_model(_KIND, "nodes")
    Cores = quantity_model(_KIND, "cores_per_node")
    CoreClock = quantity_model(_KIND, "core_clock_mhz")
    InterconnectClock = quantity_model(_KIND, "interconnect_clock_mhz")
    WordBytes = quantity_model(_KIND, "word_bytes")


@from_table(_KIND, "software")
class SoftwareParameters(Block):
    """Costs of the library on a core, in cycles of the core's clock."""


@from_table(_KIND, "page_walks")
class PageWalkParameters(Block):
    """Page walks of stores to an array in memory."""


@from_table(_KIND, "interruptions")
class InterruptionParameters(Block):
    """Events that repeatedly take a core away from its process."""

    name: Word


@from_table(_KIND, "packetizer")
class PacketizerParameters(Block):
    """The packetizer of a node, in cycles of the interconnect's clock."""


@from_table(_KIND, "ring")
class RingParameters(Block):
    """The links between neighbors."""


@from_table(_KIND, "mailbox", without="drops_when_full")
class MailboxParameters(Block):
    """The mailboxes of a node, one per context, in cycles of the interconnect's clock."""

    when_full: Literal["back_pressure", "drop"]


class MailboxClusterSpec(Frozen):
    """A cluster with mailboxes. Immutable; `with_figures` returns a changed copy."""

    form: Literal["mailbox_cluster"]
    name: Name
    description: Text
    notes: Annotated[tuple[Text, ...], Field(max_length=100)] = ()
    nodes: Nodes
    cores_per_node: Cores
    core_clock_mhz: CoreClock
    interconnect_clock_mhz: InterconnectClock
    word_bytes: WordBytes
    software: SoftwareParameters
    page_walks: PageWalkParameters
    interruptions: Annotated[tuple[InterruptionParameters, ...], Field(max_length=16)] = ()
    packetizer: PacketizerParameters
    ring: RingParameters
    mailbox: MailboxParameters

    @model_validator(mode="after")
    def _check(self) -> MailboxClusterSpec:
        with errors_of_core(self):
            self.build()
        return self

    def with_figures(self, source: str = "asked for", **values: float) -> MailboxClusterSpec:
        """Returns this cluster with other values of some parameters.

        Args:
            source: source of the values.
            values: by field, with two underscores between a block and its field, such as
                `software__poll_cycles`.

        Raises:
            ConfigError: there is no such parameter, or its value is out of bounds.
        """
        data: dict[str, Any] = self.model_dump()
        for path, value in values.items():
            *blocks, field = path.split("__")
            block = data
            for step in blocks:
                block = block[step]
            if not isinstance(block.get(field), dict) or "value" not in block[field]:
                raise ConfigError(f"there is no parameter {path}", field=f"cluster '{self.name}'")
            block[field] = {"value": value, "source": source}
        return validated(MailboxClusterSpec, YamlDocument(data, {}), f"cluster '{self.name}'")

    def data(self) -> dict[str, object]:
        """Data for the core: values without sources."""
        data: dict[str, object] = {"form": "mailbox_cluster", "name": self.name}
        for name in (
            "nodes", "cores_per_node", "core_clock_mhz", "interconnect_clock_mhz", "word_bytes",
        ):  # fmt: skip
            data[name] = getattr(self, name).value
        for name in ("software", "page_walks", "packetizer", "ring"):
            data[name] = values_of(getattr(self, name))
        mailbox = values_of(self.mailbox)
        data["mailbox"] = mailbox | {"drops_when_full": mailbox.pop("when_full") == "drop"}
        data["interruptions"] = [values_of(one) for one in self.interruptions]
        return data

    def build(self) -> MailboxCluster:
        """Builds the MailboxCluster for simulations."""
        from towpath import _core

        return _core.parse_mailbox_cluster(json.dumps(self.data()), f"cluster '{self.name}'")


def parse_mailbox_cluster_spec(document: YamlDocument, file: str) -> MailboxClusterSpec:
    """Parses the spec of a YAML document.

    Raises:
        ConfigError: a field is missing, unknown or out of bounds; only the first one is named.
    """
    return validated(MailboxClusterSpec, document, file)
