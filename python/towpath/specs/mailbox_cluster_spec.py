# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""The description of a cluster of small processors with packetizers and mailboxes on a ring.

Every quantity is a Figure: a value in the unit its field names, and where the value is from.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field, model_validator

from towpath.errors import ConfigError
from towpath.specs.chip_spec import Mhz, values_of
from towpath.specs.input_file import YamlDocument
from towpath.specs.machine_spec import Name
from towpath.specs.spec_model import DataRate, Duration, Figure, Frozen, Text, validated, wrong

if TYPE_CHECKING:
    from towpath._core import MailboxCluster

NODES_MAX = 1024

Cycles = Figure[Annotated[int, Field(strict=True, ge=0, le=1_000_000)]]
CyclesNotZero = Figure[Annotated[int, Field(strict=True, ge=1, le=1_000_000)]]
Count = Figure[Annotated[int, Field(strict=True, ge=1, le=65_536)]]
Nodes = Figure[Annotated[int, Field(strict=True, ge=1, le=NODES_MAX)]]
Cores = Figure[Annotated[int, Field(strict=True, ge=1, le=1024)]]
PacketBytes = Figure[Annotated[int, Field(strict=True, ge=1, le=65_536)]]
Probability = Figure[Annotated[float, Field(strict=True, ge=0, le=1, allow_inf_nan=False)]]
Interval = Figure[Annotated[float, Field(strict=True, gt=0, le=1e9, allow_inf_nan=False)]]
WordBytes = Figure[Literal[1, 2, 4, 8, 16, 32, 64]]


class SoftwareFigures(Frozen):
    """What the library on a core costs, in cycles of the core's clock."""

    store_cycles: Cycles
    load_cycles: CyclesNotZero
    descriptor_words: Count
    send_cycles: Cycles
    receive_cycles: Cycles
    poll_cycles: CyclesNotZero
    release_cycles: Cycles
    cycle_counter_cycles: Cycles
    responder_cycles: Cycles


class PageWalkFigures(Frozen):
    """The page walks of stores to an array in memory."""

    probability: Probability
    cycles_min: Cycles
    cycles_max: Cycles


class Interruption(Frozen):
    """What takes a core away from its process, again and again."""

    name: Annotated[str, Field(pattern=r"^[a-z][a-z ]{0,31}$", strict=True)]
    interval_mean_us: Interval
    duration_min_us: Duration
    duration_max_us: Duration


class PacketizerFigures(Frozen):
    """The packetizer of a node; cycles are those of the interconnect's clock."""

    contexts: Count
    formation_cycles: Cycles
    payload_bytes_max: PacketBytes
    packets_unacknowledged_max: Count


class RingFigures(Frozen):
    """The links between neighbours."""

    line_rate_gb_per_s: DataRate
    header_bytes: PacketBytes
    hop_latency_ns: Duration


class MailboxFigures(Frozen):
    """The mailboxes of a node, one per context; cycles are those of the interconnect's clock."""

    depth_packets: Count
    enqueue_cycles: Cycles
    when_full: Literal["back_pressure", "drop"]


class MailboxClusterSpec(Frozen):
    """A cluster with mailboxes. Immutable; `with_` returns another one."""

    form: Literal["mailbox_cluster"]
    name: Name
    description: Text
    notes: Annotated[tuple[Text, ...], Field(max_length=100)] = ()
    nodes: Nodes
    cores_per_node: Cores
    core_clock_mhz: Mhz
    interconnect_clock_mhz: Mhz
    word_bytes: WordBytes
    software: SoftwareFigures
    page_walks: PageWalkFigures
    interruptions: Annotated[tuple[Interruption, ...], Field(max_length=16)] = ()
    packetizer: PacketizerFigures
    ring: RingFigures
    mailbox: MailboxFigures

    @model_validator(mode="after")
    def _check(self) -> MailboxClusterSpec:
        software, walks = self.software, self.page_walks
        if (poll := software.poll_cycles.value) < software.load_cycles.value:
            problem = f"is {poll}; it must be at least {software.load_cycles.value}, load_cycles"
            raise wrong("software.poll_cycles.value", problem)
        if (most := walks.cycles_max.value) < walks.cycles_min.value:
            problem = f"is {most}; it must be at least {walks.cycles_min.value}, cycles_min"
            raise wrong("page_walks.cycles_max.value", problem)
        for number, one in enumerate(self.interruptions):
            if (most_us := one.duration_max_us.value) < one.duration_min_us.value:
                least_us = one.duration_min_us.value
                problem = f"is {most_us}; it must be at least {least_us}, duration_min_us"
                raise wrong(f"interruptions[{number}].duration_max_us.value", problem)
        if (given := self.packetizer.payload_bytes_max.value) < self.word_bytes.value:
            problem = f"is {given}; it must be at least {self.word_bytes.value}, a word"
            raise wrong("packetizer.payload_bytes_max.value", problem)
        return self

    def with_figures(self, source: str = "asked for", **values: float) -> MailboxClusterSpec:
        """This cluster with other values of some figures.

        Args:
            source: where the values are from.
            values: by field, with two underscores between a block and its field, such as
                `software__poll_cycles`.

        Raises:
            ConfigError: there is no such figure, or its value is out of bounds.
        """
        data: dict[str, Any] = self.model_dump()
        for path, value in values.items():
            *blocks, field = path.split("__")
            block = data
            for step in blocks:
                block = block[step]
            if not isinstance(block.get(field), dict) or "value" not in block[field]:
                raise ConfigError(f"there is no figure {path}", field=f"cluster '{self.name}'")
            block[field] = {"value": value, "source": source}
        return validated(MailboxClusterSpec, YamlDocument(data, {}), f"cluster '{self.name}'")

    def core(self) -> MailboxCluster:
        """The MailboxCluster that simulations run on."""
        from towpath import _core

        mailbox = values_of(self.mailbox)
        mailbox["drops_when_full"] = mailbox.pop("when_full") == "drop"
        return _core.MailboxCluster(
            name=self.name,
            nodes=self.nodes.value,
            cores_per_node=self.cores_per_node.value,
            core_clock_mhz=self.core_clock_mhz.value,
            interconnect_clock_mhz=self.interconnect_clock_mhz.value,
            word_bytes=self.word_bytes.value,
            software=values_of(self.software),
            page_walks=values_of(self.page_walks),
            interruptions=[values_of(one) for one in self.interruptions],
            packetizer=values_of(self.packetizer),
            ring=values_of(self.ring),
            mailbox=mailbox,
        )


def parse_mailbox_cluster_spec(document: YamlDocument, file: str) -> MailboxClusterSpec:
    """The spec that a YAML document holds.

    Raises:
        ConfigError: a field is missing, unknown or out of bounds; only the first one is named.
    """
    return validated(MailboxClusterSpec, document, file)
