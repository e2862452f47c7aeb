# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""A machine with hosts of different kinds: a number of hosts of one machine, followed by a number
of another.

Its fabric joins the adapters of all hosts. A link type of a part is named "part/type", as in
"dgx-h100/nvlink". The machine's own link types are those of the fabric.
"""

from __future__ import annotations

from functools import cached_property
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import Field, model_validator

from towpath.errors import ConfigError
from towpath.specs.input_file import YamlDocument
from towpath.specs.layout import Adapter, Placing
from towpath.specs.machine_spec import HOSTS_MAX, MachineSpec, cost_data
from towpath.specs.spec_model import Frozen, validated, wrong


class Part(Frozen):
    """Consecutive hosts of one kind.

    Attributes:
        machine: a shipped machine, or a file in the same folder.
        count: number of hosts.
    """

    machine: Annotated[str, Field(min_length=1, max_length=1000)]
    count: Annotated[int, Field(strict=True, ge=1, le=HOSTS_MAX)]


class _Prefixed(NamedTuple):
    """Adds a prefix to the types of links before they reach the layout."""

    layout: Placing
    prefix: str

    def add(self, name: str, kind: str, host: int, forwards: bool = True) -> int:
        """Adds a device; see Placing."""
        return self.layout.add(name, kind, host, forwards)

    def join(self, a: int, b: int, link_type: str, parallel: float = 1) -> None:
        """Adds a wire; see Placing."""
        self.layout.join(a, b, self.prefix + link_type, parallel)


class MixedSpec(MachineSpec):
    """Hosts of several kinds, each described by another machine."""

    form: Literal["mixed"]
    parts: Annotated[tuple[Part, ...], Field(min_length=2, max_length=100)]
    described: tuple[MachineSpec, ...] = Field(default=(), exclude=True)

    @model_validator(mode="after")
    def _check(self) -> MixedSpec:
        if self.fabric is None:
            raise wrong("fabric", "is missing; hosts of different kinds need one")
        self._check_link_types([])
        return self

    @property
    def host_count(self) -> int:
        return sum(part.count for part in self.parts)

    @property
    def _gpus_described(self) -> int:
        return self.described[0].gpus_per_host

    def _with_host_count(self, hosts: int) -> MachineSpec:
        if hosts != self.host_count:
            parts = " and ".join(f"{part.count} of {part.machine}" for part in self.parts)
            raise self._error(f"hosts is {hosts}; it has {self.host_count}, {parts}")
        return self

    def _with_gpus_per_host(self, gpus: int) -> MachineSpec:
        if gpus != self.gpus_per_host:
            raise self._error(f"ranks is {gpus}; each host always has {self.gpus_per_host}")
        return self

    def _count_in_host(self) -> tuple[int, int, int]:
        counts = [spec._count_in_host() for spec in self.described]
        devices, adapters, wires = (max(each) for each in zip(*counts, strict=True))
        return devices, adapters, wires

    def with_fields(self, fields: dict[str, object]) -> MachineSpec:
        """The machine with these fields; see MachineSpec. The files of the parts contain the costs
        of GPUs.

        Raises:
            ConfigError: the costs differ.
        """
        spec = type(self).model_validate(fields)
        if spec.gpu_cost != self.gpu_cost:
            raise self._error(
                "--set gpu_cost has no effect on hosts of different kinds; change the file of "
                "a part"
            )
        return spec.model_copy(update={"described": self.described})

    def host_kinds(self) -> tuple[MachineSpec, ...]:
        """A machine of one host for each kind; see MachineSpec."""
        return tuple(spec.sized(hosts=1) for spec in self.described)

    @cached_property
    def _part_of_host(self) -> tuple[int, ...]:
        return tuple(n for n, part in enumerate(self.parts) for _ in range(part.count))

    def _place_host(self, host: int, layout: Placing) -> list[Adapter]:
        number = self._part_of_host[host]
        spec, prefix = self.described[number], f"{_prefix(self.parts[number].machine)}/"
        adapters = spec._place_host(host, _Prefixed(layout, prefix))
        own = None if spec.fabric is None else spec.fabric.link_type
        return [
            Adapter(adapter.device, prefix + link_type if link_type else None)
            for adapter in adapters
            for link_type in (adapter.link_type or own,)
        ]

    def _costs(self) -> dict[str, object]:
        """Data for the core other than devices and wires; hosts of later kinds have their own
        costs.
        """
        groups, first = [], 0
        for part, spec in zip(self.parts, self.described, strict=True):
            cost = cost_data(spec.gpu_cost)
            groups.append({"first_host": first, "hosts": part.count, "gpu_cost": cost})
            first += part.count
        return super()._costs() | {"gpu_costs_of_hosts": groups[1:]}


def _prefix(machine: str) -> str:
    return machine.rsplit("/", maxsplit=1)[-1].removesuffix(".yaml")


def parse_mixed_spec(document: YamlDocument, file: str) -> MixedSpec:
    """Parses the spec of a YAML document of the form `mixed`.

    Raises:
        ConfigError: a field or a part's machine is wrong.
    """
    fields: Any = document.data
    parts = fields.get("parts")
    parts = parts if isinstance(parts, list) else []
    described = [_machine(part, number, file) for number, part in enumerate(parts)]
    link_types = dict(fields.get("link_types") or {})
    for part, spec in zip(parts, described, strict=True):
        for name, link_type in spec.link_types.items():
            own = f"{_prefix(part['machine'])}/{name}"
            link_types[own] = link_type.model_dump(exclude_none=True)
    data = fields | {"link_types": link_types}
    if described:
        data |= {"gpu_cost": described[0].gpu_cost.model_dump(exclude_none=True)}
    spec = validated(MixedSpec, document._replace(data=data), file)
    sizes = [each.gpus_per_host for each in described]
    if len(set(sizes)) > 1:
        problem = f"have {', '.join(map(str, sizes))} GPUs per host; they must have equally many"
        raise ConfigError(problem, file=file, field="parts")
    return spec.model_copy(update={"described": tuple(described)})


def _machine(part: object, number: int, file: str) -> MachineSpec:
    from pathlib import Path

    from towpath.specs import catalogue, shipped

    field = f"parts[{number}].machine"
    name = part.get("machine") if isinstance(part, dict) else None
    if not isinstance(name, str) or not name:
        raise ConfigError("is missing; it must name a machine", file=file, field=field)
    if name in shipped.names("gpu_cluster"):
        return shipped.machine(name)
    beside = Path(file).parent / name
    if not beside.is_file() or beside.resolve() == Path(file).resolve():
        known = ", ".join(shipped.names("gpu_cluster"))
        problem = f"is '{name}'; choose one of {known}, or the name of a file in the same folder"
        raise ConfigError(problem, file=file, field=field)
    spec = catalogue.load(beside)
    if isinstance(spec, MixedSpec):
        raise ConfigError(
            f"is '{name}', which is itself mixed; choose another machine", file=file, field=field
        )
    return spec
