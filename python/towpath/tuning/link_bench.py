# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Best use of a link between chips: packet size, bytes outstanding, sync words, channels.

Every answer is found by running the kernels of the microbenchmarks on a described cluster;
`tune_rule.py` chooses. Bytes outstanding are bytes that one core has sent over the link and the
other has not answered: packets times channels, or times the slots in use.
"""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from towpath import _core
from towpath.collectives import fabric
from towpath.specs import catalogue
from towpath.studies import ethernet_links
from towpath.studies.ethernet_links import channels_that_fit, slots_that_fit
from towpath.studies.sweep import digest_of

if TYPE_CHECKING:
    from towpath.specs.chip_cluster_spec import ChipClusterSpec
    from towpath.studies.sweep import Point, Result

PACKET_BYTES = tuple(1 << power for power in range(4, 17))
# Smaller ones would need more slots than there are to keep the link busy.
WINDOW_PACKET_BYTES = tuple(1 << power for power in range(9, 15))
PING_BYTES = (16, 1024, 2048, 4096, 8192, 16384)
OPERATION_BYTES = (256, 1024, 4096, 16384, 65536)
PACKETS_PER_CHANNEL = tuple(1 << power for power in range(7))
SEPARATE_CHANNELS_MAX = 4  # in each direction, as erisc_info has sync words
_RING_CHANNELS = (1, 2, 4, 8)
_RING_BYTES_MIN = 16
_SLOTS = tuple(range(2, 31, 2))
_MESSAGES = 512
# Packets in each direction of a steady run, and the least number over each channel.
_PACKETS = 600
_CHANNEL_PACKETS_MIN = 40
_SAMPLES = 20


@dataclass(frozen=True)
class LinkBench:
    """Measures points on one link of a cluster and on its ring.

    Attributes:
        machine: a cluster of chips: a name or a file, which each process reads itself.
        link: the chips of the link.
        ring: the chips of a ring through all of them; none if there is no ring.
    """

    machine: str
    link: tuple[int, int]
    ring: tuple[int, ...]

    @classmethod
    def on(cls, machine: str) -> LinkBench:
        """Creates it for the first link available to kernels, and the ring through all chips if
        there is one.

        Raises:
            ConfigError: there is no such machine, or it has no such link.
        """
        cluster = catalogue.load_chip_cluster(machine).build()
        fabric.check_linked(machine, cluster)
        pairs = [(a, b) for (a, _), (b, _) in (link.ends for link in cluster.links
                                               if not link.is_reserved)]  # fmt: skip
        return cls(machine, min(pairs), _ring_of(cluster))

    def __reduce__(self) -> tuple[Any, ...]:
        return LinkBench, (self.machine, self.link, self.ring)  # without what is cached

    def digest(self) -> str:
        """Digest of the machine, the simulator and the tests."""
        described = repr((self._spec, self.link, self.ring))
        return digest_of(described, _core.__file__, ethernet_links.__file__, __file__)

    @cached_property
    def _spec(self) -> ChipClusterSpec:
        return catalogue.load_chip_cluster(self.machine)

    @cached_property
    def _cluster(self) -> _core.ChipCluster:
        return self._spec.build()

    @property
    def name(self) -> str:
        """Name of the machine."""
        return self._spec.name

    @property
    def line_gb_per_s(self) -> float:
        """Line rate of the link, framing included."""
        figures = self._spec.chips[self.link[0]].chip.ethernet
        if figures is None:
            raise ValueError(f"chip {self.link[0]} has a link but no Ethernet")
        return figures.line_rate_gb_per_s.value

    def __call__(self, point: Point) -> Result:
        """Runs one of the points that the functions below create."""
        return {"value": getattr(self, "_" + point["test"])(**point["options"])}

    def _both_ways_gb_per_s(self, packet_bytes: int, channels: int, merged: bool, packets: int
                            ) -> float:  # fmt: skip
        return _core.bidirectional_gb_per_s(
            self._cluster, link=self.link, packet_bytes=packet_bytes, merged=merged,
            channels=channels, packets=packets,
        )  # fmt: skip

    def _one_way_gb_per_s(self, packet_bytes: int, slots: int) -> float:
        time_ns = _core.link_test_ns(
            self._cluster, link=self.link, message_bytes=packet_bytes, slots=slots,
            messages=_MESSAGES,
        )  # fmt: skip
        return _MESSAGES * packet_bytes / time_ns

    def _ping_ns(self, packet_bytes: int) -> float:
        pings = _core.link_ping(
            self._cluster, link=self.link, payload_bytes=packet_bytes, samples=_SAMPLES
        )
        return statistics.median(ping.send_and_receive_ns for ping in pings)

    def _ring_ns(self, packet_bytes: int, channels: int, merged: bool) -> float:
        return statistics.median(
            _core.ring_ping_ns(
                self._cluster, chips=list(self.ring), packet_bytes=packet_bytes, channels=channels,
                merged=merged, samples=_SAMPLES,
            )
        )  # fmt: skip


def _ring_of(cluster: _core.ChipCluster) -> tuple[int, ...]:
    try:
        shape = _core.FabricShape.usual(cluster)
        chips = [shape.chips[place] for place in fabric.ranks_in_ring(cluster)]
    except ValueError:  # its chips do not fill a mesh
        return ()
    return tuple(chips) if fabric.is_ring(cluster, chips) else ()


# --- points ---------------------------------------------------------------------------------------


def both_ways(
    packet_bytes: int, channels: int, *, merged: bool = True, packets: int | None = None
) -> Point:
    """Point with `packets` over each channel; the default number is sufficient for a
    steady rate.
    """
    steady = max(_PACKETS // channels, _CHANNEL_PACKETS_MIN)
    options = {
        "packet_bytes": packet_bytes, "channels": channels, "merged": merged,
        "packets": steady if packets is None else packets,
    }  # fmt: skip
    return {"test": "both_ways_gb_per_s", "options": options}


def one_way(packet_bytes: int, slots: int) -> Point:
    options = {"packet_bytes": packet_bytes, "slots": slots}
    return {"test": "one_way_gb_per_s", "options": options}


def ping(packet_bytes: int) -> Point:
    return {"test": "ping_ns", "options": {"packet_bytes": packet_bytes}}


def round_trip(packet_bytes: int, channels: int = 1, *, merged: bool = True) -> Point:
    options = {"packet_bytes": packet_bytes, "channels": channels, "merged": merged}
    return {"test": "ring_ns", "options": options}


def channel_counts(packet_bytes: int) -> range:
    """Numbers of channels in each direction."""
    return range(1, channels_that_fit(packet_bytes) + 1)


def slot_counts(packet_bytes: int) -> list[int]:
    return [slots for slots in _SLOTS if slots <= slots_that_fit(packet_bytes)]


def ring_channels(operation_bytes: int) -> list[int]:
    """Numbers of packets into which an operation can be cut."""
    return [n for n in _RING_CHANNELS if operation_bytes // n >= _RING_BYTES_MIN]


def steady_points(has_ring: bool) -> list[Point]:
    """All points that do not depend on an answer."""
    points = [both_ways(size, n) for size in PACKET_BYTES for n in channel_counts(size)]
    points += [
        both_ways(size, n, merged=False)
        for size in PACKET_BYTES
        for n in channel_counts(size)
        if n <= SEPARATE_CHANNELS_MAX
    ]
    points += [one_way(size, slots) for size in WINDOW_PACKET_BYTES for slots in slot_counts(size)]
    points += [ping(size) for size in PING_BYTES]
    if has_ring:
        points += [round_trip(_RING_BYTES_MIN, merged=False), round_trip(_RING_BYTES_MIN)]
        points += [
            round_trip(size // n, n) for size in OPERATION_BYTES for n in ring_channels(size)
        ]
    return points
