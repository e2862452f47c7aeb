# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Tables measured on host links: bandwidth by access and ordering, on two hosts.

`--machine` names another host. The chip is that of the table.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from towpath.host.host_cluster import Core, HostCluster, Load, Mapping, Ordering
from towpath.specs import catalogue
from towpath.validation.table_kind import (
    CannotSimulate,
    Context,
    Prediction,
    Row,
    TableKind,
    one_of,
    real,
    whole,
)

if TYPE_CHECKING:
    from towpath import _core

_CHIP = "wormhole"
_MIB = 1 << 20
_DMA_BYTES_MAX = 1 << 30

# A target as the tables name it, and a core of a Wormhole whose PCIe tile is 0-3.
_TARGETS: dict[str, Core] = {
    "Tensix tile L1 (same row)": (1, 3),
    "Tensix/Ethernet tile L1": (1, 1),
    "DRAM tile (same row)": (5, 3),
    "DRAM tile (same column)": (0, 0),
    "DRAM tile": (5, 0),
}
_SAME_ROW = _TARGETS["Tensix tile L1 (same row)"]
_DEVICE_CORES: dict[str, Core] = {
    "Tensix same row as PCIe tile": (1, 3),
    "Tensix different row": (1, 1),
}
_ORDERINGS: dict[str, Ordering] = {
    "Posted writes": "posted",
    "Default": "default",
    "Strict AXI": "strict",
}
_OPERATIONS = (
    "DMA to device", "memcpy to device", "DMA from device", "memcpy from device",
    "_mm_stream_load_si128 from device",
)  # fmt: skip
_TABLES = ("host_init_tlb_mode", "host_init_by_target", "device_init")

Move = Callable[[int], "_core.Transfer"]


def _cluster(host: str) -> HostCluster:
    return HostCluster(host, [_CHIP], carries_data=False)


# --- accesses one by one, without a driver: tt-isa-documentation ----------------------------------


def _host_move(
    cluster: HostCluster, operation: str, core: Core, window: tuple[Mapping, Ordering]
) -> Move:
    """A function that moves a number of bytes through one window, or with the engine."""
    mapping, ordering = window
    if operation.startswith("DMA"):
        buffer = cluster.allocate_sysmem_buffer(0, _MIB)
        move = buffer.dma_write_to_device
        if operation == "DMA from device":
            move = buffer.dma_read_from_device
        return lambda size: move(0, size, core, 0, ordering=ordering)
    cluster.configure_tlb(0, core, 2 * _MIB, 0, ordering=ordering, mapping=mapping)
    data = np.zeros(_MIB, np.uint8)
    if operation == "memcpy to device":
        return lambda size: cluster.write_to_device(data[:size], 0, core, 0)
    load: Load = "copy" if operation == "memcpy from device" else "stream"
    return lambda size: cluster.read_from_device(data[:size], 0, core, 0, load=load)


def _access(row: Row, context: Context) -> tuple[Move, str]:
    cluster = _cluster(context.machine or "ryzen-host")
    table = one_of(row, "table", _TABLES)
    if table == "device_init":
        operation = one_of(row, "operation", ("NoC read", "NoC write"))
        core = _DEVICE_CORES[one_of(row, "col2", tuple(_DEVICE_CORES))]
        buffer = cluster.allocate_sysmem_buffer(0, _MIB)
        move = buffer.noc_read if operation == "NoC read" else buffer.noc_write
        return (lambda size: move(0, size, core, 0)), operation
    operation = one_of(row, "operation", _OPERATIONS)
    if table == "host_init_by_target":
        core = _TARGETS[one_of(row, "col2", tuple(_TARGETS))]
        one_of(row, "col3", ("WC posted",))
        return _host_move(cluster, operation, core, ("write_combining", "posted")), operation
    is_uncached = one_of(row, "col2", ("WC", "UC", "WC or UC")) == "UC"
    mapping: Mapping = "uncached" if is_uncached else "write_combining"
    ordering = _ORDERINGS[one_of(row, "col3", tuple(_ORDERINGS))]
    return _host_move(cluster, operation, _SAME_ROW, (mapping, ordering)), operation


def _predict_access(row: Row, context: Context) -> Prediction:
    """Time per additional byte of a large transfer, and the time of a small one."""
    move, operation = _access(row, context)
    small_ns = move(4).time_ns
    move(_MIB)  # fills whatever takes writes in before they are through
    half_ns, whole_ns = move(_MIB // 2).time_ns, move(_MIB).time_ns
    details = {} if operation == "memcpy to device" else {"predicted_latency_ns": small_ns}
    return Prediction(_MIB / 2 / (whole_ns - half_ns), details)


# --- through the driver: tt-umd's benchmarks ------------------------------------------------------

_UMD_CORES: dict[str, Core] = {"DRAM": (0, 0), "Tensix": (1, 1), "Ethernet": (9, 0)}
_BENCHES = tuple(
    f"{mechanism}_{target}{sweep}"
    for mechanism in ("DMA", "TLB")
    for target in _UMD_CORES
    for sweep in ("", "_Sweep")
)
_CASES = ("DMA", "Static TLB", "Dynamic TLB")
# Calls until one takes as long as the next.
_CALLS = 8


def _predict_umd(row: Row, context: Context) -> Prediction:
    cluster = _cluster(context.machine or "n300-xeon-host")
    core = _UMD_CORES[one_of(row, "bench", _BENCHES).split("_")[1]]
    case = one_of(row, "case", _CASES)
    size_bytes = whole(row, "bytes", _DMA_BYTES_MAX)
    if case != "DMA" and size_bytes > 64 * _MIB:
        raise CannotSimulate(f"bytes is {size_bytes}; it must be 1 to {64 * _MIB} without DMA")
    is_write = one_of(row, "op", ("read", "write")) == "write"
    if case == "DMA":
        move = cluster.dma_write_to_device if is_write else cluster.dma_read_from_device
    else:
        move = cluster.write_to_device if is_write else cluster.read_from_device
    if case == "Static TLB":
        cluster.configure_tlb(0, core, 16 * _MIB, 0)
    data = np.empty(size_bytes, np.uint8)
    for _ in range(_CALLS if size_bytes < _MIB else 2):
        time_ns = move(data, 0, core, 0).time_ns
    return Prediction(size_bytes / time_ns * 1e3)


PCIE_KINDS = [
    TableKind(
        name="accesses over a host link",
        columns=frozenset({
            "table", "operation", "col2", "col3", "throughput_GBps", "latency_ns_min",
        }),
        unit="GB/s",
        identity=("table", "operation", "col2", "col3"),
        group=lambda row: f"{row['table']}, {row['operation']}",
        measured=lambda row: real(row, "throughput_GBps"),
        predict=_predict_access,
        label=lambda row: f"{row['col2']}, {row['col3']}".removesuffix(", "),
        check_machine=catalogue.load_host,
    ),
    TableKind(
        name="transfers through the driver of a host link",
        columns=frozenset({
            "bench", "case", "op", "bytes", "bytes_per_s",
        }),
        unit="MB/s",
        identity=("bench", "case", "op"),
        group=lambda row: f"{row['bench'].removesuffix('_Sweep')}, {row['case']}, {row['op']}",
        measured=lambda row: real(row, "bytes_per_s") / 1e6,
        predict=_predict_umd,
        label=lambda row: f"{row['bytes']} bytes",
        check_machine=catalogue.load_host,
    ),
]  # fmt: skip
