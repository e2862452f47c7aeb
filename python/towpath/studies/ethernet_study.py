# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""The microbenchmarks of links between chips, each as the curves of the multichip guide."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING

from towpath import _core
from towpath.collectives import fabric
from towpath.studies.ethernet_links import (
    best_channels,
    bidirectional_gb_per_s,
    ring_us,
    ring_wire_us,
)
from towpath.studies.page import Axis, Curve, Plot

if TYPE_CHECKING:
    from towpath.specs.chip_cluster_spec import ChipClusterSpec

_LINK_BYTES = tuple(1 << power for power in range(4, 15))
_RING_BYTES = (16, 32, 64, 128, 256, 512, 768, 1024)
_PING_BYTES = (16, 1024, 2048, 4096, 8192, 16384)
_BIDIRECTIONAL_BYTES = (512, 1024, 2048, 4096, 8192, 16384)
_BEST_BYTES = (1024, 2048, 4096, 8192, 16384, 24576, 32768)
_MESSAGES = 512


def plot(title: str, how: str, x_title: str, y_title: str, curves: list[Curve]) -> Plot:
    """Curves over one pair of axes; `x_title` is "size" if x is bytes."""
    x = Axis(x_title, "size" if x_title == "size" else "linear")
    return Plot(title, x, Axis(y_title), curves, how)


def _curve(name: str, sizes: tuple[int, ...], value_of: Callable[[int], float]) -> Curve:
    return Curve(name, [float(size) for size in sizes], [value_of(size) for size in sizes])


def utilisation(spec: ChipClusterSpec, cluster: _core.ChipCluster) -> Plot:
    """The part of the line rate that payloads use, one way, and the part that framing alone would
    leave.
    """
    figures = spec.chips[0].chip.ethernet
    if figures is None:
        raise ValueError(f"{spec.name} has no Ethernet")
    line = figures.line_rate_gb_per_s.value
    most = figures.frame_payload_bytes_max.value
    overhead = figures.frame_overhead_bytes.value

    def measured(size_bytes: int) -> float:
        time_ns = _core.link_test_ns(cluster, message_bytes=size_bytes, messages=_MESSAGES)
        return 100 * _MESSAGES * size_bytes / time_ns / line

    def framed(size_bytes: int) -> float:
        return 100 * size_bytes / (size_bytes + overhead * -(-size_bytes // most))

    sizes = tuple(size for size in _LINK_BYTES if size <= 8192)  # 16 slots must fit
    curves = [
        _curve("framing alone", sizes, framed),
        _curve("one way, 16 slots with sync words", sizes, measured),
    ]
    how = "Payload of one direction of a link, of its line rate."
    return plot("Utilisation", how, "size", "% of the line", curves)


def best_bandwidth(cluster: _core.ChipCluster) -> Plot:
    """ubench1."""
    how = "Both directions together, with the best of up to 30 channels in each."
    curves = [
        _curve("best number of channels", _BEST_BYTES, lambda size: best_channels(cluster, size)[0])
    ]
    return plot("Bandwidth by packet size", how, "size", "GB/s", curves)


def bandwidth_by_channels(cluster: _core.ChipCluster) -> Plot:
    """ubench2."""
    curves = [
        _curve(
            f"{channels} channel{'s' if channels > 1 else ''}", _BIDIRECTIONAL_BYTES,
            partial(bidirectional_gb_per_s, cluster, channels=channels, merged=False),
        )
        for channels in (1, 2, 3, 4)
    ]  # fmt: skip
    how = "Both directions together, each with this number of channels and separate sync words."
    return plot("Bandwidth by packet size and channels", how, "size", "GB/s", curves)


def ring_trips(cluster: _core.ChipCluster) -> Plot:
    """ubench3: histograms in steps of 10 ns."""
    curves = []
    for hops, channels in ((8, 1), (8, 2), (8, 3), (8, 8), (12, 1)):
        times = ring_us(cluster, hops, 16, channels, merged=False)
        counts = sorted(Counter(round(time, 2) for time in times).items())
        name = f"{hops} hops, {channels} channel{'s' if channels > 1 else ''}"
        curves.append(Curve(name, [time for time, _ in counts], [float(n) for _, n in counts]))
    how = "Trips of 16-byte packets around a ring, packet and sync word as two commands."
    return plot("Ring ping", how, "round trip (us)", "trips", curves)


def _median_trip_us(cluster: _core.ChipCluster, is_merged: bool, size_bytes: int) -> float:
    return statistics.median(ring_us(cluster, 8, size_bytes, 1, merged=is_merged))


def ring_by_size(cluster: _core.ChipCluster) -> Plot:
    """ubench4."""
    curves = [
        _curve(
            f"8 hops, {'one command' if merged else 'two commands'}", _RING_BYTES,
            partial(_median_trip_us, cluster, merged),
        )
        for merged in (False, True)
    ]  # fmt: skip
    whole = curves[0]
    wire = [ring_wire_us(cluster, 8, size_bytes) for size_bytes in _RING_BYTES]
    less = [time - part for time, part in zip(whole.y, wire, strict=True)]
    curves.insert(1, Curve(f"{whole.name}, less bytes on links and NoCs", whole.x, less))
    how = (
        "One packet around a ring; its sync word behind it in the same command, or in another. The "
        "second curve leaves out what its bytes spend on links and NoCs."
    )
    return plot("Ring ping by packet size", how, "size", "round trip (us)", curves)


def ping_parts(cluster: _core.ChipCluster) -> Plot:
    """ubench5."""
    pings = [_core.link_ping(cluster, payload_bytes=size, samples=20)[-1] for size in _PING_BYTES]
    parts = {
        "sender, send and receive": "send_and_receive_ns",
        "sender, waiting": "wait_ns",
        "receiver, wait and answer": "wait_and_answer_ns",
    }
    sizes = [float(size) for size in _PING_BYTES]
    curves = [
        Curve(name, sizes, [getattr(ping, part) for ping in pings]) for name, part in parts.items()
    ]
    how = "There and back over one link, between timestamps that take time themselves."
    return plot("Link ping", how, "size", "ns", curves)


def figures_of(spec: ChipClusterSpec) -> Iterator[Plot]:
    """Yields one plot after the other, as they are measured. Rings only on machines that have them.

    Raises:
        ValueError: no link from chip 0 to chip 1 is available to kernels.
    """
    cluster = spec.build()
    yield utilisation(spec, cluster)
    yield best_bandwidth(cluster)
    yield bandwidth_by_channels(cluster)
    yield ping_parts(cluster)
    if len(spec.chips) >= 8 and all(
        fabric.is_ring(cluster, _core.t3000_ring(hops)) for hops in (8, 12)
    ):
        yield ring_trips(cluster)
        yield ring_by_size(cluster)
