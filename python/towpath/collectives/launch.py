# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""The ways of launching a collective on GPUs, which decide the time of small messages."""

from __future__ import annotations

from typing import Any

from towpath.errors import ConfigError, quoted
from towpath.specs.machine_spec import MachineSpec

PROCESSES, THREADS, ONE_PROCESS, GRAPH = "processes", "threads", "one-process", "graph"
LAUNCHES = (PROCESSES, THREADS, ONE_PROCESS, GRAPH)
_FIELDS = {THREADS: "launch_by_threads_ns", GRAPH: "launch_in_graph_ns"}


def check_launch(way: str) -> str:
    """The same word.

    Raises:
        ConfigError: there is no such way.
    """
    if way not in LAUNCHES:
        raise ConfigError(
            f"launch is {quoted(way)}; choose one of {', '.join(LAUNCHES)}", field="launch"
        )
    return way


def launched(spec: MachineSpec, way: str) -> MachineSpec:
    """A machine whose launches are of one way.

    Args:
        spec: a machine of GPUs.
        way: "processes": one per GPU. "threads": one process with a thread per GPU.
            "one-process": one thread launches for all GPUs of a host. "graph": a node of a CUDA
            graph.

    Raises:
        ConfigError: the machine has no value for it.
    """
    field = _FIELDS.get(check_launch(way))
    if field is None:
        return spec
    return spec.model_copy(
        update={"gpu_cost": spec.gpu_cost.model_copy(update={"launch_ns": _cost(spec, field)})}
    )


def least_us(spec: MachineSpec, way: str, gpus: int) -> float:
    """The least time of a call in a series of calls: a host cannot launch faster.

    Args:
        spec: a machine of GPUs.
        way: as in `launched`.
        gpus: number of GPUs of a host in use.

    Raises:
        ConfigError: the machine has no value for it.
    """
    if way != ONE_PROCESS:
        return 0.0
    return float(_cost(spec, "host_launch_ns").value) * gpus / 1e3


def _cost(spec: MachineSpec, field: str) -> Any:
    found = getattr(getattr(spec, "gpu_cost", None), field, None)
    if found is None:
        raise ConfigError(
            f"machine {quoted(spec.name)} has no {field} in gpu_cost, which this launch needs; "
            "add it, or launch by processes",
            field="launch",
        )
    return found
