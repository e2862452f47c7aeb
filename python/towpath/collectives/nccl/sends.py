# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Sends and receives of NCCL, also as an all-to-all: their channels and their protocol.

NCCL has no cost model for them. The rules are in src/graph/paths.cc and src/enqueue.cc of NCCL
2.29.
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
    """NCCL's way of sending one message: channels, and a protocol."""

    channels: int
    protocol: str


def send_choice(spec: MachineSpec, ranks: int, channels: int, message_bytes: int) -> SendChoice:
    """The choice for a message.

    Args:
        spec: a machine of the size of the communicator.
        ranks: number of ranks.
        channels: NCCL's number of channels of rings there.
        message_bytes: size of the message.
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
    message = max(1, message_bytes)
    found = min(least, -(-message // part_min))
    part = max(part_min, -(-message // found))
    while part > part_max and found <= per_peer // 2:
        found *= 2
        part = -(-message // found)
    return SendChoice(found, "LL" if message <= found * _LL_PART_BYTES else "Simple")


def all_to_all_source(
    spec: MachineSpec, ranks: int, channels: int, size_bytes: int
) -> ScheduleSource:
    """The schedule of an all-to-all, in which every rank sends an equal part of its array to each.

    Args:
        spec: a machine of the size of the communicator.
        ranks: number of ranks.
        channels: NCCL's number of channels of rings there.
        size_bytes: size of a rank's whole array.
    """
    choice = send_choice(spec, ranks, channels, size_bytes // ranks)
    return exchange_source(choice, ranks, spec.host_count)


def exchange_source(choice: SendChoice, ranks: int, hosts: int) -> ScheduleSource:
    """The schedule in which each of some ranks sends a message to each other one.

    Args:
        choice: of the messages.
        ranks: number of ranks that exchange messages, which may be a part of the communicator.
        hosts: number of their hosts.
    """
    # In LL, half of the threads receive the lines that the other half still sends. Sends and then
    # receives of all threads take the same time.
    halves = "send_receive" if choice.protocol == "Simple" else "all_pairs"
    return ScheduleSource(
        collective="all_to_all", algorithm=f"{halves}_all_to_all", ranks=ranks,
        channels=choice.channels, protocol=choice.protocol, hosts=hosts,
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
