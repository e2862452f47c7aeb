# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Reads Chakra execution traces of schema 0.0.4: protobuf, and the JSON of its own converter."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from towpath.errors import ConfigError

# CollectiveCommType and NodeType of et_def.proto.
_COLLECTIVES = (
    "all_reduce", "reduce", "all_gather", "gather", "scatter", "broadcast", "all_to_all",
    "reduce_scatter", "reduce_scatter", "barrier",
)  # fmt: skip
_COLLECTIVE_NODE = 7
_MESSAGE_NODES = (5, 6)
_COMPUTE_NODES = (2, 3, 4)
_NODE_TYPES = {
    "MEM_LOAD_NODE": 2, "MEM_STORE_NODE": 3, "COMP_NODE": 4, "COMM_SEND_NODE": 5,
    "COMM_RECV_NODE": 6, "COMM_COLL_NODE": 7,
}  # fmt: skip
_NODES_MAX = 5_000_000
_VARINT_BYTES_MAX = 10
# Numbers of the fields of messages.
_ID, _NAME, _TYPE, _CONTROL, _DATA, _START, _DURATION, _ATTRIBUTE = 1, 2, 3, 4, 5, 6, 7, 10
_SIGNED = 1 << 63


@dataclass(frozen=True)
class Node:
    """A node: a collective, a computation, or another node through which dependencies pass.

    Attributes:
        number: its id.
        collective: name of the collective. Empty for any other node.
        stream: "compute" and "communication" for work of the GPU, "cpu" for work of the processor,
            and empty for nodes without time.
        size_bytes: size of the whole array in bytes.
        ranks: number of ranks of its group. 0 if the trace does not state it.
        members: the ranks of the group, if the trace states them.
        start_us: start in microseconds.
        duration_us: duration in microseconds.
        needs: ids of the nodes that must finish first.
    """

    number: int
    collective: str
    stream: str
    size_bytes: int
    ranks: int
    members: tuple[int, ...]
    start_us: float
    duration_us: float
    needs: tuple[int, ...]


def parse_json(content: Any, file: str) -> list[Node]:
    """The nodes of a trace in JSON.

    Raises:
        ConfigError: the content is not such a trace.
    """
    listed = content.get("nodes") if isinstance(content, dict) else content
    if not isinstance(listed, list) or not all(isinstance(each, dict) for each in listed):
        problem = "is neither a Kineto trace nor a Chakra trace: it has no list 'nodes'"
        raise ConfigError(problem, file=file, line=1)
    _check_count(len(listed), file)
    return [_node(_json_fields(each), _json_attributes(each)) for each in listed]


def _check_count(nodes: int, file: str) -> None:
    if nodes > _NODES_MAX:
        raise ConfigError(f"has more than {_NODES_MAX} nodes, the maximum", file=file)


def _json_fields(data: dict[str, Any]) -> dict[int, Any]:
    def number(*names: str) -> int:
        value = next((data[name] for name in names if name in data), 0)
        text = str(value)
        return int(text) if re.fullmatch(r"[0-9]{1,18}", text) else 0

    def numbers(*names: str) -> list[int]:
        value: Any = next((data[name] for name in names if name in data), [])
        words = value if isinstance(value, list) else []
        return [int(str(each)) for each in words if re.fullmatch(r"[0-9]{1,18}", str(each))]

    kind = data.get("type", 0)
    return {
        _ID: number("id"), _TYPE: _NODE_TYPES.get(str(kind), kind if isinstance(kind, int) else 0),
        _CONTROL: numbers("ctrlDeps", "ctrl_deps"), _DATA: numbers("dataDeps", "data_deps"),
        _START: number("startTimeMicros", "start_time_micros"),
        _DURATION: number("durationMicros", "duration_micros"),
    }  # fmt: skip


def _json_attributes(data: dict[str, Any]) -> dict[str, Any]:
    found = {}
    listed = data.get("attr")
    for each in listed if isinstance(listed, list) else ():
        if isinstance(each, dict) and isinstance(each.get("name"), str):
            value = next((each[name] for name in each if name.lower().endswith("val")), None)
            found[each["name"]] = value
    return found


