# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""The calls of a job in a trace: Kineto, Chakra (JSON and protobuf) and flight recorder dumps."""

from __future__ import annotations

import gzip
import io
import json
import re
import zlib
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from heapq import heappop, heappush
from typing import Any

from towpath.errors import ConfigError, quoted
from towpath.operators import chakra, flight_recorder
from towpath.operators.finding import printable
from towpath.operators.observed import FILE_BYTES_MAX, Document
from towpath.operators.plain_pickle import is_pickle

_PART_BYTES = 1 << 20
_CALLS_MAX = 2_000_000
_GROUP_MAX = 1 << 17
_NAME_LENGTH_MAX, _REASONS_MAX = 32, 16
_COLLECTIVES = {
    "allreduce": "all_reduce", "allgather": "all_gather", "allgatherbase": "all_gather",
    "allgatherintotensor": "all_gather", "allgatherintotensorcoalesced": "all_gather",
    "reducescatter": "reduce_scatter", "reducescatterbase": "reduce_scatter",
    "reducescattertensor": "reduce_scatter", "reducescattertensorcoalesced": "reduce_scatter",
    "alltoall": "all_to_all", "alltoallv": "all_to_all", "alltoallbase": "all_to_all",
    "broadcast": "broadcast", "reduce": "reduce", "barrier": "barrier",
    "allreducecoalesced": "all_reduce",
}  # fmt: skip
# The whole array of these is the output, and of all others the input.
_OF_OUTPUT = ("all_gather",)


@dataclass(frozen=True)
class Call:
    """A collective of a rank, or its computation between two collectives.

    Attributes:
        collective: name of the collective. Empty for a computation.
        size_bytes: size of the whole array in bytes, or of a part.
        ranks: number of ranks of its group. 0 for all ranks of the job.
        members: the ranks of the group, if the trace states them.
        start_us: start in microseconds.
        duration_us: duration in microseconds. None if the trace does not state it.
        needs: numbers of the earlier calls that must finish first. None if the times decide.
        stream: "compute", "communication" or "cpu". Calls of one stream follow each other.
        is_part: True if `size_bytes` is the part of one of an unknown number of ranks.
    """

    collective: str
    size_bytes: int
    ranks: int
    members: tuple[int, ...]
    start_us: float
    duration_us: float | None
    needs: tuple[int, ...] | None = None
    stream: str = "compute"
    is_part: bool = False

    @property
    def is_computation(self) -> bool:
        """True for work of the GPU behind which a collective can hide."""
        return self.stream == "compute" and not self.collective


@dataclass(frozen=True)
class Job:
    """The calls of one rank.

    Attributes:
        form: name of the trace's format.
        ranks: number of ranks of the job.
        calls: collectives and computations.
        left_out: number of communications that cannot be predicted, by reason.
    """

    form: str
    ranks: int
    calls: tuple[Call, ...]
    left_out: dict[str, int] = field(default_factory=dict)

    @property
    def collectives(self) -> list[Call]:
        """The calls that communicate."""
        return [call for call in self.calls if call.collective]


def parse_job(document: Document) -> Job:
    """Reads a trace of one rank.

    Args:
        document: a Kineto trace (JSON, possibly packed with gzip), a Chakra execution trace, or a
            flight recorder dump.

    Raises:
        ConfigError: the document is not such a trace, or its content is wrong.
    """
    data = document.data
    if data[:2] == b"\x1f\x8b":
        document = Document.of(document.file, _unpacked(data, document.file))
        data = document.data
    start = document.text.lstrip()[:1]
    if is_pickle(data):
        return _of_dump(document)
    if start not in ("{", "["):
        return _of_chakra(document, chakra.parse_protobuf(data, document.file))
    try:
        content = json.loads(document.text)
    except (ValueError, RecursionError):
        raise ConfigError("is not valid JSON", file=document.file, line=1) from None
    if isinstance(content, dict) and "traceEvents" in content:
        return _of_kineto(content, document.file)
    if flight_recorder.recognizes(document):
        return _of_dump(document)
    return _of_chakra(document, chakra.parse_json(content, document.file))


