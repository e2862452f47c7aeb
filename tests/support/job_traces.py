# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Traces of a training step in the forms of Kineto and Chakra."""

from __future__ import annotations

import json
import struct

KINETO_NAMES = {"all_reduce": "allreduce", "all_gather": "_allgather_base",
                "reduce_scatter": "_reduce_scatter_base"}  # fmt: skip
COMM_TYPES = {"all_reduce": 0, "all_gather": 2, "reduce_scatter": 7}


def kineto(calls, ranks: int) -> dict:
    """A Kineto trace.

    Args:
        calls: (collective or "", start, duration, bytes of the whole array), times in us.
        ranks: number of ranks.
    """
    events = []
    for collective, start, duration, size in calls:
        event = {"ph": "X", "cat": "kernel", "name": "gemm", "ts": start, "dur": duration,
                 "args": {"stream": 7}}  # fmt: skip
        if collective:
            part = size // ranks // 2
            counts = {"all_reduce": (size // 2, size // 2), "all_gather": (part, size // 2),
                      "reduce_scatter": (size // 2, part)}[collective]  # fmt: skip
            event["name"] = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage)"
            event["args"] = {
                "Collective name": KINETO_NAMES[collective], "In msg nelems": counts[0],
                "Out msg nelems": counts[1], "Group size": ranks, "dtype": "BFloat16",
                "Process Group Name": "0", "Process Group Ranks": str(list(range(ranks))),
            }  # fmt: skip
        events.append(event)
    info = {"backend": "nccl", "rank": 0, "world_size": ranks}
    return {"schemaVersion": 1, "distributedInfo": info, "traceEvents": events}


def chakra_json(nodes) -> dict:
    """A Chakra trace in JSON.

    Args:
        nodes: (id, collective or "", duration in us, bytes, ids of the nodes that it needs).
    """
    return {
        "nodes": [
            {
                "id": str(number), "name": collective or "gemm",
                "type": "COMM_COLL_NODE" if collective else "COMP_NODE",
                "dataDeps": [str(one) for one in needs], "durationMicros": str(duration),
                "attr": [
                    {"name": "comm_type", "int64Val": str(COMM_TYPES[collective])},
                    {"name": "comm_size", "int64Val": str(size)},
                ] if collective else [],
            }
            for number, collective, duration, size, needs in nodes
        ]
    }  # fmt: skip


def varint(value: int) -> bytes:
    parts = bytearray()
    while value > 127:
        parts.append(value & 127 | 128)
        value >>= 7
    return bytes([*parts, value])


def field(number: int, value) -> bytes:
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    if isinstance(value, float):
        return varint(number << 3 | 1) + struct.pack("<d", value)
    data = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(data)) + data


def chakra_protobuf(nodes) -> bytes:
    """The same trace in protobuf."""
    messages = [field(1, "0.0.4")]
    for number, collective, duration, size, needs in nodes:
        message = field(1, number) + field(2, collective or "gemm")
        message += field(3, 7 if collective else 4)
        message += field(5, b"".join(varint(one) for one in needs)) if needs else b""
        message += field(7, duration)
        if collective:
            kind = field(1, "comm_type") + field(9, COMM_TYPES[collective])
            message += field(10, kind) + field(10, field(1, "comm_size") + field(9, size))
        messages.append(message)
    return b"".join(varint(len(each)) + each for each in messages)


def dumped(content) -> str:
    return json.dumps(content)
