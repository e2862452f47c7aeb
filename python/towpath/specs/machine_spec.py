# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""The description of a machine: checks the content of YAML, and converts it to a Machine.

A spec has one of three forms. A *template* defines the hosts by a rule and gives their number. A
*graph* lists every device of a host. A *mixed* one joins hosts of several machines (mixed_spec.py).
With a fabric, a machine of the first two forms can have any number of hosts. Every quantity has a
value in the unit in the name of its field, and a source. The costs come from the tables of the C++
core (src/towpath/machine/machine.hpp).
"""

from __future__ import annotations

import json
from abc import abstractmethod
from collections import Counter
from collections.abc import Iterator
from itertools import combinations
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from towpath.errors import ConfigError, quoted
from towpath.specs.fabrics import Fabric
from towpath.specs.input_file import YamlDocument
from towpath.specs.layout import Adapter, Layout, Placing, without
from towpath.specs.likes import with_likes
from towpath.specs.parameter_models import from_table
from towpath.specs.spec_model import Block, Frozen, Name, Text, validated, values_of, wrong

if TYPE_CHECKING:
    from towpath._core import Machine

HOSTS_MAX = 32_768
GPUS_PER_HOST_MAX = 4096
NICS_PER_HOST_MAX = 256
DEVICES_MAX = 1_000_000
WIRES_MAX = 1_000_000
_COST_BLOCKS = ("simple", "ll", "ll128", "kernel")

GpuIndex = Annotated[int, Field(strict=True, ge=0, lt=GPUS_PER_HOST_MAX)]
DeviceKindName = Literal["gpu", "nvswitch", "nic", "network_switch", "pcie_bridge", "cpu"]
LinkKindName = Literal["nvlink", "pcie", "network", "socket"]


@from_table("gpu_cost", "simple")
class ProtocolCost(Block):
    """Costs of moving data for a thread block of a GPU with one protocol."""


@from_table("gpu_cost", "kernel")
class KernelCost(Block):
    """Costs of a GPU for a kernel that is programmed thread by thread."""


@from_table("gpu_cost", "")
class GpuCost(Block):
    """Costs of a GPU per run and per transfer."""

    simple: ProtocolCost
    ll: ProtocolCost
    ll128: ProtocolCost
    kernel: KernelCost | None = None


@from_table("link_type", "")
class LinkType(Block):
    """A kind of wire. Wires are duplex: rate and latency apply to each direction."""

    kind: LinkKindName


class SwitchedInterconnect(Frozen):
    """Every GPU of a host joined to one NVSwitch by one wire of `link_type`."""

    shape: Literal["switch"]
    link_type: Name


class RingInterconnect(Frozen):
    """Every GPU joined to its two neighbors; with `forwards`, GPUs forward traffic of
    other GPUs.
    """

    shape: Literal["ring"]
    link_type: Name
    forwards: bool = Field(strict=True, default=False)


class FullInterconnect(Frozen):
    """Every GPU joined to every other."""

    shape: Literal["fully_connected"]
    link_type: Name


class MeshInterconnect(Frozen):
    """The listed pairs of GPUs joined; a pair listed twice has the rate of two wires."""

    shape: Literal["mesh"]
    link_type: Name
    pairs: Annotated[tuple[tuple[GpuIndex, GpuIndex], ...], Field(min_length=1, max_length=10_000)]
    forwards: bool = Field(strict=True, default=False)


Interconnect = Annotated[
    SwitchedInterconnect | RingInterconnect | FullInterconnect | MeshInterconnect,
    Field(discriminator="shape"),
]


class Nic(Frozen):
    """A network adapter and the GPUs of its host to which it is joined.

    Its link to the fabric has the type `fabric_link_type`, or the fabric's own type.
    """

    gpus: Annotated[tuple[GpuIndex, ...], Field(min_length=1, max_length=64)]
    fabric_link_type: Name | None = None


class Hosts(Frozen):
    """The number of hosts and their content."""

    count: Annotated[int, Field(strict=True, ge=1, le=HOSTS_MAX)]
    gpus: Annotated[int, Field(strict=True, ge=1, le=GPUS_PER_HOST_MAX)]
    source: Text
    gpu_interconnect: Interconnect | None = None
    nic_link_type: Name | None = None
    nics: Annotated[tuple[Nic, ...], Field(max_length=NICS_PER_HOST_MAX)] = ()


class MachineSpec(Frozen):
    """Common part of all forms. Immutable; `sized` returns a changed copy."""

    name: Name
    description: Text
    notes: Annotated[tuple[Text, ...], Field(max_length=100)] = ()
    link_types: Annotated[dict[Name, LinkType], Field(min_length=1, max_length=1000)]
    gpu_cost: GpuCost
    fabric: Fabric | None = None
    without: Annotated[tuple[Name, ...], Field(max_length=1000)] = ()

    @property
    @abstractmethod
    def host_count(self) -> int:
        """The number of hosts."""

    @property
    @abstractmethod
    def _gpus_described(self) -> int:
        """The number of GPUs described for each host, before any is removed."""

    @property
    def gpus_per_host(self) -> int:
        """The number of GPUs in each host."""
        lost = {name.lower() for name in self.without if name.lower().startswith("gpu")}
        return self._gpus_described - len(lost)

    @abstractmethod
    def _with_host_count(self, hosts: int) -> MachineSpec: ...

    @abstractmethod
    def _with_gpus_per_host(self, gpus: int) -> MachineSpec: ...

    @abstractmethod
    def _count_in_host(self) -> tuple[int, int, int]:
        """The number of devices, of adapters among them, and of wires of one host."""

    @abstractmethod
    def _place_host(self, host: int, layout: Placing) -> list[Adapter]:
        """Adds one host and returns its adapters that join the fabric."""

    @property
    def ranks(self) -> int:
        """The number of GPUs in all hosts."""
        return self.host_count * self.gpus_per_host

    def sized(self, hosts: int | None = None, ranks: int | None = None) -> MachineSpec:
        """Returns this machine with another number of hosts, or another total number of GPUs.

        Raises:
            ConfigError: the machine cannot have that size.
        """
        if hosts is not None and ranks is not None:
            raise self._error("hosts and ranks are both given; give one of them")
        spec: MachineSpec = self
        if ranks is not None:
            spec = self._with_ranks(ranks)
        elif hosts is not None:
            spec = self._with_hosts(hosts)
        spec._check_size()
        return spec

    def with_fields(self, fields: dict[str, object]) -> MachineSpec:
        """The machine with these fields, in the form of `model_dump`."""
        return type(self).model_validate(fields)

    def host_kinds(self) -> tuple[MachineSpec, ...]:
        """A machine of one host for each kind of host."""
        return (self.sized(hosts=1),)

    def layout(self) -> Layout:
        """Every device and wire. Ranks are the GPUs in this order, host after host.

        Raises:
            ConfigError: there would be too many of them.
        """
        self._check_size()
        layout = Layout([], [])
        self._place(layout)
        if not self.without:
            return layout
        try:
            return without(layout, self.without)
        except ValueError as error:
            raise self._error(str(error)) from None

    def _place(self, layout: Placing) -> None:
        """Adds all devices and wires, including the removed ones."""
        adapters_of_hosts = [self._place_host(host, layout) for host in range(self.host_count)]
        if self.fabric is not None:
            self.fabric.place(adapters_of_hosts, layout)

    def _place_remaining(self, layout: Placing) -> None:
        """Adds all devices and wires except the removed ones."""
        if not self.without:
            return self._place(layout)
        remaining = self.layout()
        for device in remaining.devices:
            layout.add(*device)
        for wire in remaining.wires:
            layout.join(*wire)
        return None

    def build(self, hosts: int | None = None, ranks: int | None = None) -> Machine:
        """Builds the Machine for simulations.

        Raises:
            ConfigError: the machine cannot have that size, or a GPU cannot be reached.
        """
        from towpath import _core

        spec = self.sized(hosts, ranks)
        empty: dict[str, object] = {"devices": [], "wires": []}
        try:
            # One by one: all of a large machine as a text would be most of the memory of a run.
            parts = _core.MachineParts(json.dumps(spec._costs() | empty), f"machine '{self.name}'")
            spec._place_remaining(parts)
            return parts.build()
        except ValueError as error:
            raise ConfigError(str(error)) from None

    def data(self) -> dict[str, object]:
        """Data for the core: every device and wire, and values without sources.

        Raises:
            ConfigError: there would be too many devices or wires.
        """
        layout = self.layout()
        return self._costs() | {
            "devices": [device._asdict() for device in layout.devices],
            "wires": [
                {"between": [a, b], "link_type": link_type, "parallel": parallel}
                for a, b, link_type, parallel in layout.wires
            ],
        }

    def _costs(self) -> dict[str, object]:
        """Data for the core other than devices and wires."""
        seed = 0 if self.fabric is None else self.fabric.hash_seed
        return {
            "form": "machine",
            "name": self.name,
            **({"hash_seed": seed} if seed else {}),
            "link_types": {name: values_of(kind) for name, kind in self.link_types.items()},
            "gpu_cost": cost_data(self.gpu_cost),
        }

    def _error(self, problem: str) -> ConfigError:
        return ConfigError(problem, field=f"machine '{self.name}'")

    def _with_hosts(self, hosts: int) -> MachineSpec:
        if not 1 <= hosts <= HOSTS_MAX:
            raise self._error(f"hosts is {hosts}; it must be 1 to {HOSTS_MAX}")
        if hosts > 1 and self.fabric is None:
            raise self._error(f"hosts is {hosts}; without a fabric it must be 1")
        return self._with_host_count(hosts)

    def _with_ranks(self, ranks: int) -> MachineSpec:
        if self.fabric is None:
            return self._with_gpus_per_host(ranks)
        hosts, rest = divmod(ranks, self.gpus_per_host)
        if rest or hosts < 1:
            allowed = f"a multiple of its {self.gpus_per_host} GPUs per host"
            way_out = ""
            if 0 < ranks < self.gpus_per_host:
                way_out = f"; --ranks-per-host {ranks} --hosts 1 uses only {ranks} of them"
            raise self._error(f"ranks is {ranks}; it must be {allowed}{way_out}")
        return self._with_hosts(hosts)

    def _check_size(self) -> None:
        devices, adapters, wires = self._count_in_host()
        devices *= self.host_count
        wires *= self.host_count
        if self.fabric is not None:
            try:
                more = self.fabric.count(adapters, self.host_count)
            except PydanticCustomError as error:
                context = error.context or {}
                raise self._error(f"{context['field']} {context['problem']}") from None
            devices += more[0]
            wires += more[1]
        if devices > DEVICES_MAX:
            raise self._error(f"would have {devices} devices; it must have at most {DEVICES_MAX}")
        if wires > WIRES_MAX:
            raise self._error(f"would have {wires} wires; it must have at most {WIRES_MAX}")

    def _check_link_types(self, used: list[tuple[str, str | None]]) -> None:
        if self.fabric is not None:
            used = [*used, *self.fabric.used_link_types()]
        for field, link_type in used:
            if link_type is not None and link_type not in self.link_types:
                allowed = ", ".join(self.link_types)
                raise wrong(field, f"is {quoted(link_type)}; choose one of link_types: {allowed}")


def cost_data(cost: GpuCost) -> dict[str, object]:
    """A cost in the form of the core: values without sources."""
    names = [name for name in _COST_BLOCKS if getattr(cost, name) is not None]
    return values_of(cost) | {name: values_of(getattr(cost, name)) for name in names}


def _check_pairs(mesh: MeshInterconnect, last: int) -> None:
    for number, pair in enumerate(mesh.pairs):
        if max(pair) > last or pair[0] == pair[1]:
            problem = f"is {list(pair)}; it must be two different GPUs from 0 to {last}"
            raise wrong(f"hosts.gpu_interconnect.pairs[{number}]", problem)


class TemplateSpec(MachineSpec):
    """Equal hosts, generated by a rule."""

    form: Literal["template"]
    hosts: Hosts

    @model_validator(mode="after")
    def _check(self) -> TemplateSpec:
        hosts, connect = self.hosts, self.hosts.gpu_interconnect
        used = [("hosts.nic_link_type", hosts.nic_link_type)]
        if connect is not None:
            used.append(("hosts.gpu_interconnect.link_type", connect.link_type))
        for number, nic in enumerate(hosts.nics):
            used.append((f"hosts.nics[{number}].fabric_link_type", nic.fabric_link_type))
        self._check_link_types(used)
        last = hosts.gpus - 1
        for number, nic in enumerate(hosts.nics):
            if max(nic.gpus) > last or len(set(nic.gpus)) < len(nic.gpus):
                problem = f"is {list(nic.gpus)}; it must be different GPUs from 0 to {last}"
                raise wrong(f"hosts.nics[{number}].gpus", problem)
        if isinstance(connect, MeshInterconnect):
            _check_pairs(connect, last)
        if hosts.nics and hosts.nic_link_type is None:
            raise wrong("hosts", "has nics and so needs the field 'nic_link_type'")
        if self.fabric is not None and not hosts.nics:
            raise wrong("fabric", "joins adapters, so hosts.nics must name at least one")
        if self.fabric is None and hosts.count > 1:
            raise wrong("hosts.count", f"is {hosts.count}; without a fabric it must be 1")
        return self

    @property
    def host_count(self) -> int:
        return self.hosts.count

    @property
    def _gpus_described(self) -> int:
        return self.hosts.gpus

    def _with_host_count(self, hosts: int) -> MachineSpec:
        return self.model_copy(update={"hosts": self.hosts.model_copy(update={"count": hosts})})

    def _with_gpus_per_host(self, gpus: int) -> MachineSpec:
        fixed = self.hosts.nics or isinstance(self.hosts.gpu_interconnect, MeshInterconnect)
        if fixed and gpus != self.hosts.gpus:
            raise self._error(f"ranks is {gpus}; its hosts always have {self.hosts.gpus} GPUs")
        if not 1 <= gpus <= GPUS_PER_HOST_MAX:
            raise self._error(f"ranks is {gpus}; it must be 1 to {GPUS_PER_HOST_MAX}")
        return self.model_copy(update={"hosts": self.hosts.model_copy(update={"gpus": gpus})})

    def _count_in_host(self) -> tuple[int, int, int]:
        hosts = self.hosts
        wires = sum(len(nic.gpus) for nic in hosts.nics)
        match hosts.gpu_interconnect:
            case SwitchedInterconnect() | RingInterconnect():
                wires += hosts.gpus
            case FullInterconnect():
                wires += hosts.gpus * (hosts.gpus - 1) // 2
            case MeshInterconnect() as mesh:
                wires += len(mesh.pairs)
        nics = len(hosts.nics)
        return hosts.gpus + nics + 1, nics, wires

    def _place_host(self, host: int, layout: Placing) -> list[Adapter]:
        hosts, connect = self.hosts, self.hosts.gpu_interconnect
        forwards = getattr(connect, "forwards", False)
        gpus = [
            layout.add(f"host{host}/gpu{gpu}", "gpu", host, forwards) for gpu in range(hosts.gpus)
        ]
        if isinstance(connect, SwitchedInterconnect):
            switch = layout.add(f"host{host}/nvswitch", "nvswitch", host)
            ends: Iterator[tuple[int, int]] = ((gpu, switch) for gpu in gpus)
        else:
            ends = ((gpus[a], gpus[b]) for a, b in _pairs(connect, hosts.gpus))
        if connect is not None:
            for (a, b), wires in Counter(tuple(sorted(pair)) for pair in ends).items():
                layout.join(a, b, connect.link_type, wires)
        adapters = []
        for number, nic in enumerate(hosts.nics):
            device = layout.add(f"host{host}/nic{number}", "nic", host)
            adapters.append(Adapter(device, nic.fabric_link_type))
            for gpu in nic.gpus:
                layout.join(gpus[gpu], device, str(hosts.nic_link_type))
        return adapters


class GraphDevice(Frozen):
    """A device by name. All devices except GPUs forward traffic, unless `forwards` states
    otherwise.

    An adapter with `joins_fabric` has a link to the fabric, of type `fabric_link_type` or of the
    fabric's own type.
    """

    name: Name
    kind: DeviceKindName
    forwards: bool | None = Field(strict=True, default=None)
    joins_fabric: bool = Field(strict=True, default=True)
    fabric_link_type: Name | None = None

    @property
    def is_adapter(self) -> bool:
        """True if it joins its host to the fabric."""
        return self.kind == "nic" and self.joins_fabric


class GraphWire(Frozen):
    """A wire between two devices, with the rate of `parallel` links of its type."""

    between: tuple[Name, Name]
    link_type: Name
    parallel: Annotated[float, Field(strict=True, gt=0, le=1e6, allow_inf_nan=False)] = 1


class GraphSpec(MachineSpec):
    """A host device by device, in the form of the importers; with a fabric, any number of such
    hosts.
    """

    form: Literal["graph"]
    source: Text
    count: Annotated[int, Field(strict=True, ge=1, le=HOSTS_MAX)] = 1
    devices: Annotated[tuple[GraphDevice, ...], Field(min_length=1, max_length=DEVICES_MAX)]
    wires: Annotated[tuple[GraphWire, ...], Field(max_length=WIRES_MAX)] = ()

    @model_validator(mode="after")
    def _check(self) -> GraphSpec:
        names: set[str] = set()
        for number, device in enumerate(self.devices):
            if device.name in names:
                raise wrong(
                    f"devices[{number}].name", f"is {quoted(device.name)}, which is already in use"
                )
            names.add(device.name)
        for number, wire in enumerate(self.wires):
            field = f"wires[{number}]"
            for end in wire.between:
                if end not in names:
                    raise wrong(f"{field}.between", f"names {quoted(end)}, which is not a device")
            if wire.between[0] == wire.between[1]:
                raise wrong(f"{field}.between", "must name two different devices")
            if wire.link_type not in self.link_types:
                allowed = ", ".join(self.link_types)
                problem = f"is {quoted(wire.link_type)}; link_types has {allowed}"
                raise wrong(f"{field}.link_type", problem)
        self._check_link_types([
            (f"devices[{number}].fabric_link_type", device.fabric_link_type)
            for number, device in enumerate(self.devices)
        ])  # fmt: skip
        if self._gpus_described == 0:
            raise wrong("devices", "has no GPU; a machine needs at least one")
        if self.fabric is not None and not any(device.is_adapter for device in self.devices):
            raise wrong("fabric", "joins adapters, so devices must name at least one nic")
        if self.fabric is None and self.count > 1:
            raise wrong("count", f"is {self.count}; without a fabric it must be 1")
        return self

    @property
    def host_count(self) -> int:
        return self.count

    @property
    def _gpus_described(self) -> int:
        return sum(device.kind == "gpu" for device in self.devices)

    def _with_host_count(self, hosts: int) -> MachineSpec:
        return self.model_copy(update={"count": hosts})

    def _with_gpus_per_host(self, gpus: int) -> MachineSpec:
        if gpus != self.gpus_per_host:
            raise self._error(f"ranks is {gpus}; it always has {self.gpus_per_host}")
        return self

    def _count_in_host(self) -> tuple[int, int, int]:
        adapters = sum(device.is_adapter for device in self.devices)
        return len(self.devices), adapters, len(self.wires)

    def _place_host(self, host: int, layout: Placing) -> list[Adapter]:
        prefix = f"host{host}/"
        position: dict[str, int] = {}
        for device in self.devices:
            forwards = device.kind != "gpu" if device.forwards is None else device.forwards
            name = prefix + device.name
            position[device.name] = layout.add(name, device.kind, host, forwards)
        for wire in self.wires:
            a, b = (position[name] for name in wire.between)
            layout.join(a, b, wire.link_type, wire.parallel)
        return [
            Adapter(position[device.name], device.fabric_link_type)
            for device in self.devices
            if device.is_adapter
        ]


def parse_machine_spec(document: YamlDocument, file: str) -> MachineSpec:
    """Parses the spec of a YAML document.

    Raises:
        ConfigError: a field is missing, unknown or out of bounds; only the first one is named.
    """
    if not isinstance(document.data, dict):
        raise ConfigError("has no fields; it must be a machine spec", file=file, line=1)
    form = document.data.get("form")
    document = with_likes(document, file)
    if form == "template":
        return validated(TemplateSpec, document, file)
    if form == "graph":
        return validated(GraphSpec, document, file)
    if form == "mixed":
        from towpath.specs.mixed_spec import parse_mixed_spec

        return parse_mixed_spec(document, file)
    line = document.lines.get(("form",), 1)
    problem = f"is {quoted(form)}; it must be 'template', 'graph' or 'mixed'"
    raise ConfigError(problem, file=file, line=line, field="form")


def _pairs(connect: Interconnect | None, gpus: int) -> Iterator[tuple[int, int]]:
    match connect:
        case RingInterconnect():
            wires = gpus if gpus > 2 else gpus - 1
            yield from ((gpu, (gpu + 1) % gpus) for gpu in range(wires))
        case FullInterconnect():
            yield from combinations(range(gpus), 2)
        case MeshInterconnect():
            yield from connect.pairs