def _unpacked(data: bytes, file: str) -> bytes:
    """The content of a file of gzip, which has the same maximum as a file without it."""
    found = bytearray()
    try:
        with gzip.open(io.BytesIO(data)) as stream:
            while part := stream.read(_PART_BYTES):
                found += part
                if len(found) > FILE_BYTES_MAX:
                    problem = f"unpacks to more than {FILE_BYTES_MAX >> 20} MiB, the maximum"
                    raise ConfigError(problem, file=file)
    except EOFError:
        raise ConfigError("is damaged: gzip cannot unpack it all", file=file) from None
    except (OSError, zlib.error):
        raise ConfigError("is damaged: gzip cannot unpack it", file=file) from None
    return bytes(found)


def _of_kineto(content: dict[str, Any], file: str) -> Job:
    events = content["traceEvents"]
    if not isinstance(events, list):
        raise ConfigError("has no list 'traceEvents'", file=file, line=1)
    left_out: Counter[str] = Counter()
    calls = []
    for each in events:
        call = _kernel(each, file, left_out) if isinstance(each, dict) else None
        if call is not None:
            calls.append(call)
    if len(calls) > _CALLS_MAX:
        raise ConfigError(f"has more than {_CALLS_MAX} kernels, the maximum", file=file)
    calls.sort(key=lambda call: call.start_us)
    if not any(call.collective for call in calls):
        problem = (
            "has no collective kernel with its size: record the trace with PyTorch 2.3 or newer, "
            "whose kernels of NCCL have 'Collective name'"
        )
        raise ConfigError(problem, file=file, line=1)
    info = content.get("distributedInfo")
    world = info.get("world_size") if isinstance(info, dict) else None
    ranks = world if isinstance(world, int) and 0 < world < 1 << 24 else _most_ranks(calls)
    return Job("Kineto trace", ranks, tuple(calls), dict(left_out))


def _most_ranks(calls: Iterable[Call]) -> int:
    return max((max([call.ranks, *(one + 1 for one in call.members)]) for call in calls), default=1)


def _kernel(event: dict[str, Any], file: str, left_out: Counter[str]) -> Call | None:
    """A kernel or copy on the GPU. None for other events and for communication without a size."""
    if event.get("ph") != "X" or event.get("cat") not in ("kernel", "gpu_memcpy", "gpu_memset"):
        return None
    start, duration = _real(event.get("ts")), _real(event.get("dur"))
    if duration <= 0:
        return None
    details = event.get("args")
    name = details.get("Collective name") if isinstance(details, dict) else None
    if not isinstance(name, str) or not isinstance(details, dict):
        if str(event.get("name", "")).startswith(("ncclDevKernel", "ncclKernel")):
            left_out["kernels of NCCL without their size"] += 1
            return None
        return Call("", 0, 1, (), start, duration)
    collective = _collective(name)
    ranks = int(_real(details.get("Group size")))
    if not collective or not 0 < ranks < 1 << 24:
        _leave_out(left_out, _calls_of(name))
        return None
    elements = _real(details.get(
        "Out msg nelems" if collective in _OF_OUTPUT else "In msg nelems"
    ))  # fmt: skip
    kind = str(details.get("dtype", ""))
    element_bytes = flight_recorder.type_bytes(kind)
    if element_bytes is None:
        problem = f"has a collective with elements of type {quoted(kind)}, whose size is not known"
        raise ConfigError(problem, file=file)
    size = int(elements) * element_bytes
    return Call(collective, size, ranks, _members(details, ranks), start, duration)


def _leave_out(left_out: Counter[str], why: str) -> None:
    """Counts a communication without a prediction."""
    left_out[why if why in left_out or len(left_out) < _REASONS_MAX else "other calls"] += 1


def _calls_of(name: str) -> str:
    return f"calls of {printable(name, _NAME_LENGTH_MAX) or 'no name'}"


def _collective(name: str) -> str:
    """The collective of PyTorch's name of an operation. Empty if there is none."""
    return _COLLECTIVES.get(re.sub(r"[^a-z]", "", name.lower().rpartition(":")[2]), "")


