# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Moves data between processors: for real, or simulated on a described machine.

>>> import towpath
>>> result = towpath.load("dgx-h100", hosts=1).run("all_reduce", size_bytes="1M")
>>> result.algorithm, result.wrong
('two_shot_multimem_all_reduce', 0)

All names listed below are public: documented, stable, and deprecated for one release before they
change. All other names, including `towpath._core`, may change at any time.

**Machines.** `machines`, `load`, `MachineInfo`, `Machine`, `GpuCluster`, `ChipCluster`,
`MailboxCluster`, `Chip`, `Host`, `HostCluster`

**Collectives.** `Request`, `RunResult`, `RunRow`, `Tuning`

**Kernels.** `SourceKernel`, `FabricConnection`, `CircularBuffer`, `MemoryBlock`, `KernelRun`

**Live.** `run_live`, `tune_live`, `launch`, `connect`, `Communicator`, `Mailbox`

**Schedules.** `Schedule`, `algorithms`, `AlgorithmInfo`, `verify`, `Verdict`

**Kernels.** `kernel`, `Kernel`, `KernelProfile`

**Measurements.** `validate`, `Validation`, `validate_shipped`, `TableSummary`

**Sweeps.** `sweep`

**Errors.** `TowpathError`, `ConfigError`, `CompilationError`, `TransportError`, `DeadlockError`,
`HazardError`, `RankError`, `RunError`, `SweepError`

`__version__` is the version of the package.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from towpath.api.chips import Chip, ChipCluster
    from towpath.api.clusters import GpuCluster, MailboxCluster
    from towpath.api.gpu_kernel import Kernel, kernel
    from towpath.api.host import Host
    from towpath.api.kernel_profile import KernelProfile
    from towpath.api.live_run import run_live, tune_live
    from towpath.api.machine import Machine, MachineInfo, load, machines
    from towpath.api.request import Request
    from towpath.api.result import RunResult
    from towpath.api.schedule import AlgorithmInfo, Schedule, algorithms
    from towpath.api.verdict import Verdict, verify
    from towpath.collectives.live_communicator import Communicator, connect
    from towpath.collectives.live_launch import launch
    from towpath.collectives.live_mailbox import Mailbox
    from towpath.collectives.result import RunRow
    from towpath.errors import (
        CompilationError,
        ConfigError,
        DeadlockError,
        HazardError,
        RankError,
        RunError,
        SweepError,
        TowpathError,
        TransportError,
    )
    from towpath.host.host_cluster import HostCluster
    from towpath.kernels.chip_kernel import (
        CircularBuffer,
        FabricConnection,
        KernelRun,
        MemoryBlock,
        SourceKernel,
    )
    from towpath.studies.sweep import sweep
    from towpath.tuning.collective import Tuning
    from towpath.validation.shipped import TableSummary, validate_shipped
    from towpath.validation.validate import Validation, validate

    __version__: str

__all__ = [
    "machines",
    "load",
    "MachineInfo",
    "Machine",
    "GpuCluster",
    "ChipCluster",
    "MailboxCluster",
    "Chip",
    "Host",
    "HostCluster",
    "Request",
    "RunResult",
    "RunRow",
    "Tuning",
    "SourceKernel",
    "FabricConnection",
    "CircularBuffer",
    "MemoryBlock",
    "KernelRun",
    "run_live",
    "tune_live",
    "launch",
    "connect",
    "Communicator",
    "Mailbox",
    "Schedule",
    "algorithms",
    "AlgorithmInfo",
    "verify",
    "Verdict",
    "kernel",
    "Kernel",
    "KernelProfile",
    "validate",
    "Validation",
    "validate_shipped",
    "TableSummary",
    "sweep",
    "TowpathError",
    "ConfigError",
    "CompilationError",
    "TransportError",
    "DeadlockError",
    "HazardError",
    "RankError",
    "RunError",
    "SweepError",
]

# The module of each public name, imported at its first use: `import towpath` and `towpath --help`
# cost next to nothing.
_MODULES = {
    "api.machine": ("machines", "load", "MachineInfo", "Machine"),
    "api.clusters": ("GpuCluster", "MailboxCluster"),
    "api.chips": ("ChipCluster", "Chip"),
    "api.host": ("Host",),
    "host.host_cluster": ("HostCluster",),
    "api.request": ("Request",),
    "api.result": ("RunResult",),
    "collectives.result": ("RunRow",),
    "tuning.collective": ("Tuning",),
    "kernels.chip_kernel": (
        "SourceKernel",
        "FabricConnection",
        "CircularBuffer",
        "MemoryBlock",
        "KernelRun",
    ),
    "api.live_run": ("run_live", "tune_live"),
    "api.schedule": ("Schedule", "algorithms", "AlgorithmInfo"),
    "api.verdict": ("verify", "Verdict"),
    "api.gpu_kernel": ("kernel", "Kernel"),
    "api.kernel_profile": ("KernelProfile",),
    "studies.sweep": ("sweep",),
    "validation.shipped": ("TableSummary", "validate_shipped"),
    "validation.validate": ("Validation", "validate"),
    "collectives.live_launch": ("launch",),
    "collectives.live_communicator": ("connect", "Communicator"),
    "collectives.live_mailbox": ("Mailbox",),
    "errors": (
        "TowpathError",
        "ConfigError",
        "CompilationError",
        "TransportError",
        "DeadlockError",
        "HazardError",
        "RankError",
        "RunError",
        "SweepError",
    ),
}
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names}


if not TYPE_CHECKING:  # type checkers know every name from the imports above, and no other

    def __getattr__(name: str) -> Any:
        if name == "__version__":
            from importlib.metadata import version

            return version("towpath")
        if name not in _MODULE_OF:
            raise AttributeError(f"module 'towpath' has no attribute {name!r}")
        from importlib import import_module

        value = getattr(import_module(f"towpath.{_MODULE_OF[name]}"), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
