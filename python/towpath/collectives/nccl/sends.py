# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""The all-to-all of NCCL, which is a group of sends and receives: its channels and its protocol.

NCCL has no cost model for it. The rules are in src/graph/paths.cc and src/enqueue.cc of NCCL 2.29.
"""

from __future__ import annotations

from dataclasses import dataclass

from towpath.schedules.schedule_source import ScheduleSource
from towpath.specs.machine_spec import MachineSpec

# Bytes of a message per channel: the minimum, and the maximum before NCCL takes more channels.
_PART_MIN_BYTES = (512 << 10) // 8
_PART_MAX_BYTES = (512 << 10) * 32
_PART_MIN_ACROSS_BYTES = (128 << 10) // 2
_PART_MAX_ACROSS_BYTES = 128 << 10
_LL_PART_BYTES = 16 << 10  # the most that a channel sends in LL
_PEERS_PER_BATCH = 8  # NCCL_MAX_DEV_WORK_P2P_PER_BATCH: messages that a thread block has at once
_PCIE_CHANNELS = 2
_NETWORK_CHANNELS = 2


@dataclass(frozen=True)
class SendChoice:
    """NCCL's way of sending one message of an all-to-all: channels, and a protocol."""

    channels: int
    protocol: str


def all_to_all_choice(spec: MachineSpec, ranks: int, channels: int, size_bytes: int) -> SendChoice:
    """The choice for the messages of an all-to-all.

    Args:
        spec: a machine of the size of the communicator.
        ranks: number of ranks.
        channels: NCCL's number of channels of rings there.
        size_bytes: size of a rank's whole array. Every rank gets an equal part of it.
    """
    nodes = spec.host_count
    together = _power_up(channels)
    per_peer = min(together, _power_up(_channels_of_path(spec)))
    while nodes > 1 and per_peer > 1 and per_peer * -(-ranks // _PEERS_PER_BATCH) > together:
        per_peer //= 2
    least = per_peer
    while least > 1 and least * ranks > together:
        least //= 2
    part_min, part_max = _PART_MIN_BYTES, _PART_MAX_BYTES
    if nodes > 1:
        part_min, part_max = _PART_MIN_ACROSS_BYTES, _PART_MAX_ACROSS_BYTES
    message = max(1, size_bytes // ranks)
    found = min(least, -(-message // part_min))
    part = max(part_min, -(-message // found))
    while part > part_max and found <= per_peer // 2:
        found *= 2
        part = -(-message // found)
    return SendChoice(found, "LL" if message <= found * _LL_PART_BYTES else "Simple")


def all_to_all_source(
    spec: MachineSpec, ranks: int, channels: int, size_bytes: int
) -> ScheduleSource:
    """The schedule of the choice, with the arguments of `all_to_all_choice`."""
    choice = all_to_all_choice(spec, ranks, channels, size_bytes)
    # In LL, half of the threads receive the lines that the other half still sends. Sends and then
    # receives of all threads take the same time.
    halves = "send_receive" if choice.protocol == "Simple" else "all_pairs"
    return ScheduleSource(
        collective="all_to_all", algorithm=f"{halves}_all_to_all", ranks=ranks,
        channels=choice.channels, protocol=choice.protocol, hosts=spec.host_count,
    )  # fmt: skip


def _channels_of_path(spec: MachineSpec) -> int:
    """Channels of a pair of GPUs: two for each NVLink, or a few over PCIe or a network."""
    if spec.host_count > 1:
        return _NETWORK_CHANNELS
    kind = spec.host_kinds()[0]
    links = {link.kind for link in kind.link_types.values()}
    return 1 << 10 if "nvlink" in links else _PCIE_CHANNELS


def _power_up(value: int) -> int:
    return 1 << (value - 1).bit_length()
