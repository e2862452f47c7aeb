# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Compares a log of NCCL with the log that the same release writes on the described machine."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from towpath.operators.finding import Evidence, Finding
from towpath.operators.nccl_log import NcclLog

_NUMBERS = re.compile(r"/[0-9]+(?:\([0-9]+\))?")
_LOCAL_FORMS = re.compile(r"P2P/.*")
# Settings that every run has, such as names of interfaces, do not explain a difference.
_NEUTRAL = re.compile(r"NCCL_(?:DEBUG|SOCKET_IFNAME|RAS|HOSTID|TOPO_DUMP|TOPO_FILE|COMM_ID|CUMEM)")


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


def _kinds(log: NcclLog) -> dict[str, Evidence]:
    """The kinds of transports, with a line of each. Numbers of devices are left out."""
    found: dict[str, Evidence] = {}
    for each in log.connections:
        kind = _LOCAL_FORMS.sub("P2P", _NUMBERS.sub("", each.via)).removesuffix("/Shared")
        found.setdefault(kind, each.evidence)
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
            yield Finding(_cause(kind), sentence, (evidence,), 0.9)


def _cause(kind: str) -> str:
    if "Socket" in kind:
        return "sockets"
    if kind.startswith("SHM"):
        return "p2p_off"
    return "gdr_off" if kind.startswith("NET/") and "GDR" not in kind else "algorithm"


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
        evidence = next(each.evidence for each in log.connections if each.via.startswith("NET/"))
        sentence = (
            f"the job uses {len(used)} adapters of a host, NCCL itself {len(usual)} on this machine"
        )
        yield Finding("adapter_missing", sentence, (evidence,), 0.9)


def _adapters(log: NcclLog) -> Counter[str]:
    found: Counter[str] = Counter()
    for each in log.connections:
        if match := re.match(r"NET/[A-Za-z]{1,20}/([0-9]{1,3})", each.via):
            found[match[1]] += 1
    return found


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
