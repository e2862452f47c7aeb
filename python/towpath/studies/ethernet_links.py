# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Measurements of links between chips, shared by studies, tuning and validation."""

from __future__ import annotations

from functools import lru_cache

from towpath import _core
from towpath.specs import catalogue

SAMPLES = 30
# Packets in each direction of a bidirectional test, and the least number over each channel: both
# ends need a while to settle, and the published values are plateaus.
_PACKETS = 600
_CHANNEL_PACKETS_MIN = 40
_CHANNELS_MAX = 30  # in each direction, as ubench1 was limited
_L1_BYTES = 150 * 1024  # for the channels of both directions
_SYNC_BYTES = 16
_WORD_BYTES = 16  # the least that a link sends


def bidirectional_gb_per_s(
    cluster: _core.ChipCluster, packet_bytes: int, channels: int, merged: bool = True
) -> float:
    """Bandwidth of both directions together, with merged or separate sync words."""
    packets = max(_PACKETS // channels, _CHANNEL_PACKETS_MIN)
    return _core.bidirectional_gb_per_s(
        cluster, packet_bytes=packet_bytes, channels=channels, packets=packets, merged=merged
    )


def channels_that_fit(packet_bytes: int) -> int:
    """Number of channels in each direction that fit into the L1 of the guide's kernels."""
    return min(_CHANNELS_MAX, slots_that_fit(packet_bytes) // 2)


def slots_that_fit(packet_bytes: int) -> int:
    """Number of channels of one direction that fit into L1 without the other direction."""
    return _L1_BYTES // (packet_bytes + _SYNC_BYTES)


def best_channels(cluster: _core.ChipCluster, packet_bytes: int) -> tuple[float, int]:
    """The highest bandwidth over all numbers of channels in GB/s, and that number."""
    return max(
        (bidirectional_gb_per_s(cluster, packet_bytes, channels), channels)
        for channels in range(1, channels_that_fit(packet_bytes) + 1)
    )


def ring_us(
    cluster: _core.ChipCluster, hops: int, packet_bytes: int, channels: int, *, merged: bool
) -> list[float]:
    """Round trips around the walkthrough's ring."""
    times_ns = _core.ring_ping_ns(
        cluster, chips=_core.t3000_ring(hops), packet_bytes=packet_bytes, channels=channels,
        merged=merged, samples=SAMPLES,
    )  # fmt: skip
    return [time_ns / 1000 for time_ns in times_ns]


def ring_wire_us(cluster: _core.ChipCluster, hops: int, packet_bytes: int) -> float:
    """Time that the bytes of a packet after its first word spend on the links and NoCs of a ring.

    The guide subtracts it from its round trips: 0.89 ns per byte of eight hops, each 80 ps on a
    link of 12.5 GB/s and 31.25 ps on a NoC of 32 bytes per ns.
    """
    chip = cluster.chips[0].chip
    noc_gb_per_s = chip.router["flit_bytes"] * chip.clock_mhz / 1000
    ns_per_byte = 1 / chip.ethernet["line_rate_gb_per_s"] + 1 / noc_gb_per_s
    return hops * (packet_bytes - _WORD_BYTES) * ns_per_byte / 1000


@lru_cache(maxsize=8)
def cluster_of(name: str) -> _core.ChipCluster:
    """The cluster of a name or file, built for simulations."""
    return catalogue.load_chip_cluster(name).build()