def _node(fields: dict[int, Any], attributes: dict[str, Any]) -> Node:
    kind = fields.get(_TYPE, 0)
    is_of_cpu = str(attributes.get("is_cpu_op", "")).lower() in ("1", "true")
    collective = ""
    if kind == _COLLECTIVE_NODE and not is_of_cpu:
        number = _integer(attributes.get("comm_type", len(_COLLECTIVES)))
        collective = _COLLECTIVES[number] if 0 <= number < len(_COLLECTIVES) else ""
    text = str(attributes.get("pg_ranks", attributes.get("involved_ranks", "")))[:1_000_000]
    members = tuple(int(word) for word in re.findall(r"[0-9]{1,7}", text))
    ranks = _integer(attributes.get("pg_size", attributes.get("num_npus"))) or len(members)
    return Node(
        fields.get(_ID, 0), collective, _stream(kind, is_of_cpu=is_of_cpu),
        _integer(attributes.get("comm_size")), ranks, members,
        float(fields.get(_START, 0)), float(fields.get(_DURATION, 0)),
        (*fields.get(_CONTROL, ()), *fields.get(_DATA, ())),
    )  # fmt: skip


def _stream(kind: int, *, is_of_cpu: bool) -> str:
    if kind not in (_COLLECTIVE_NODE, *_MESSAGE_NODES, *_COMPUTE_NODES):
        return ""
    if is_of_cpu:
        return "cpu"
    return "compute" if kind in _COMPUTE_NODES else "communication"


def _integer(value: Any) -> int:
    text = str(value)
    return int(text) if re.fullmatch(r"[0-9]{1,18}", text) else 0


def parse_protobuf(data: bytes, file: str) -> list[Node]:
    """The nodes of a trace in protobuf. It is messages with their lengths, first the metadata.

    Raises:
        ConfigError: the bytes are not such a trace.
    """
    nodes: list[Node] = []
    place = 0
    is_first = True
    try:
        while place < len(data):
            length, place = _varint(data, place)
            if length > len(data) - place:
                raise ValueError("a message exceeds the file")
            if not is_first:
                if length == 0:
                    raise ValueError("a node is empty")
                nodes.append(_message(data[place : place + length]))
                _check_count(len(nodes), file)
            is_first = False
            place += length
    except ConfigError:
        raise
    except (ValueError, struct.error):
        problem = f"is not a trace: it is neither JSON nor Chakra's protobuf (byte {place})"
        raise ConfigError(problem, file=file) from None
    return nodes


def _message(data: bytes) -> Node:
    fields: dict[int, Any] = {_CONTROL: [], _DATA: []}
    attributes: dict[str, Any] = {}
    for number, value in _fields(data):
        if number in (_CONTROL, _DATA):
            fields[number] += _packed(value) if isinstance(value, bytes) else [value]
        elif number == _ATTRIBUTE and isinstance(value, bytes):
            name, content = _attribute(value)
            attributes[name] = content
        elif isinstance(value, int):
            fields[number] = value
    return _node(fields, attributes)


def _attribute(data: bytes) -> tuple[str, Any]:
    name, content = "", None
    for number, value in _fields(data):
        if number == 1 and isinstance(value, bytes):
            name = value.decode("utf-8", "replace")
        elif number > 2:
            content = value.decode("utf-8", "replace") if isinstance(value, bytes) else value
    return name, content


def _packed(data: bytes) -> list[int]:
    values, place = [], 0
    while place < len(data):
        value, place = _varint(data, place)
        values.append(value)
    return values


def _fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """The fields of a message: numbers, and bytes of texts and inner messages."""
    place = 0
    while place < len(data):
        key, place = _varint(data, place)
        kind = key & 7
        if kind == 0:
            value, place = _varint(data, place)
            yield key >> 3, value
        elif kind == 2:
            length, place = _varint(data, place)
            if length > len(data) - place:
                raise ValueError("a field exceeds its message")
            yield key >> 3, data[place : place + length]
            place += length
        elif kind in (1, 5):
            form, length = ("<Q", 8) if kind == 1 else ("<I", 4)
            yield key >> 3, struct.unpack_from(form, data, place)[0]
            place += length
        else:
            raise ValueError("unknown kind of field")


def _varint(data: bytes, place: int) -> tuple[int, int]:
    if place < len(data) and data[place] < 128:
        return data[place], place + 1
    value = 0
    for shift in range(_VARINT_BYTES_MAX):
        if place >= len(data):
            raise ValueError("ends within a number")
        byte = data[place]
        place += 1
        value |= (byte & 127) << (7 * shift)
        if byte < 128:
            return (value - 2 * _SIGNED if value >= _SIGNED else value), place
    raise ValueError("a number is too long")
