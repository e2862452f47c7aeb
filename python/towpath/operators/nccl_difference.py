# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Compares a log of NCCL with the log that the same release writes on the described machine."""

from __future__ import annotations

import re
from collections.abc import Iterator

from towpath.operators.finding import Evidence, Finding
from towpath.operators.nccl_log import Connection, NcclLog, adapter_of

# Settings that every run has, such as names of interfaces, do not explain a difference.
_NEUTRAL = re.compile(r"NCCL_(?:DEBUG|SOCKET_IFNAME|RAS|HOSTID|TOPO_DUMP|TOPO_FILE|COMM_ID|CUMEM)")

_CAUSES = {"NET/Socket": "sockets", "SHM": "p2p_off", "NET over RDMA": "gdr_off"}


def differences(log: NcclLog, own: NcclLog) -> list[Finding]:
    """Differences of a log from the log of the same release on the described machine.

    Args:
        log: the log of the job.
        own: the log that NCCL itself wrote for the machine without any variable.
    """
    if log.ranks is not None and own.ranks is not None and log.ranks != own.ranks:
        return []
    reasons = _reasons(log)
    found = [*_transports(log, own), *_channels(log, own)]
    if found or reasons:
        found += _rings(log, own)
    return [
        Finding(each.cause, each.sentence + reasons, each.evidence, each.confidence, each.is_fault)
        for each in found
    ]


def _reasons(log: NcclLog) -> str:
    """The variables that are set, as the end of a sentence."""
    names = [
        f"{name}={value}" for name, (value, _) in log.variables.items() if not _NEUTRAL.match(name)
    ]  # fmt: skip
    return f" (set: {', '.join(names[:6])})" if names else ""


def _kind(connection: Connection) -> str:
    """The kind of a transport, without numbers of devices.

    A plug-in's network, such as IBext, OFI or AWS Libfabric, is RDMA as NCCL's own NET/IB is.
    """
    network = adapter_of(connection)
    if network is None:
        return connection.via.partition("/")[0]
    if network[0] == "Socket":
        return "NET/Socket"
    return "NET over RDMA with GPUDirect" if "GDRDMA" in connection.via else "NET over RDMA"


def _kinds(log: NcclLog) -> dict[str, Evidence]:
    """The kinds of transports, with a line of each."""
    found: dict[str, Evidence] = {}
    for each in log.connections:
        found.setdefault(_kind(each), each.evidence)
    return found


def _transports(log: NcclLog, own: NcclLog) -> Iterator[Finding]:
    """Transports that the machine should not need, if the log has any."""
    theirs, ours = _kinds(log), _kinds(own)
    if not theirs or not ours:
        return
    for kind, evidence in theirs.items():
        if kind not in ours:
            usual = " and ".join(sorted(ours))
            sentence = f"NCCL itself uses {usual} on this machine, the job uses {kind}"
            yield Finding(_CAUSES.get(kind, "algorithm"), sentence, (evidence,), 0.9)


def _channels(log: NcclLog, own: NcclLog) -> Iterator[Finding]:
    """Fewer channels, or fewer adapters in use, than NCCL itself takes."""
    first = next(iter(log.rings.values()), None)
    theirs, ours = log.channels or len(log.rings), own.channels or len(own.rings)
    if theirs and ours and theirs < ours:
        line = first[1] if first else next(iter(log.networks.values()), None)
        sentence = f"the job has {theirs} channels, NCCL itself takes {ours} on this machine"
        yield Finding("algorithm", sentence, (line,) if line else (), 0.8)
    used, usual = _adapters(log), _adapters(own)
    if used and usual and len(used) < len(usual):
        evidence = next(each.evidence for each in log.connections if adapter_of(each))
        sentence = (
            f"the job uses {len(used)} adapters of a host, NCCL itself {len(usual)} on this machine"
        )
        yield Finding("adapter_missing", sentence, (evidence,), 0.9)


def _adapters(log: NcclLog) -> set[int]:
    return {adapter[1] for each in log.connections if (adapter := adapter_of(each))}


def _rings(log: NcclLog, own: NcclLog) -> Iterator[Finding]:
    """The first ring with another order of ranks."""
    for channel, (order, evidence) in sorted(log.rings.items()):
        other = own.rings.get(channel)
        if other is not None and other[0] != order:
            sentence = (
                f"the ring of channel {channel} is {_shown(order)}, and {_shown(other[0])} by NCCL "
                "itself"
            )
            yield Finding("algorithm", sentence, (evidence,), 0.5, False)
            return


def _shown(order: list[int]) -> str:
    return " ".join(map(str, order[:16])) + (" ..." if len(order) > 16 else "")
