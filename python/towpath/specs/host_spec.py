# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""The description of a host: the effect of its processor and driver on a chip's PCIe link.

Every quantity has a value in the unit in the name of its field, and a source. The blocks of
parameters come from the tables of the C++ core (src/towpath/machine/host.hpp).
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field, model_validator

from towpath.errors import ConfigError
from towpath.specs.input_file import YamlDocument
from towpath.specs.parameter_models import from_table
from towpath.specs.spec_model import Block, Frozen, Name, Text, errors_of_core, validated, values_of

if TYPE_CHECKING:
    from towpath._core import Host


@from_table("host", "link")
class LinkParameters(Block):
    """Parameters of the root complex and the slot."""


@from_table("host", "core")
class CoreParameters(Block):
    """Parameters of loads and stores of one core to a mapped window."""


@from_table("host", "driver")
class DriverParameters(Block):
    """Times of the driver's calls."""


@from_table("host", "memory")
class MemoryParameters(Block):
    """Times of pinning host memory for a device, and of translating its addresses."""


class HostSpec(Frozen):
    """A host. Immutable."""

    form: Literal["host"]
    name: Name
    description: Text
    notes: Annotated[tuple[Text, ...], Field(max_length=100)] = ()
    link: LinkParameters
    core: CoreParameters
    driver: DriverParameters
    memory: MemoryParameters

    @model_validator(mode="after")
    def _check(self) -> HostSpec:
        with errors_of_core(self):
            self.build()
        return self

    def with_hugepages(self, has_hugepages: bool) -> HostSpec:
        """Returns this host with, or without, hugepages for memory that devices reach.

        Raises:
            ConfigError: the host has no IOMMU, so without hugepages no large buffer is contiguous
            for a device.
        """
        if not has_hugepages and not self.memory.has_iommu.value:
            problem = "has no IOMMU, so it needs hugepages for what devices reach"
            raise ConfigError(problem, field=f"host '{self.name}'")
        quantity = self.memory.has_hugepages.model_copy(
            update={"value": has_hugepages, "source": "asked for"}
        )
        memory = self.memory.model_copy(update={"has_hugepages": quantity})
        return self.model_copy(update={"memory": memory})

    def data(self) -> dict[str, object]:
        """Data for the core: values without sources."""
        blocks = ("link", "core", "driver", "memory")
        data: dict[str, object] = {"form": "host", "name": self.name}
        return data | {block: values_of(getattr(self, block)) for block in blocks}

    def build(self) -> Host:
        """Builds the Host for simulations."""
        from towpath import _core

        return _core.parse_host(json.dumps(self.data()), f"host '{self.name}'")


def parse_host_spec(document: YamlDocument, file: str) -> HostSpec:
    """Parses the spec of a YAML document.

    Raises:
        ConfigError: a field is missing, unknown or out of bounds; only the first one is named.
    """
    return validated(HostSpec, document, file)
