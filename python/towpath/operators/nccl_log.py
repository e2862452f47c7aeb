# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""The lines of a log of NCCL_DEBUG=INFO as data: transports, adapters, links, variables."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

from towpath.operators.finding import Evidence
from towpath.operators.observed import Document

_LINE = re.compile(
    r"(?:(\S{1,80}?):[0-9]{1,9}:[0-9]{1,9} )?(?:\[([0-9]{1,5})\] )?(?:\S{1,40} )?"
    r"NCCL (INFO|WARN|TRACE) (.*)"
)
_ANY_LINE = re.compile("NCCL ")
_VERSION = re.compile(r"NCCL version ([0-9]{1,2}\.[0-9]{1,2}\.[0-9]{1,2})")
_NETWORK = re.compile(r"Using network (.{1,60}?)\s*$")
_ADAPTERS = re.compile(r"NET/(\S{1,40}) : Using (.*)")
_ADAPTER = re.compile(r"\[[0-9]{1,3}\] ?([A-Za-z0-9_.-]{1,40})(?::[0-9]{1,3})?")
_VARIABLE = re.compile(r"\b(NCCL_[A-Z0-9_]{2,48}) set (?:by environment )?to ([^\s]{1,80})")
_CHANNEL = re.compile(
    r"(?:Channel|Ring) ([0-9]{1,4})(?:/[0-9]{1,3})? : ([0-9]{1,7})(?:\[[0-9a-f]{1,12}\])? -> "
    r"([0-9]{1,7})(?:\[[0-9a-f]{1,12}\])?(?: \[(send|receive)\])? via "
    r"(NET/[^/]{1,40}/\S{1,60}|direct shared memory|\S{1,60})"
)
_NETWORK_OF = re.compile(r"NET/([^/]{1,40})/([0-9]{1,3})")
_COMMUNICATOR = re.compile(
    r"rank ([0-9]{1,7}) nRanks ([0-9]{1,7}) nNodes ([0-9]{1,6}) localRanks ([0-9]{1,5})"
)
_INIT = re.compile(r"rank ([0-9]{1,7}) n[rR]anks ([0-9]{1,7}) cudaDev")
_RING = re.compile(r"Channel ([0-9]{1,4})/([0-9]{1,4}) :((?:\s+[0-9]{1,7}){2,})\s*$")
_PATTERN = re.compile(
    r"Pattern ([0-9]{1,2}), crossNic ([0-9]), nChannels ([0-9]{1,4}), bw ([0-9.]{1,12})/"
    r"([0-9.]{1,12}), type ([A-Z0-9]{1,6})/([A-Z0-9]{1,6})"
)
_REASON_OF_SOCKETS = re.compile(
    r"Could not find any optimal provider|Failed to open libibverbs|NET/IB : No device found"
)
_COUNTS = re.compile(r"([0-9]{1,4}) coll channels, .{0,80}?([0-9]{1,4}) p2p channels")
_LINK = re.compile(r"\+ ?([A-Z0-9]{2,4})\[([0-9.]{1,10})\] - ([A-Z]{2,4})/([0-9A-Fa-f./-]{1,40})")
_GDR = re.compile(r"GPU Direct RDMA (Enabled|Disabled) for (?:(HCA) |.{1,160}\b(distance) [0-9])")
_VARIABLES_MAX = 200
_LINE_LENGTH_MAX, _PREFIX_LENGTH_MAX = 4000, 160


@dataclass(frozen=True)
class Link:
    """A link of a system that NCCL prints.

    Attributes:
        kind: "PCI", "NVL", "NET", "SYS" and so on.
        rate_gb_per_s: its rate in NCCL's model, in GB/s.
        to: kind of the device at its end, such as "GPU".
        device: the device at its end.
        evidence: its line.
    """

    kind: str
    rate_gb_per_s: float
    to: str
    device: str
    evidence: Evidence


@dataclass(frozen=True)
class Connection:
    """A connection of two ranks on a channel.

    Attributes:
        channel: number of the channel.
        sender: rank that sends.
        receiver: rank that receives.
        end: "send" or "receive" for a network, otherwise empty.
        via: the transport, such as "NET/IB/0/GDRDMA".
        evidence: its line.
    """

    channel: int
    sender: int
    receiver: int
    end: str
    via: str
    evidence: Evidence


