# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Provenance of a result: version, date, and a hash of each machine and schedule."""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from enum import Enum
from typing import Any, Protocol

from pydantic import BaseModel

from towpath import _core

_HASH_DIGITS = 16


class Named(Protocol):
    """A machine, chip, host or cluster in the form of its file."""

    @property
    def name(self) -> str: ...


class Fingerprinted(Protocol):
    """A schedule with a hash of its steps, such as `towpath.Schedule`."""

    @property
    def name(self) -> str: ...

    @property
    def fingerprint(self) -> str: ...


@dataclass(frozen=True)
class Provenance:
    """Provenance of a result.

    Attributes:
        version: the version of Towpath.
        date: date and time in UTC: "2026-11-22T06:40:00Z".
        machines: the name of each machine, chip and host, and the hash of its description.
        schedules: the name of each schedule, and the hash of its steps.
    """

    version: str
    date: str
    machines: Mapping[str, str] = field(default_factory=dict)
    schedules: Mapping[str, str] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Returns it as plain data, under the key that every JSON result has."""
        return {
            "towpath": self.version,
            "date": self.date,
            "machines": dict(self.machines),
            "schedules": dict(self.schedules),
        }

    def lines(self) -> list[str]:
        """The lines for the footer of a page."""
        made = f"Towpath {self.version}, {self.date}"
        hashed = [
            f"{kind} {name} {digits}"
            for kind, found in (("machine", self.machines), ("schedule", self.schedules))
            for name, digits in found.items()
        ]
        return [made, *hashed]


def provenance(
    machines: Iterable[Named] = (), schedules: Iterable[_core.Schedule | Fingerprinted] = ()
) -> Provenance:
    """The provenance of a result: this version of Towpath, the current time, and these inputs.

    Args:
        machines: the simulated specs.
        schedules: the schedules of the run.

    Returns:
        The provenance. The date is SOURCE_DATE_EPOCH if this variable is set, so that builds of
        documents are reproducible.
    """
    from importlib.metadata import version

    seconds = int(os.environ.get("SOURCE_DATE_EPOCH", time.time()))
    return Provenance(
        version=version("towpath"),
        date=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds)),
        machines={machine.name: machine_hash(machine) for machine in machines},
        schedules={schedule.name: schedule_hash(schedule) for schedule in schedules},
    )


def joined(provenances: Iterable[Provenance]) -> Provenance:
    """The provenance of several results together: the date of the last one, and all inputs."""
    made = list(provenances)
    machines = {name: digits for each in made for name, digits in each.machines.items()}
    schedules = {name: digits for each in made for name, digits in each.schedules.items()}
    return replace(made[-1], machines=machines, schedules=schedules)


def machine_hash(spec: object) -> str:
    """The hash of a spec. It changes with each value, source or link of the spec."""
    text = json.dumps(_plain(spec), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:_HASH_DIGITS]


def schedule_hash(schedule: _core.Schedule | Fingerprinted) -> str:
    """The hash of a schedule: the fingerprint that the ranks of a live run compare."""
    if isinstance(schedule, _core.Schedule):
        return f"{_core.fingerprint(schedule):016x}"
    return schedule.fingerprint


def _plain(value: object) -> object:
    """The value in the form of JSON."""
    if isinstance(value, BaseModel):
        return {name: _plain(getattr(value, name)) for name in type(value).model_fields}
    if is_dataclass(value):
        return {each.name: _plain(getattr(value, each.name)) for each in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, Enum):
        return value.name
    if isinstance(value, (list, tuple)):
        return [_plain(each) for each in value]
    if isinstance(value, (set, frozenset)):
        return sorted(str(_plain(each)) for each in value)
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise TypeError(f"a {type(value).__name__} in a machine has no hash")
