# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Finds faults in a log of NCCL_DEBUG=INFO."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

from towpath.operators.finding import Evidence, Finding
from towpath.operators.judgments import PCIE_MIN_GB_PER_S, SLOW_LINK_SHARE
from towpath.operators.nccl_log import (
    Connection,
    NcclLog,
    adapter_of,
    is_log,
    parse_jobs,
    rails_of,
)
from towpath.operators.nccl_warnings import causes_of_warnings
from towpath.operators.observed import Document, Observed

NAME = "NCCL INFO log"
# Variables that make NCCL slower than its own choice, and the part of NCCL that they restrict.
_RESTRICTING = {
    "NCCL_IB_DISABLE": "switches RDMA off", "NCCL_P2P_DISABLE": "switches peer access off",
    "NCCL_SHM_DISABLE": "switches shared memory off", "NCCL_ALGO": "forces an algorithm",
    "NCCL_PROTO": "forces a protocol", "NCCL_MAX_NCHANNELS": "limits the channels",
    "NCCL_MAX_CTAS": "limits the channels", "NCCL_NET_GDR_LEVEL": "limits GPUDirect RDMA",
    "NCCL_P2P_LEVEL": "limits peer access", "NCCL_NET": "forces a network",
    "NCCL_NVLS_ENABLE": "switches NVLS", "NCCL_IB_HCA": "selects adapters",
    "NCCL_BUFFSIZE": "sets the size of buffers", "NCCL_TOPO_FILE": "replaces the topology",
    "NCCL_GRAPH_FILE": "replaces the channels", "NCCL_CROSS_NIC": "sets the use of rails",
    "NCCL_NTHREADS": "sets the threads of a block",
}  # fmt: skip
# Paths over which NCCL does not use GPUDirect RDMA.
_FAR = {"PHB", "SYS"}
# Networks without RDMA, and no network.
_TCP = ("Socket", "")
# Variables that are a fault, with the values that have no effect.
_FAULTY = {
    "NCCL_IB_DISABLE": ("0",), "NCCL_P2P_DISABLE": ("0",), "NCCL_SHM_DISABLE": ("0",),
}  # fmt: skip
# Variables with a cause of their own.
_CAUSE_OF = {"NCCL_P2P_DISABLE": "p2p_disable", "NCCL_P2P_LEVEL": "p2p_level"}
# Values with which they leave all peers to NCCL's own choice: a level is a word or an old number.
_WITHOUT_LIMIT = {"NCCL_P2P_DISABLE": ("0",), "NCCL_P2P_LEVEL": ("SYS", "4", "5")}
# Variables with an upper limit of the channels.
_LIMITS_OF_CHANNELS = ("NCCL_MAX_NCHANNELS", "NCCL_MAX_CTAS")
_RING_PATTERN = 4
# Levels without any peer.
_NO_PEERS = ("LOC", "0")


def read(documents: Sequence[Document]) -> Observed:
    """Reads the logs of the ranks of a job, or of several jobs, and lists the faults of each."""
    jobs = parse_jobs(documents)
    found = Observed(formats=[NAME], ranks=jobs[0].ranks)
    for number, log in enumerate(jobs, 1):
        found.hosts |= log.hosts
        which = f"{number}. job: " if len(jobs) > 1 else ""
        found.facts |= {which + name: value for name, value in _facts(log).items()}
        for check in _CHECKS:
            found.findings += check(log)
    return found


def recognizes(document: Document) -> bool:
    """True if a document contains lines of NCCL_DEBUG."""
    return is_log(document)


def _facts(log: NcclLog) -> dict[str, str]:
    transports = Counter(_transport(each) for each in log.connections)
    facts = {
        "NCCL": ", ".join(log.versions),
        "network": ", ".join(log.networks),
        "ranks": str(log.ranks or ""),
        "nodes": str(log.nodes or ""),
        "channels": str(log.channels or len(log.rings) or ""),
        "transports": ", ".join(f"{name} ({count})" for name, count in transports.most_common(6)),
        "variables": ", ".join(f"{each}={log.variables[each][0]}" for each in log.variables)[:300],
    }  # fmt: skip
    return {name: value for name, value in facts.items() if value}


def _transport(connection: Connection) -> str:
    return re.sub(r"/[0-9]+(?:\([0-9]+\))?", "", connection.via)[:40]


def _sockets(log: NcclLog) -> Iterator[Finding]:
    over = [each for each in log.connections if _network(each) == "Socket"]
    named = log.networks.get("Socket")
    if not over and not (named and (log.nodes or 0) > 1):
        return
    reasons = [
        evidence for name, (value, evidence) in log.variables.items()
        if (name == "NCCL_IB_DISABLE" and value != "0") or (name == "NCCL_NET" and "ocket" in value)
    ]  # fmt: skip
    reasons += log.reasons_of_sockets
    first = over[0].evidence if over else named
    assert first is not None
    count = f"{len(over)} connections" if over else "the hosts"
    sentence = f"{count} use TCP sockets, which carry a fraction of the rate of RDMA"
    yield Finding("sockets", sentence, (first, *reasons[:2]), 0.95)