@dataclass
class NcclLog:
    """The content of a log.

    Attributes:
        versions: line of each release, by release.
        networks: line of each network, by name.
        adapters: adapters of each host, by host.
        adapter_lines: line of the adapters of each host.
        variables: value and line of each variable that is set.
        connections: connections of ranks.
        systems: links of each printed system.
        rings: order of the ranks, by channel.
        patterns: numbers of pattern, crossNic and channels, rates and types of paths.
        warnings: lines of warnings.
        reasons_of_sockets: lines about RDMA that is not available.
        gdr: state of GPUDirect RDMA of adapters, with lines.
        gdr_far: lines of adapters that are too far from a GPU for GPUDirect RDMA.
        ranks: number of ranks.
        nodes: number of nodes.
        channels: number of channels for collectives.
        hosts: names of hosts.
        members: ranks that print the lines, of the largest communicator.
    """

    versions: dict[str, Evidence] = field(default_factory=dict)
    networks: dict[str, Evidence] = field(default_factory=dict)
    adapters: dict[str, list[str]] = field(default_factory=dict)
    adapter_lines: dict[str, Evidence] = field(default_factory=dict)
    variables: dict[str, tuple[str, Evidence]] = field(default_factory=dict)
    connections: list[Connection] = field(default_factory=list)
    systems: list[list[Link]] = field(default_factory=list)
    rings: dict[int, tuple[list[int], Evidence]] = field(default_factory=dict)
    patterns: list[tuple[int, int, int, float, str, Evidence]] = field(default_factory=list)
    warnings: list[Evidence] = field(default_factory=list)
    reasons_of_sockets: list[Evidence] = field(default_factory=list)
    gdr: list[tuple[bool, Evidence]] = field(default_factory=list)
    gdr_far: list[Evidence] = field(default_factory=list)
    ranks: int | None = None
    nodes: int | None = None
    channels: int | None = None
    hosts: set[str] = field(default_factory=set)
    members: set[int] = field(default_factory=set)

    @property
    def is_one_host(self) -> bool:
        """True if all ranks are on one host, by their number or by all connections."""
        if self.nodes is not None:
            return self.nodes == 1
        return bool(self.connections) and not any(map(adapter_of, self.connections))

    def add_communicator(self, rank: int, ranks: int, nodes: int | None) -> None:
        """Adds a rank of a communicator. The largest communicator belongs to the job."""
        if ranks > (self.ranks or 0):
            self.ranks, self.nodes, self.members = ranks, nodes, set()
        if ranks == self.ranks:
            self.nodes = self.nodes or nodes
            self.members.add(rank)

    def is_of_job(self, other: NcclLog) -> bool:
        """True if another file may belong to the same job: no rank writes both."""
        if not self.members or not other.members:
            return True
        return self.ranks == other.ranks and not self.members & other.members

    def add(self, other: NcclLog) -> None:
        """Adds the lines of another file of the same job."""
        for name in ("versions", "networks", "adapters", "adapter_lines", "variables", "rings"):
            own, new = getattr(self, name), getattr(other, name)
            own |= {key: value for key, value in new.items() if key not in own}
        for name in (
            "connections", "systems", "patterns", "warnings", "reasons_of_sockets", "gdr",
            "gdr_far",
        ):  # fmt: skip
            getattr(self, name).extend(getattr(other, name))
        self.hosts |= other.hosts
        self.members |= other.members
        self.ranks, self.nodes = self.ranks or other.ranks, self.nodes or other.nodes
        self.channels = max(self.channels or 0, other.channels or 0) or None


def adapter_of(connection: Connection) -> tuple[str, int] | None:
    """The network of a connection and the number of its adapter. None inside a host."""
    match = _NETWORK_OF.match(connection.via)
    return None if match is None else (match[1], int(match[2]))


def is_log(document: Document) -> bool:
    """True if a document contains lines of NCCL_DEBUG."""
    return "NCCL INFO" in document.text or "NCCL WARN" in document.text


def parse_jobs(documents: Sequence[Document]) -> list[NcclLog]:
    """Reads the logs of one or several jobs. The files of the ranks of one job are joined."""
    jobs: list[NcclLog] = []
    for log in map(parse_log, documents):
        own = next((job for job in jobs if job.is_of_job(log)), None)
        if own is None:
            jobs.append(log)
        else:
            own.add(log)
    return jobs


