# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Tables measured on chips that Ethernet joins: latency of the fabric, and collectives over it."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from towpath import _core, machines
from towpath.simulated import Call
from towpath.table_kind import (
    CannotSimulate,
    Context,
    Prediction,
    Row,
    TableKind,
    one_of,
    real,
    whole,
)

# Larger ones are on the line through this size and half of it.
SIMULATED_BYTES_MAX = 4 << 20
_PAYLOAD_BYTES_MAX = 1 << 14
_SIZE_BYTES_MAX = 1 << 40
_CHIPS = 8


@lru_cache(maxsize=4)
def _cluster(name: str) -> _core.ChipCluster:
    return machines.load_chip_cluster(name).core()


@lru_cache(maxsize=1)
def blackhole_line() -> _core.ChipCluster:
    """Eight Blackholes in a line with two links between neighbours: a line of a Galaxy."""
    chip = machines.load_chip("blackhole").core()
    chips = [_core.ClusterChip(chip, x=x) for x in range(_CHIPS)]
    links = [
        _core.EthernetLink((x, 2 + plane), (x + 1, plane))
        for x in range(_CHIPS - 1)
        for plane in range(2)
    ]
    return _core.ChipCluster(name="line of Blackholes", chips=chips, links=links)


def _cluster_of(context: Context) -> _core.ChipCluster:
    return _cluster(context.machine or "t3000")


def _line(cluster: _core.ChipCluster) -> _core.FabricShape:
    """The chips of the usual fabric, with its ring cut open."""
    return _core.FabricShape.line(_core.FabricShape.usual(cluster).chips)


# --- latency --------------------------------------------------------------------------------------


def _predict_neighbour(row: Row, context: Context) -> Prediction:
    one_of(row, "system", ("t3k_8",))
    one_of(row, "topology", ("Linear",))
    kind = one_of(row, "ntype", ("NOC_UNICAST_WRITE", "NOC_FUSED_UNICAST_ATOMIC_INC"))
    cluster = _cluster_of(context)
    # From one board to the next: the chips of a board share a link with the dispatcher.
    round_trip_ns = _core.fabric_round_trip_ns(
        cluster, _line(cluster), source=1, destination=2,
        payload_bytes=whole(row, "payload_bytes", _PAYLOAD_BYTES_MAX),
        is_fused=kind == "NOC_FUSED_UNICAST_ATOMIC_INC",
    )  # fmt: skip
    return Prediction(round_trip_ns / 2)


def _predict_line(row: Row, context: Context) -> Prediction:
    one_of(row, "system", ("T3000",))
    one_of(row, "topology", ("linear",))
    size = whole(row, "line_size", _CHIPS, least=2)
    if whole(row, "hops_counted", 2 * _CHIPS) != 2 * (size - 1):
        raise CannotSimulate(f"hops_counted must be {2 * (size - 1)}, to the far end and back")
    cluster = _cluster_of(context)
    message_bytes = whole(row, "message_bytes", _PAYLOAD_BYTES_MAX, least=0)
    return Prediction(
        _core.fabric_round_trip_ns(
            cluster, _line(cluster), source=0, destination=size - 1, payload_bytes=message_bytes,
            is_fused=row["fused_payload_with_sync"].strip() == "True",
        )
    )  # fmt: skip


# --- collectives ----------------------------------------------------------------------------------


@lru_cache(maxsize=256)
def call_us(machine: str, algorithm: str, channels: int, both_ways: bool, size_bytes: int) -> float:
    """The time of a call after another one, on eight chips."""
    cluster = blackhole_line() if machine == "blackhole line" else _cluster(machine)
    order = list(range(_CHIPS))
    rings = [order[:: 1 - 2 * (channel % 2)] for channel in range(channels)] if both_ways else []
    call = Call(_core.make_schedule(algorithm, ranks=_CHIPS, channels=channels, rings=rings))
    plan = call.plan(size_bytes)
    run = _core.SimulatedRun(cluster, plan, carries_data=False)
    run.invoke(plan)
    return run.invoke(plan)


# What an operation is on each kind of machine: schedules that run one after the other.
_SCHEDULES = {
    ("ring", "all_gather"): ("ring_all_gather",),
    ("ring", "reduce_scatter"): ("ring_reduce_scatter",),
    ("ring", "all_reduce"): ("ring_reduce_scatter", "ring_all_gather"),
    ("line", "all_gather"): ("line_all_gather",),
    ("line", "reduce_scatter"): ("line_reduce_scatter",),
    ("line", "all_reduce"): ("line_reduce_scatter", "line_all_gather"),
}


def _predict_collective(row: Row, context: Context) -> Prediction:
    arch = one_of(row, "arch", ("wormhole_b0", "blackhole"))
    one_of(row, "mode", ("single",))
    form = one_of(row, "topology", ("ring",) if arch == "wormhole_b0" else ("line",))
    operation = one_of(row, "op", ("all_gather", "reduce_scatter", "all_reduce"))
    whole(row, "n_devices", _CHIPS, least=_CHIPS)
    links = 1 if arch == "wormhole_b0" else 2
    whole(row, "links_per_direction", links, least=links)
    size_bytes = whole(row, "size_bytes", _SIZE_BYTES_MAX, least=4096)
    machine = (context.machine or "t3000") if arch == "wormhole_b0" else "blackhole line"

    def time_us(size_bytes: int) -> float:
        return sum(
            call_us(machine, algorithm, 2, form == "ring", size_bytes)
            for algorithm in _SCHEDULES[form, operation]
        )

    if size_bytes <= SIMULATED_BYTES_MAX:
        return Prediction(time_us(size_bytes))
    large, small = time_us(SIMULATED_BYTES_MAX), time_us(SIMULATED_BYTES_MAX // 2)
    slope = (large - small) / (SIMULATED_BYTES_MAX // 2)
    details: dict[str, Any] = {"scaled_from": {"size_bytes": SIMULATED_BYTES_MAX, "time_us": large}}
    return Prediction(large + slope * (size_bytes - SIMULATED_BYTES_MAX), details)


def _group_of_collective(row: Row) -> str:
    return f"{row['arch']} {row['topology']} {row['op']} on {row['n_devices']}"


FABRIC_KINDS = (
    TableKind(
        name="latency between neighbours of a fabric",
        columns=frozenset({"system", "ntype", "topology", "payload_bytes", "per_hop_avg_ns"}),
        unit="ns",
        identity=("system", "ntype"),
        group=lambda row: f"{row['system']} {row['ntype']}",
        measured=lambda row: real(row, "per_hop_avg_ns"),
        predict=_predict_neighbour,
        label=lambda row: f"{row['payload_bytes']} B",
        check_machine=machines.load_chip_cluster,
    ),
    TableKind(
        name="latency along a line of chips",
        columns=frozenset({"system", "topology", "line_size", "hops_counted", "mean_ns"}),
        unit="ns",
        identity=("system", "message_bytes"),
        group=lambda row: f"{row['system']} {row['topology']} of {row['line_size']}",
        measured=lambda row: real(row, "mean_ns"),
        predict=_predict_line,
        label=lambda row: f"{row['message_bytes']} B",
        check_machine=machines.load_chip_cluster,
    ),
    TableKind(
        name="collectives on chips",
        columns=frozenset({"arch", "topology", "op", "n_devices", "size_bytes", "time_us"}),
        unit="us",
        identity=("arch", "topology", "op"),
        group=_group_of_collective,
        measured=lambda row: real(row, "time_us"),
        predict=_predict_collective,
        label=lambda row: f"{row['size_bytes']} B",
        check_machine=machines.load_chip_cluster,
    ),
)