def _interface(log: NcclLog) -> Iterator[Finding]:
    """The loopback interface between several hosts, which did not connect."""
    value, evidence = log.variables.get("NCCL_SOCKET_IFNAME", ("", None))
    is_between_hosts = (log.nodes or len(log.hosts)) > 1 and not log.connections
    if evidence is not None and value == "lo" and is_between_hosts:
        sentence = "NCCL_SOCKET_IFNAME=lo selects an interface that does not reach other hosts"
        yield Finding("interface", sentence, (evidence,), 0.97)


def _gdr(log: NcclLog) -> Iterator[Finding]:
    """GPUDirect RDMA on the receiving side. Some platforms send without it on purpose."""
    received = [
        each for each in log.connections if each.end == "receive" and _network(each) not in _TCP
    ]
    without = [each for each in received if "GDR" not in each.via]
    if not without:
        if not received:
            yield from _gdr_disabled(log)
        return
    if len(without) == len(received):
        sentence = f"none of the {len(received)} receiving connections uses GPUDirect RDMA"
    else:
        ranks = ", ".join(map(str, sorted({each.receiver for each in without})[:8]))
        sentence = (
            f"{len(without)} of {len(received)} receiving connections do not use GPUDirect RDMA: "
            f"rank {ranks}"
        )
    why, lines, is_fault = _why_without_gdr(log)
    sureness = 0.9 if len(without) == len(received) else 0.8
    yield Finding("gdr_off", sentence + why, (without[0].evidence, *lines), sureness, is_fault)


def _why_without_gdr(log: NcclLog) -> tuple[str, list[Evidence], bool]:
    """The end of the sentence, its lines, and True if connections without it are a fault."""
    disabled = [evidence for is_on, evidence in log.gdr if not is_on]
    paths = _far_paths(log)
    if disabled or not (paths or log.gdr_far):
        return "", disabled[:1], True
    # Without GPUDirect RDMA, all paths of adapters lead through the processor. So far paths are
    # its reason only if the adapters support it.
    if log.gdr_far or log.gdr:
        return ", because the adapters are far from the GPUs", log.gdr_far[:1], False
    shown = ", ".join(paths)
    return f": it is off, or the adapters are far from the GPUs ({shown})", [], False


def _far_paths(log: NcclLog) -> list[str]:
    """The types of paths between GPUs and adapters, if all are far."""
    paths = {kinds.partition("/")[2] for *_, kinds, _ in log.patterns}
    return sorted(paths) if paths <= _FAR else []


def _network(connection: Connection) -> str:
    """The network of a connection. Empty inside a host."""
    adapter = adapter_of(connection)
    return "" if adapter is None else adapter[0]


def _gdr_disabled(log: NcclLog) -> Iterator[Finding]:
    """Adapters of a log without lines of connections."""
    disabled = [evidence for is_on, evidence in log.gdr if not is_on]
    if disabled and len(disabled) == len(log.gdr) and not log.is_one_host:
        sentence = f"GPUDirect RDMA is disabled for {len(disabled)} adapters"
        yield Finding("gdr_off", sentence, tuple(disabled[:2]), 0.85)


def _p2p(log: NcclLog) -> Iterator[Finding]:
    shared = [each for each in log.connections if each.via.startswith("SHM")]
    # Pairs of GPUs with NVLink leave other pairs to shared memory.
    is_sure = not any(each.via.startswith("P2P") for each in log.connections)
    has_nvlink = any(link.kind == "NVL" for system in log.systems for link in system)
    limits = [
        evidence for name, (value, evidence) in log.variables.items()
        if value.upper() not in _WITHOUT_LIMIT.get(name, (value.upper(),))
    ]  # fmt: skip
    if shared and (has_nvlink or (is_sure and limits)):
        why = " although NVLinks join GPUs" if has_nvlink else ""
        sentence = f"{len(shared)} connections in a host use shared memory{why}"
        lines = (shared[0].evidence, *limits)
        yield Finding("p2p_off", sentence, lines, 0.9 if is_sure else 0.4, is_sure)


