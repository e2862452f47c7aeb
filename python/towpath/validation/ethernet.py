# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Tables measured on links between chips: tests of a link, and the multichip guide's values."""

from __future__ import annotations

import re
import statistics

from towpath import _core
from towpath.specs import catalogue
from towpath.studies.ethernet_links import (
    SAMPLES,
    best_channels,
    bidirectional_gb_per_s,
    channels_that_fit,
    cluster_of,
    ring_us,
    ring_wire_us,
)
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

_PACKET_BYTES_MAX = 1 << 16
_MESSAGES = 1024  # for a bandwidth: enough for the first and last to count for little
_LINE_BYTES_PER_NS = 12.5


# --- one link, as tt-metal tests all of a machine -------------------------------------------------

_TESTS = ("erisc", "erisc_write_worker", "erisc_write_worker_no_trid")


# By architecture: a machine with a link.
_LINKED = {"wormhole_b0": "n300", "blackhole": "blackhole-line"}


# How tables spell that both ends send.
_BOTH_WAYS = {"uni": False, "bi": True, "bidir": True, "both": True}
_SLOTS_MAX = 16
_SYNC_BYTES = 16


def _predict_link(row: Row, context: Context) -> Prediction:
    """Bandwidth of many messages, or the time until a whole message has returned."""
    machine = _LINKED[one_of(row, "arch", tuple(_LINKED))]
    both_ways = _BOTH_WAYS[one_of(row, "direction", tuple(_BOTH_WAYS))]
    kind = one_of(row, "test", _TESTS)
    size_bytes = whole(row, "packet_bytes", _PACKET_BYTES_MAX)
    is_latency = one_of(row, "metric", ("bandwidth", "sender_latency")) == "sender_latency"
    messages = 1 if is_latency else _MESSAGES
    cluster = cluster_of(context.machine or machine)
    time_ns = _core.link_test_ns(
        cluster, kind=kind, message_bytes=size_bytes,
        messages=messages, returns_payload=is_latency, both_ways=both_ways,
        slots=_slots(cluster, size_bytes) if both_ways else _SLOTS_MAX,
    )  # fmt: skip
    return Prediction(time_ns if is_latency else messages * size_bytes / time_ns)


def _slots(cluster: _core.ChipCluster, size_bytes: int) -> int:
    """Number of slots for both directions that fit into the memory of programs; an even number."""
    l1_bytes = cluster.chips[0].chip.ethernet_l1_bytes - _core.ETHERNET_ALLOCATED_BASE
    slots = min(l1_bytes // (2 * (size_bytes + _SYNC_BYTES)), _SLOTS_MAX) // 2 * 2
    if slots < 2:
        raise CannotSimulate(f"two slots of {size_bytes} bytes each way do not fit into L1")
    return slots


# --- the figures of the multichip guide -----------------------------------------------------------


def _parsed(row: Row, pattern: str) -> re.Match[str]:
    match = re.fullmatch(pattern, row["series"].strip())
    if match is None:
        raise CannotSimulate(f"series is '{row['series']}'; {row['figure']} does not have it")
    return match


def _ubench1(row: Row, cluster: _core.ChipCluster) -> Prediction:
    size_bytes = whole(row, "x", _PACKET_BYTES_MAX)
    if channels_that_fit(size_bytes) < 1:
        raise CannotSimulate(f"two packets of {size_bytes} bytes do not fit into L1")
    best, channels = best_channels(cluster, size_bytes)
    return Prediction(best, {"channels": channels})


def _ubench2(row: Row, cluster: _core.ChipCluster) -> Prediction:
    match = _parsed(row, r"([0-9]{1,5})B ([0-9]{1,2})ch")
    return Prediction(bidirectional_gb_per_s(cluster, int(match[1]), int(match[2]), merged=False))


def _ubench3(row: Row, cluster: _core.ChipCluster) -> Prediction:
    """The mode of a histogram in steps of 10 ns."""
    match = _parsed(row, r"([0-9]{1,2}) hops ([0-9]) channels? \(mode\)")
    size_bytes = whole(row, "x", _PACKET_BYTES_MAX)
    times = ring_us(cluster, int(match[1]), size_bytes, int(match[2]), merged=False)
    return Prediction(statistics.mode(round(time, 2) for time in times))


def _ubench4(row: Row, cluster: _core.ChipCluster) -> Prediction:
    match = _parsed(row, r"([0-9]{1,2})-hop ring (measured|minus link serialisation)")
    hops, size_bytes = int(match[1]), whole(row, "x", _PACKET_BYTES_MAX)
    time_us = statistics.median(ring_us(cluster, hops, size_bytes, 1, merged=False))
    is_whole = match[2] == "measured"
    return Prediction(time_us if is_whole else time_us - ring_wire_us(cluster, hops, size_bytes))


def _ubench5(row: Row, cluster: _core.ChipCluster) -> Prediction:
    size_bytes = whole(row, "x", _PACKET_BYTES_MAX)
    pings = _core.link_ping(cluster, payload_bytes=size_bytes, samples=SAMPLES)

    def median(name: str) -> float:
        return statistics.median(getattr(ping, name) for ping in pings)

    # The guide's own arithmetic: without the payload's time on the line, halved; and without what
    # it takes to hand over a send.
    one_hop = (median("send_and_receive_ns") - size_bytes / _LINE_BYTES_PER_NS) / 2
    parts = {
        "sender full send+receive": median("send_and_receive_ns"),
        "sender waiting for acks": median("wait_ns"),
        "receiver full wait+ack": median("wait_and_answer_ns"),
        "computed one hop time": one_hop,
        "eth subsystem + link": one_hop - median("send_ns"),
    }
    return Prediction(parts[one_of(row, "series", tuple(parts))])


# By figure: what answers its rows, and where.
_FIGURES = {
    "ubench1": (_ubench1, "n300"),
    "ubench2": (_ubench2, "n300"),
    "ubench3": (_ubench3, "t3000"),
    "ubench4": (_ubench4, "t3000"),
    "ubench5": (_ubench5, "n300"),
}


def _predict_figure(row: Row, context: Context) -> Prediction:
    predict, machine = _FIGURES[one_of(row, "figure", tuple(_FIGURES))]
    one_of(row, "arch", ("wormhole_b0",))
    return predict(row, cluster_of(context.machine or machine))


def _figure_group(row: Row) -> str:
    series = row["series"]
    if row["figure"] == "ubench2":
        series = series.rpartition(" ")[0]
    return row["figure"] if row["figure"] == "ubench3" else f"{row['figure']} {series}"


ETHERNET_KINDS = [
    TableKind(
        name="tests of a link between chips",
        columns=frozenset({
            "arch", "test", "direction", "metric", "packet_bytes", "value",
        }),
        unit="GB/s or ns",
        identity=("arch", "test", "metric"),
        group=lambda row: f"{row['arch']} {row['test']} {row['metric']}",
        measured=lambda row: real(row, "value"),
        predict=_predict_link,
        label=lambda row: f"{row['packet_bytes']} B",
        check_machine=catalogue.load_chip_cluster,
        is_slow=True,
    ),
    TableKind(
        name="figures of the multichip guide",
        columns=frozenset({"figure", "arch", "series", "x", "y"}),
        unit="GB/s, us or ns",
        identity=("figure", "series"),
        group=_figure_group,
        measured=lambda row: real(row, "y"),
        predict=_predict_figure,
        label=lambda row: f"{row['series']} {row['x']}",
        check_machine=catalogue.load_chip_cluster,
        is_slow=True,
    ),
]  # fmt: skip
