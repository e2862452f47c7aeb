# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Tables measured on chips that Ethernet joins: latency of the fabric, and collectives over it."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from towpath import _core
from towpath.collectives.call import Call
from towpath.schedules.schedule_source import ScheduleSource
from towpath.specs import catalogue
from towpath.studies.ethernet_links import cluster_of
from towpath.validation.table_kind import (
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
SIMULATED_BYTES_MAX = 8 << 20
_PAYLOAD_BYTES_MAX = 1 << 14
_SIZE_BYTES_MAX = 1 << 40
_CHIPS = 8


def _line(cluster: _core.ChipCluster) -> _core.FabricShape:
    """The chips of the usual fabric, with its ring cut open."""
    return _core.FabricShape.line(_core.FabricShape.usual(cluster).chips)


# --- latency --------------------------------------------------------------------------------------


def _predict_neighbour(row: Row, context: Context) -> Prediction:
    one_of(row, "system", ("t3k_8",))
    one_of(row, "topology", ("Linear",))
    kind = one_of(row, "ntype", ("NOC_UNICAST_WRITE", "NOC_FUSED_UNICAST_ATOMIC_INC"))
    cluster = cluster_of(context.machine or "t3000")
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
    cluster = cluster_of(context.machine or "t3000")
    message_bytes = whole(row, "message_bytes", _PAYLOAD_BYTES_MAX, least=0)
    is_fused = one_of(row, "fused_payload_with_sync", ("True", "False"))
    return Prediction(
        _core.fabric_round_trip_ns(
            cluster, _line(cluster), source=0, destination=size - 1, payload_bytes=message_bytes,
            is_fused=is_fused == "True",
        )
    )  # fmt: skip


# --- collectives ----------------------------------------------------------------------------------


# By architecture: where its rows were measured, as what, over how many links each way, and on how
# many channels. On Wormhole those are one worker for each direction of a link. On Blackhole two, by
# reduce-scatter of 1 MiB: with one each step would wait for the compute cores.
_MEASURED_ON = {
    "wormhole_b0": ("t3000", "ring", 1, 2),
    "blackhole": ("blackhole-line", "line", 2, 4),
}
# tt-metal, CCL_bandwidth.md: up to here a ring's parts go straight to their ranks.
_ONE_SHOT_BYTES_MAX = 512 << 10

# By operation: collectives that run one after the other.
_PARTS = {
    "all_gather": ("all_gather",),
    "reduce_scatter": ("reduce_scatter",),
    "all_reduce": ("reduce_scatter", "all_gather"),
}


@lru_cache(maxsize=256)
def call_us(machine: str, collective: str, algorithm: str, channels: int, size_bytes: int) -> float:
    """The time of a call after another one, on eight chips."""
    goes_round = algorithm.startswith("ring")
    source = ScheduleSource(
        None, collective, algorithm, _CHIPS, channels=channels, both_ways=goes_round
    )
    plan = Call(source.schedule()).plan(size_bytes)
    run = _core.SimulatedRun.on_chips(cluster_of(machine), plan, carries_data=False)
    run.invoke(plan)
    return run.invoke(plan)


def _algorithm(form: str, collective: str, size_bytes: int) -> str:
    is_one_shot = form == "ring" and size_bytes <= _ONE_SHOT_BYTES_MAX
    if collective == "reduce_scatter" and is_one_shot:
        return "all_pairs_reduce_scatter"
    return f"{form}_{collective}"


def _predict_collective(row: Row, context: Context) -> Prediction:
    machine, form, links, channels = _MEASURED_ON[one_of(row, "arch", tuple(_MEASURED_ON))]
    one_of(row, "mode", ("single",))
    one_of(row, "topology", (form,))
    parts = _PARTS[one_of(row, "op", tuple(_PARTS))]
    whole(row, "n_devices", _CHIPS, least=_CHIPS)
    whole(row, "links_per_direction", links, least=links)
    size_bytes = whole(row, "size_bytes", _SIZE_BYTES_MAX, least=4096)

    def time_us(size_bytes: int) -> float:
        named = context.machine or machine
        return sum(
            call_us(
                named, collective, _algorithm(form, collective, size_bytes), channels, size_bytes
            )
            for collective in parts
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
        check_machine=catalogue.load_chip_cluster,
    ),
    TableKind(
        name="latency along a line of chips",
        columns=frozenset({
            "system", "topology", "line_size", "hops_counted", "message_bytes",
            "fused_payload_with_sync", "mean_ns",
        }),
        unit="ns",
        identity=("system", "message_bytes"),
        group=lambda row: f"{row['system']} {row['topology']} of {row['line_size']}",
        measured=lambda row: real(row, "mean_ns"),
        predict=_predict_line,
        label=lambda row: f"{row['message_bytes']} B",
        check_machine=catalogue.load_chip_cluster,
    ),
    TableKind(
        name="collectives on chips",
        columns=frozenset({
            "arch", "topology", "mode", "op", "n_devices", "links_per_direction", "size_bytes",
            "time_us",
        }),
        unit="us",
        identity=("arch", "topology", "op"),
        group=_group_of_collective,
        measured=lambda row: real(row, "time_us"),
        predict=_predict_collective,
        label=lambda row: f"{row['size_bytes']} B",
        check_machine=catalogue.load_chip_cluster,
    ),
)  # fmt: skip