def _variables(log: NcclLog) -> Iterator[Finding]:
    for name, (value, evidence) in log.variables.items():
        effect = _RESTRICTING.get(name)
        if effect is None:
            continue
        is_fault = name in _FAULTY and value not in _FAULTY[name]
        # Ranks of one host need no network.
        is_fault = is_fault and not (name == "NCCL_IB_DISABLE" and log.is_one_host)
        is_fault = is_fault or (name == "NCCL_P2P_LEVEL" and value.upper() in _NO_PEERS)
        sureness = 0.9 if is_fault else 0.3
        if name in _LIMITS_OF_CHANNELS and value.isdecimal() and int(value) < _usual_channels(log):
            is_fault, sureness = True, 0.6
            effect += f", and NCCL itself takes {_usual_channels(log)}"
        cause = _CAUSE_OF.get(name, "variable")
        yield Finding(cause, f"{name}={value} {effect}", (evidence,), sureness, is_fault)


def _usual_channels(log: NcclLog) -> int:
    """Number of channels without a limit: NCCL doubles the rings that its search found."""
    rings = [channels for pattern, _, channels, *_ in log.patterns if pattern == _RING_PATTERN]
    return 2 * min(rings, default=0)


def _versions(log: NcclLog) -> Iterator[Finding]:
    if len(log.versions) > 1:
        names = " and ".join(sorted(log.versions))
        lines = tuple(log.versions.values())[:3]
        yield Finding("version", f"the log names releases {names}", lines, 0.8)


def _adapters(log: NcclLog) -> Iterator[Finding]:
    """A host with fewer adapters than the rest of the hosts."""
    counts = Counter(len(names) for names in log.adapters.values())
    if len(log.adapters) < 2 or len(counts) < 2:
        return
    most = max(counts)
    for host, names in sorted(log.adapters.items()):
        if len(names) < most:
            full = next(each for each in log.adapters.values() if len(each) == most)
            lacking = ", ".join(sorted(set(full) - set(names))[:8]) or "unnamed"
            sentence = f"{host} uses {len(names)} adapters, other hosts {most} (missing: {lacking})"
            yield Finding("adapter_missing", sentence, (log.adapter_lines[host],), 0.95)


def _links(log: NcclLog) -> Iterator[Finding]:
    """Links of one kind of device that are much slower than the links of its neighbors."""
    for system in log.systems[:64]:
        rates: dict[tuple[str, str], list[float]] = defaultdict(list)
        for link in system:
            rates[link.kind, link.to].append(link.rate_gb_per_s)
        for link in system:
            key = (link.kind, link.to)
            usual = sorted(rates[key])[len(rates[key]) // 2]
            is_slow = len(rates[key]) > 2 and link.rate_gb_per_s < SLOW_LINK_SHARE * usual
            finding = _slow_link(link.kind, link.to, is_slow=is_slow, rate=link.rate_gb_per_s)
            if finding is not None:
                cause, is_fault = finding
                sentence = (
                    f"the {link.kind} link of {link.to}/{link.device} has {link.rate_gb_per_s:g} "
                    f"GB/s in NCCL's model, the other ones {usual:g} GB/s"
                )
                yield Finding(cause, sentence, (link.evidence,), 0.85, is_fault)


def _slow_link(kind: str, to: str, *, is_slow: bool, rate: float) -> tuple[str, bool] | None:
    is_narrow = rate < PCIE_MIN_GB_PER_S
    if kind == "PCI" and to in ("GPU", "PCI") and (is_narrow or (is_slow and to == "GPU")):
        return "pcie_link", True
    if kind == "PCI" and to == "NIC" and is_narrow:
        return "pcie_link", False  # management adapters often have few lanes
    # Pairs of GPUs may be joined by different numbers of NVLinks, links to a switch may not.
    if kind == "NVL" and to == "NVS" and is_slow:
        return "nvlink_missing", True
    if kind == "NET" and is_slow:
        return "adapter_slow", False
    return None


def _rails(log: NcclLog) -> Iterator[Finding]:
    """Connections that leave on one adapter and arrive on another, where NCCL keeps rails."""
    if not log.patterns or any(cross for _, cross, *_ in log.patterns):
        return
    if "NCCL_P2P_DISABLE" in log.variables:
        return  # adapters then also join GPUs of one host
    pairs = [
        (send, receive, one[1], other[1])
        for send, receive in rails_of(log)
        if (one := adapter_of(send)) and (other := adapter_of(receive))
    ]
    crossed = [pair for pair in pairs if pair[2] != pair[3]]
    if len(pairs) >= 2 and len(crossed) * 2 > len(pairs):
        send, receive, leaving, arriving = crossed[0]
        sentence = (
            f"{len(crossed)} of {len(pairs)} connections leave on one adapter and arrive on "
            f"another, such as {leaving} and {arriving}, although NCCL keeps rails (crossNic 0)"
        )
        yield Finding("wrong_rail", sentence, (send.evidence, receive.evidence), 0.7)


_CHECKS = (
    causes_of_warnings, _interface, _sockets, _gdr, _p2p, _versions, _adapters, _links, _rails,
    _variables,
)  # fmt: skip