def _members(details: dict[str, Any], ranks: int) -> tuple[int, ...]:
    text = str(details.get("Process Group Ranks", ""))[:4_000_000]
    members = tuple(int(word) for word in re.findall(r"[0-9]{1,7}", text))
    if len(members) == ranks:
        return members
    # PyTorch shortens the list of a large group, and states its first rank and its stride.
    first, stride = details.get("Global rank start"), details.get("Global rank stride")
    if isinstance(first, int) and isinstance(stride, int) and first >= 0 and 0 < stride < 1 << 20:
        return tuple(range(first, first + stride * ranks, stride)) if ranks <= _GROUP_MAX else ()
    return ()


def _real(value: object) -> float:
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        return 0.0
    return float(value) if 0 <= value < 1e18 else 0.0


def _of_dump(document: Document) -> Job:
    dump = flight_recorder.parse_dump(document)
    calls = []
    left_out: Counter[str] = Counter()
    for each in dump.entries:
        members = dump.groups.get(each.group, ())
        collective = _collective(each.name)
        if not collective or each.input_bytes <= 0:
            _leave_out(left_out, "calls without their size" if collective else _calls_of(each.name))
            continue
        duration = None if each.duration_ms is None else each.duration_ms * 1e3
        start = (each.created_ns or 0) / 1e3
        call = Call(collective, each.input_bytes, len(members), members, start, duration)
        calls.append(_from_input(call))
    if not calls:
        raise ConfigError("has no collective with its size and type", file=document.file)
    ranks = max(_most_ranks(calls), dump.rank + 1)
    return Job("flight recorder dump", ranks, tuple(calls), dict(left_out))


def _of_chakra(document: Document, nodes: list[chakra.Node]) -> Job:
    order, needs = _in_order(nodes, document.file)
    place = {number: position for position, number in enumerate(order)}
    calls = []
    left_out: Counter[str] = Counter()
    for number in order:
        node = nodes[number]
        own = tuple(place[need] for need in needs[number])
        is_timed = bool(node.stream) and (node.duration_us > 0 or not node.collective)
        duration = node.duration_us if is_timed else None
        if node.stream == "communication" and not node.collective:
            left_out["sends, receives and communications without a type"] += 1
        call = Call(node.collective, node.size_bytes, node.ranks, node.members, node.start_us,
                    duration, own, node.stream)  # fmt: skip
        calls.append(_from_input(call))
    if not any(call.collective for call in calls):
        raise ConfigError("has no collective: it needs nodes of type COMM_COLL", file=document.file)
    return Job("Chakra execution trace", _most_ranks(calls), tuple(calls), dict(left_out))


def _from_input(call: Call) -> Call:
    """The call with the whole array instead of the input of one rank."""
    if call.collective not in _OF_OUTPUT:
        return call
    if not call.ranks:
        return replace(call, is_part=True)
    return replace(call, size_bytes=call.size_bytes * call.ranks)


def _in_order(nodes: list[chakra.Node], file: str) -> tuple[list[int], list[list[int]]]:
    """The nodes in an order in which each follows the nodes that it needs, and these nodes.

    Nodes that need none of each other keep the order of the file.
    """
    place = {node.number: position for position, node in enumerate(nodes)}
    needs = [[place[each] for each in dict.fromkeys(node.needs) if each in place] for node in nodes]
    waits = [len(own) for own in needs]
    followers = _followers(needs)
    ready = [number for number, count in enumerate(waits) if count == 0]
    order = []
    while ready:
        order.append(heappop(ready))
        for number in followers[order[-1]]:
            waits[number] -= 1
            if waits[number] == 0:
                heappush(ready, number)
    if any(waits):
        first = nodes[next(number for number, count in enumerate(waits) if count)].number
        count = len(nodes) - len(order)
        problem = f"has a cycle of dependencies: {count} nodes cannot start, such as node {first}"
        raise ConfigError(problem, file=file)
    return order, needs


def _followers(needs: list[list[int]]) -> list[list[int]]:
    """The nodes that need each node."""
    found: list[list[int]] = [[] for _ in needs]
    for number, own in enumerate(needs):
        for need in own:
            found[need].append(number)
    return found
