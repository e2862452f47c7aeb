# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""The calls of a job in a trace: Kineto, Chakra (JSON and protobuf) and flight recorder dumps."""

from __future__ import annotations

import gzip
import json
import re
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from towpath.errors import ConfigError
from towpath.operators import chakra, flight_recorder
from towpath.operators.observed import Document
from towpath.operators.plain_pickle import is_pickle

UNPACKED_BYTES_MAX = 2 << 30
_CALLS_MAX = 2_000_000
_TYPE_BYTES = {
    "float": 4, "half": 2, "bfloat16": 2, "double": 8, "int": 4, "long": 8, "byte": 1, "char": 1,
    "bool": 1, "float8_e4m3fn": 1, "float8_e5m2": 1, "fp8": 1,
}  # fmt: skip
_COLLECTIVES = {
    "allreduce": "all_reduce", "allgather": "all_gather", "allgatherbase": "all_gather",
    "allgatherintotensor": "all_gather", "allgatherintotensorcoalesced": "all_gather",
    "reducescatter": "reduce_scatter", "reducescatterbase": "reduce_scatter",
    "reducescattertensor": "reduce_scatter", "reducescattertensorcoalesced": "reduce_scatter",
    "alltoall": "all_to_all", "alltoallv": "all_to_all", "alltoallbase": "all_to_all",
    "broadcast": "broadcast", "reduce": "reduce", "barrier": "barrier",
    "allreducecoalesced": "all_reduce",
}  # fmt: skip
# The size of these is the output, and of all others the input.
_OF_OUTPUT = ("all_gather",)


@dataclass(frozen=True)
class Call:
    """A collective of a rank, or its computation between two collectives.

    Attributes:
        collective: name of the collective. Empty for a computation.
        size_bytes: size of the whole array in bytes.
        ranks: number of ranks of its group.
        members: the ranks of the group, if the trace states them.
        start_us: start in microseconds.
        duration_us: duration in microseconds. None if the trace does not state it.
        needs: numbers of the calls that must finish first. None if the order in time decides.
    """

    collective: str
    size_bytes: int
    ranks: int
    members: tuple[int, ...]
    start_us: float
    duration_us: float | None
    needs: tuple[int, ...] | None = None


@dataclass(frozen=True)
class Job:
    """The calls of one rank.

    Attributes:
        form: name of the trace's format.
        ranks: number of ranks of the job.
        calls: collectives and computations.
    """

    form: str
    ranks: int
    calls: tuple[Call, ...]

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
    try:
        reader = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)
        found = reader.decompress(data, UNPACKED_BYTES_MAX)
    except (OSError, zlib.error, gzip.BadGzipFile):
        raise ConfigError("is damaged: gzip cannot unpack it", file=file) from None
    if not reader.eof and not reader.unconsumed_tail:
        raise ConfigError("is damaged: gzip cannot unpack it all", file=file)
    if reader.unconsumed_tail:
        problem = f"unpacks to more than {UNPACKED_BYTES_MAX >> 30} GiB, the maximum"
        raise ConfigError(problem, file=file)
    return found


def _of_kineto(content: dict[str, Any], file: str) -> Job:
    events = content["traceEvents"]
    if not isinstance(events, list):
        raise ConfigError("has no list 'traceEvents'", file=file, line=1)
    info = content.get("distributedInfo")
    calls = [
        call for each in events[:_CALLS_MAX]
        if isinstance(each, dict) and (call := _kernel(each)) is not None
    ]  # fmt: skip
    calls.sort(key=lambda call: call.start_us)
    if not any(call.collective for call in calls):
        problem = (
            "has no collective kernel with its size: record the trace with PyTorch 2.3 or newer, "
            "whose kernels of NCCL have 'Collective name'"
        )
        raise ConfigError(problem, file=file, line=1)
    world = info.get("world_size") if isinstance(info, dict) else None
    ranks = world if isinstance(world, int) and 0 < world < 1 << 24 else _most_ranks(calls)
    return Job("Kineto trace", ranks, tuple(calls))


def _most_ranks(calls: Iterable[Call]) -> int:
    return max((max([call.ranks, *(one + 1 for one in call.members)]) for call in calls), default=1)


def _kernel(event: dict[str, Any]) -> Call | None:
    """A kernel or copy on the GPU. None for other events and for communication without a size."""
    if event.get("ph") != "X" or event.get("cat") not in ("kernel", "gpu_memcpy", "gpu_memset"):
        return None
    start, duration = _real(event.get("ts")), _real(event.get("dur"))
    if duration <= 0:
        return None
    details = event.get("args")
    name = details.get("Collective name") if isinstance(details, dict) else None
    if not isinstance(name, str) or not isinstance(details, dict):
        is_nccl = str(event.get("name", "")).startswith(("ncclDevKernel", "ncclKernel"))
        return None if is_nccl else Call("", 0, 1, (), start, duration)
    collective = _COLLECTIVES.get(re.sub(r"[^a-z]", "", name.lower()))
    ranks = int(_real(details.get("Group size")))
    if collective is None or not 0 < ranks < 1 << 24:
        return None
    kind = str(details.get("dtype", "")).lower()
    elements = _real(details.get(
        "Out msg nelems" if collective in _OF_OUTPUT else "In msg nelems"
    ))  # fmt: skip
    size = int(elements) * _TYPE_BYTES.get(kind, 4)
    return Call(collective, size, ranks, _members(details, ranks), start, duration)


def _members(details: dict[str, Any], ranks: int) -> tuple[int, ...]:
    text = str(details.get("Process Group Ranks", ""))[:4_000_000]
    members = tuple(int(word) for word in re.findall(r"[0-9]{1,7}", text))
    return members if len(members) == ranks else ()


def _real(value: object) -> float:
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        return 0.0
    return float(value) if 0 <= value < 1e18 else 0.0


def _of_dump(document: Document) -> Job:
    dump = flight_recorder.parse_dump(document)
    calls = []
    for each in dump.entries:
        word = re.sub(r"[^a-z]", "", each.name.lower().rpartition(":")[2])
        members = dump.groups.get(each.group, ())
        collective = _COLLECTIVES.get(word)
        if collective is None or each.input_bytes <= 0:
            continue
        ranks = max(len(members), 1)
        size = each.input_bytes * (ranks if collective in _OF_OUTPUT else 1)
        duration = None if each.duration_ms is None else each.duration_ms * 1e3
        start = (each.created_ns or 0) / 1e3
        calls.append(Call(collective, size, ranks, members, start, duration))
    if not calls:
        raise ConfigError("has no collective with its size and type", file=document.file)
    return Job("flight recorder dump", max(_most_ranks(calls), dump.rank + 1), tuple(calls))


def _of_chakra(document: Document, nodes: list[chakra.Node]) -> Job:
    place = {node.number: position for position, node in enumerate(nodes)}
    calls = []
    for node in nodes:
        needs = tuple(place[each] for each in node.needs if each in place)
        ranks = node.ranks or 0
        duration = node.duration_us if node.duration_us > 0 or not node.collective else None
        calls.append(
            Call(node.collective, node.size_bytes, ranks, node.members, node.start_us, duration,
                 needs)
        )  # fmt: skip
    if not any(call.collective for call in calls):
        raise ConfigError("has no collective: it needs nodes of type COMM_COLL", file=document.file)
    return Job("Chakra execution trace", _most_ranks(calls), tuple(calls))