def parse_log(document: Document) -> NcclLog:
    """Reads all lines that NCCL prints. Other lines are skipped."""
    log = NcclLog()
    host_of = ""
    for number, line in document.lines_with(_ANY_LINE):
        place = line.find("NCCL ", 0, _LINE_LENGTH_MAX)
        if place < 0:
            continue
        # A launcher's prefix may precede the host, and is not read.
        text = line[max(place - _PREFIX_LENGTH_MAX, 0) : _LINE_LENGTH_MAX]
        if version := _VERSION.search(text):
            log.versions.setdefault(version[1], document.evidence(number, line))
        match = _LINE.search(text)
        if match is None:
            continue
        host_of = match[1] or host_of
        if match[1]:
            log.hosts.add(match[1])
        evidence = document.evidence(number, line)
        message = match[4].rstrip()
        if match[3] == "WARN":
            log.warnings.append(evidence)
        if _REASON_OF_SOCKETS.search(message):
            log.reasons_of_sockets.append(evidence)
        for read in _PARTS:
            if read(log, message, host_of, evidence):
                break
    return log


def _read_network(log: NcclLog, text: str, host: str, evidence: Evidence) -> bool:
    if match := _NETWORK.search(text):
        log.networks.setdefault(match[1], evidence)
        return True
    if match := _ADAPTERS.search(text):
        if match[1].startswith("Socket"):
            return True
        names = _ADAPTER.findall(match[2].split(";")[0])
        log.adapters.setdefault(host, names)
        log.adapter_lines.setdefault(host, evidence)
        return True
    if match := _GDR.search(text):
        if match[2]:
            log.gdr.append((match[1] == "Enabled", evidence))
        elif match[1] == "Disabled":
            log.gdr_far.append(evidence)
        return True
    return False


def _read_variable(log: NcclLog, text: str, host: str, evidence: Evidence) -> bool:
    match = _VARIABLE.search(text)
    if match is not None and len(log.variables) < _VARIABLES_MAX:
        log.variables.setdefault(match[1], (match[2].rstrip(".,"), evidence))
    return match is not None


def _read_channel(log: NcclLog, text: str, host: str, evidence: Evidence) -> bool:
    if match := _CHANNEL.search(text):
        ends = (int(match[1]), int(match[2]), int(match[3]))
        via = match[5].replace("direct shared memory", "SHM")
        log.connections.append(Connection(*ends, match[4] or "", via, evidence))
        return True
    if match := _RING.search(text):
        log.rings.setdefault(int(match[1]), ([int(w) for w in match[3].split()], evidence))
        return True
    return False


def _read_counts(log: NcclLog, text: str, host: str, evidence: Evidence) -> bool:
    if match := _COMMUNICATOR.search(text):
        log.add_communicator(int(match[1]), int(match[2]), int(match[3]))
        return True
    if match := _INIT.search(text):
        log.add_communicator(int(match[1]), int(match[2]), None)
        return True
    if match := _COUNTS.search(text):
        log.channels = max(log.channels or 0, int(match[1]))
        return True
    return False


def _read_system(log: NcclLog, text: str, host: str, evidence: Evidence) -> bool:
    if "=== System :" in text:
        log.systems.append([])
        return True
    if match := _PATTERN.search(text):
        row = (int(match[1]), int(match[2]), int(match[3]), _rate(match[4]))
        log.patterns.append((*row, f"{match[6]}/{match[7]}", evidence))
        return True
    if match := _LINK.search(text):
        if log.systems:
            link = Link(match[1], _rate(match[2]), match[3], match[4], evidence)
            log.systems[-1].append(link)
        return True
    return False


def _rate(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 0.0


_PARTS = (_read_system, _read_network, _read_variable, _read_channel, _read_counts)


def rails_of(log: NcclLog) -> list[tuple[Connection, Connection]]:
    """The two ends of each connection over a network, where the log has both."""
    ends: dict[tuple[int, int, int], dict[str, Connection]] = defaultdict(dict)
    for each in log.connections:
        if each.end:
            ends[each.channel, each.sender, each.receiver].setdefault(each.end, each)
    return [(pair["send"], pair["receive"]) for pair in ends.values() if len(pair) == 2]
