# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""The GPUs on which ranks run, and the number of channels that fill their links."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from towpath import _core
from towpath.errors import ConfigError

if TYPE_CHECKING:
    from towpath.specs.machine_spec import MachineSpec

# A thread block moves 16 KiB in the time of a signal over NVLink, about half a microsecond.
_CHUNK_BYTES_LEAST = 16 << 10
_NEVER_STORE = ("reduce", "reduce_scatter")


def gpus_used(spec: MachineSpec, ranks_per_host: int | None) -> list[int]:
    """The GPUs on which ranks run, in the order of ranks; by default all.

    Raises:
        ConfigError: hosts have fewer GPUs.
    """
    per_host = spec.gpus_per_host
    used = per_host if ranks_per_host is None else ranks_per_host
    if not 1 <= used <= per_host:
        raise ConfigError(
            f"--ranks-per-host is {used}; it must be 1 to {per_host}, the number of GPUs in "
            f"each host of machine '{spec.name}'"
        )
    return [h * per_host + g for h in range(spec.host_count) for g in range(used)]


def hosts_of(spec: MachineSpec, gpus: list[int]) -> int:
    """Number of hosts with these GPUs."""
    return len({gpu // spec.gpus_per_host for gpu in gpus})


def reaches_of(spec: MachineSpec, gpus: list[int]) -> tuple[_core.Reach, ...]:
    """The forms of access between these GPUs: memory within a host, and the switch if it
    combines and multicasts.
    """
    reach = _core.Reach
    combines = all(_has_combining_switch(host) for host in spec.host_kinds())
    if hosts_of(spec, gpus) > 1:
        return (reach.fifo, *((reach.group_of_host,) if combines else ()))
    within = (reach.group, reach.multicast) if combines else ()
    return (reach.fifo, reach.memory, *within)


def fabric_gb_per_s(spec: MachineSpec) -> float:
    """Rate at which one host can send to the others."""
    layout = spec.layout()
    first = {at for at, device in enumerate(layout.devices) if device.host == 0}
    return sum(
        spec.link_types[wire.link_type].rate_gb_per_s.value * wire.parallel
        for wire in layout.wires
        if (wire.a in first) != (wire.b in first)
    )


def _has_combining_switch(host: MachineSpec) -> bool:
    switches = sum(device.kind == "nvswitch" for device in host.layout().devices)
    return bool(host.gpu_cost.in_switch_reduction) and switches == 1


def channels_worth_it(ranks: int, largest_bytes: int) -> int:
    """Maximum useful number of channels. With more, the latency of a step exceeds the time of a
    ring's chunk.
    """
    return max(largest_bytes // (ranks * _CHUNK_BYTES_LEAST), 1)


def channels_to_fill(spec: MachineSpec, collective: str | None = None) -> int:
    """Number of channels that fill the wires of a GPU: enough thread blocks, and the same number
    per rail.

    Args:
        spec: the machine.
        collective: the collective of the channels; in a reduction to one part or one rank, no
            thread block stores the bytes that it forwards.
    """
    cost = spec.gpu_cost.simple
    rates = [cost.block_rate_gb_per_s.value]
    if collective not in _NEVER_STORE and cost.forward_rate_gb_per_s is not None:
        rates.append(cost.forward_rate_gb_per_s.value)
    blocks = max(_blocks_of_host(host, min(rates)) for host in spec.host_kinds())
    rails = spec.gpus_per_host if spec.host_count > 1 else 1
    return int(min(-(-blocks // rails) * rails, 32))


def _blocks_of_host(spec: MachineSpec, block_rate_gb_per_s: float) -> float:
    """Number of thread blocks that fill the wires of one GPU.

    If GPUs are joined pairwise, channels use different wires, each of which needs whole blocks. If
    a GPU has wires to switches or to its host, it sends over the wires to the fastest of these. If
    it has no wires, the fastest type of link counts.
    """
    rates = {name: kind.rate_gb_per_s.value for name, kind in spec.link_types.items()}
    layout = spec.layout()
    to: dict[tuple[int, int], float] = defaultdict(float)
    for wire in layout.wires:
        rate = rates[wire.link_type] * wire.parallel
        for gpu, other in ((wire.a, wire.b), (wire.b, wire.a)):
            if layout.devices[gpu].kind == "gpu":
                to[gpu, other] += rate
    to_gpus: dict[int, float] = defaultdict(float)
    most = 0.0
    for (gpu, other), rate in to.items():
        blocks = -(-rate // block_rate_gb_per_s)
        most = max(most, blocks)
        if layout.devices[other].kind == "gpu":
            to_gpus[gpu] += blocks
    if not to:
        return -(-max(rates.values()) // block_rate_gb_per_s)
    return max([most, *to_gpus.values()])
