# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""The description of a host: what its processor and driver make of a chip's PCIe link.

As in a chip, every quantity is a Figure: a value in the unit its field names, and where it is from.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field, model_validator

from towpath.errors import ConfigError
from towpath.specs.chip_spec import Count, Generation, Lanes, MemoryBytes, Truth, values_of
from towpath.specs.input_file import YamlDocument
from towpath.specs.machine_spec import Name
from towpath.specs.spec_model import DataRate, Duration, Figure, Frozen, Text, validated, wrong

if TYPE_CHECKING:
    from towpath._core import Host

PayloadBytes = Figure[Literal[64, 128, 256, 512, 1024, 2048, 4096]]
LoadBytes = Figure[Literal[1, 2, 4, 8, 16, 32, 64]]
PageBytes = Figure[Literal[4096, 16384, 65536, 2097152, 1073741824]]


class LinkFigures(Frozen):
    """The root complex and the slot."""

    generation: Generation
    lanes: Lanes
    payload_bytes_max: PayloadBytes
    read_request_bytes_max: PayloadBytes
    completion_bytes: PayloadBytes
    device_reads_outstanding: Count
    read_time_ns: Duration


class CoreFigures(Frozen):
    """Loads and stores of one core to a mapped window."""

    call_time_ns: Duration
    store_rate_gb_per_s: DataRate
    posted_writes_max: Count
    posted_write_interval_ns: Duration
    uncached_store_bytes: LoadBytes
    uncached_store_time_ns: Duration
    load_bytes: LoadBytes
    stream_load_bytes: LoadBytes
    stream_loads_outstanding: Count
    copies_words: Truth


class DriverFigures(Frozen):
    """What the driver's calls take."""

    window_time_ns: Duration
    dma_time_ns: Duration
    bounce_bytes: MemoryBytes
    bounce_write_rate_gb_per_s: DataRate
    bounce_read_rate_gb_per_s: DataRate
    cache_bytes: MemoryBytes
    bounce_write_rate_uncached_gb_per_s: DataRate
    bounce_read_rate_uncached_gb_per_s: DataRate


class MemoryFigures(Frozen):
    """Pinning host memory for a device, and translating its addresses."""

    has_iommu: Truth
    has_hugepages: Truth
    page_bytes: PageBytes
    hugepage_bytes: PageBytes
    map_time_ns: Duration
    map_page_time_ns: Duration
    unmap_time_ns: Duration
    unmap_page_time_ns: Duration
    translation_time_ns: Duration


class HostSpec(Frozen):
    """A host. Immutable."""

    form: Literal["host"]
    name: Name
    description: Text
    notes: Annotated[tuple[Text, ...], Field(max_length=100)] = ()
    link: LinkFigures
    core: CoreFigures
    driver: DriverFigures
    memory: MemoryFigures

    @model_validator(mode="after")
    def _check(self) -> HostSpec:
        page, hugepage = self.memory.page_bytes.value, self.memory.hugepage_bytes.value
        if hugepage <= page:
            problem = f"is {hugepage}; it must be more than {page}, page_bytes"
            raise wrong("memory.hugepage_bytes.value", problem)
        return self

    def with_hugepages(self, has_hugepages: bool) -> HostSpec:
        """This host with, or without, hugepages for what devices reach.

        Raises:
            ConfigError: without them and an IOMMU nothing large is contiguous for a device.
        """
        if not has_hugepages and not self.memory.has_iommu.value:
            problem = "has no IOMMU, so it needs hugepages for what devices reach"
            raise ConfigError(problem, field=f"host '{self.name}'")
        figure = self.memory.has_hugepages.model_copy(
            update={"value": has_hugepages, "source": "asked for"}
        )
        memory = self.memory.model_copy(update={"has_hugepages": figure})
        return self.model_copy(update={"memory": memory})

    def build(self) -> Host:
        """The Host that simulations run on."""
        from towpath import _core

        return _core.Host(
            name=self.name,
            link=values_of(self.link),
            core=values_of(self.core),
            driver=values_of(self.driver),
            memory=values_of(self.memory),
        )


def parse_host_spec(document: YamlDocument, file: str) -> HostSpec:
    """The spec that a YAML document holds.

    Raises:
        ConfigError: a field is missing, unknown or out of bounds; only the first one is named.
    """
    return validated(HostSpec, document, file)
