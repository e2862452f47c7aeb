# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Kernels of puts with signals on a cluster of GPUs, compared with NCCL."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from towpath.collectives.nccl.imitation import Library
from towpath.studies import exchange
from towpath.studies.progress import Progress

if TYPE_CHECKING:
    from towpath.api.clusters import GpuCluster

NCCL = "NCCL by default, two hosts"
NCCL_RING = "NCCL with NCCL_ALGO=Ring, two hosts"


def bench_exchange(
    machine: GpuCluster,
    sizes_bytes: Sequence[int],
    ring_sizes_bytes: Sequence[int],
    progress: Progress,
) -> exchange.ExchangeStudy:
    """Implementation of `GpuCluster.bench_exchange`."""
    spec = machine.spec
    exchange.check_kernels(spec)
    rows = exchange.exchanges(spec, sizes_bytes, progress)
    inside = list(exchange.rings_inside(spec, ring_sizes_bytes))
    between: list[exchange.Ring] = []
    if spec.host_count > 1:
        between = list(exchange.rings_between(spec, ring_sizes_bytes))
        if machine.hosts == 2:
            between += _nccl(machine, sorted({ring.size_bytes for ring in between}))
    return exchange.ExchangeStudy(spec.name, rows, inside, between)


def _nccl(machine: GpuCluster, sizes_bytes: Sequence[int]) -> list[exchange.Ring]:
    rows = []
    for variant, variables in ((NCCL, {}), (NCCL_RING, {"NCCL_ALGO": "Ring"})):
        library = Library.of("nccl", variables=variables)
        for size_bytes in sizes_bytes:
            found = machine.expect("all_reduce", size_bytes=size_bytes, library=library)
            rows.append(exchange.Ring(variant, size_bytes, 0, 0, found.rows[0].time_us))
    return rows
