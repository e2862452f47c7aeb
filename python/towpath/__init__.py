# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Moves data between processors: for real, or simulated on a machine that is only described.

>>> import towpath
>>> towpath.load("dgx-h100", hosts=1).run("all_reduce", size_bytes="1M").wrong
0

Machines: `machines`, `load`, `Machine`, `MachineInfo`, `GpuCluster`, `ChipCluster`,
`MailboxCluster`, `Chip`, `Host`, `HostCluster`.

Collectives: `RunResult`, `RunRow`, `Tuning`.

Schedules: `Schedule`, `algorithms`, `AlgorithmInfo`, `verify`, `Verdict`.

Errors: `TowpathError`, `ConfigError`, `TransportError`, `DeadlockError`, `HazardError`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from towpath.api.chips import Chip, ChipCluster
    from towpath.api.clusters import GpuCluster, MailboxCluster
    from towpath.api.host import Host
    from towpath.api.machine import Machine, MachineInfo, load, machines
    from towpath.api.result import RunResult, RunRow
    from towpath.api.schedule import AlgorithmInfo, Schedule, algorithms
    from towpath.api.verdict import Verdict, verify
    from towpath.errors import (
        ConfigError,
        DeadlockError,
        HazardError,
        TowpathError,
        TransportError,
    )
    from towpath.host.host_cluster import HostCluster
    from towpath.tuning.collective import Tuning

# Where each public name comes from. It is imported at its first use, so that `import towpath` and
# `towpath --help` cost next to nothing.
_HOMES = {
    "machines": "towpath.api.machine",
    "load": "towpath.api.machine",
    "Machine": "towpath.api.machine",
    "MachineInfo": "towpath.api.machine",
    "GpuCluster": "towpath.api.clusters",
    "ChipCluster": "towpath.api.chips",
    "MailboxCluster": "towpath.api.clusters",
    "Chip": "towpath.api.chips",
    "Host": "towpath.api.host",
    "HostCluster": "towpath.host.host_cluster",
    "RunResult": "towpath.api.result",
    "RunRow": "towpath.api.result",
    "Tuning": "towpath.tuning.collective",
    "Schedule": "towpath.api.schedule",
    "algorithms": "towpath.api.schedule",
    "AlgorithmInfo": "towpath.api.schedule",
    "verify": "towpath.api.verdict",
    "Verdict": "towpath.api.verdict",
    "TowpathError": "towpath.errors",
    "ConfigError": "towpath.errors",
    "TransportError": "towpath.errors",
    "DeadlockError": "towpath.errors",
    "HazardError": "towpath.errors",
}

__all__ = [*_HOMES]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("towpath")
    if name not in _HOMES:
        raise AttributeError(f"module 'towpath' has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, "__version__"})
