# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Document 003: its kernels, compiled as printed, and their simulated times with data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from towpath.kernels.gpu_kernel import GpuKernel
from towpath.reproduce import worklog_kernels
from towpath.specs import catalogue
from towpath.specs.override import with_settings

PROGRAM = Path(__file__).parent / "programs" / "worklog_kernels.cu"
MACHINE = "dgx-h100"
BY_GPUS = "gpu_cost.kernel.gpu_initiated_adapters=true"
NO_LAUNCH = "gpu_cost.launch_ns=0"  # the document times only kernels
GPUS_PER_HOST = 8
HALF_BYTES = 2
PERIOD = 7
KIB, MIB = 1 << 10, 1 << 20

RING = "vectorised_ring"
ALTERNATING = "alternating_rings"
SIMPLE = "simple_ring"


@dataclass(frozen=True)
class Point:
    """A kernel in one shape. Sizes are of the array of a PE."""

    kernel: str
    size_bytes: int
    threads: int
    bytes_per_thread: int
    pes: int
    settings: tuple[str, ...] = ()

    @property
    def rings(self) -> int:
        return GPUS_PER_HOST if self.kernel == ALTERNATING else 1

    @property
    def is_exchange(self) -> bool:
        return "exchange" in self.kernel

    @property
    def blocks(self) -> int | None:
        """Blocks of a ring. None if blocks do not divide the array."""
        is_whole = self.is_exchange or self.kernel == SIMPLE
        parts = self.rings * (1 if is_whole else self.pes)
        blocks, rest = divmod(self.size_bytes, parts * self.threads * self.bytes_per_thread)
        return blocks if rest == 0 and blocks > 0 else None


class Kernels:
    """The document's kernels, compiled."""

    def __init__(self, text: str, folder: Path) -> None:
        header = worklog_kernels.header(text)
        (folder / "document_kernels.h").write_text(header, encoding="utf-8")
        names = [self._name(kernel) for kernel in
                 ("plain_exchange", "signal_exchange", "fused_exchange", "ring", RING, SIMPLE,
                  ALTERNATING)]  # fmt: skip
        self._kernel = GpuKernel(str(PROGRAM), names, [f"-I{folder}"])

    @staticmethod
    def _name(kernel: str) -> str:
        function = "exchange" if "exchange" in kernel else "all_reduce_ring_kernel"
        function = "all_reduce_simple_ring_kernel" if kernel == SIMPLE else function
        return f"{kernel}::{function}<half>"

    def time_us(self, point: Point) -> float:
        """Until the last kernel has ended. Raises AssertionError where data is wrong."""
        if point.blocks is None:
            raise ValueError(f"blocks do not divide the array: {point}")
        spec = with_settings(catalogue.load(MACHINE), [NO_LAUNCH, *point.settings])
        gpus = self._kernel.simulate(spec, point.pes)
        count = point.size_bytes // HALF_BYTES
        destination = gpus.symmetric(count, "float16")
        buffer = gpus.symmetric(count, "float16")
        signal = gpus.symmetric(point.blocks * point.rings, "uint64")
        inputs = [(np.arange(PERIOD) + 3 * pe) % PERIOD for pe in range(point.pes)]
        for array, values in zip(buffer.on, inputs, strict=True):
            array[:] = np.resize(values.astype("float16"), count)
        grid = (point.blocks, point.rings)
        if point.is_exchange:
            first, second = 0, min(GPUS_PER_HOST, point.pes - 1)
            peers = [second if pe == first else first for pe in range(point.pes)]
            words = [] if point.kernel == "plain_exchange" else [signal]
            arguments = [destination, buffer, *words, peers, point.bytes_per_thread]
            on: list[int] | None = [first, second]
            expected = {first: inputs[second], second: inputs[first]}
        else:
            node = min(point.pes, GPUS_PER_HOST)
            arguments = [destination, buffer, signal, point.bytes_per_thread, node, 1]
            on = None
            expected = {pe: np.sum(inputs, axis=0) for pe in range(point.pes)}
        time_us = gpus.launch(self._name(point.kernel), grid, point.threads, arguments, on=on)
        found = destination.on if point.kernel == "plain_exchange" else buffer.on
        for pe, values in expected.items():
            wanted = np.resize(values.astype("float16"), count)
            assert np.array_equal(found[pe], wanted), f"PE {pe} has wrong data after {point}"
        return time_us

    def gb_per_s(self, point: Point) -> float:
        """Bytes that a GPU sends and receives over time, as the document counts."""
        return 2 * point.size_bytes / self.time_us(point) / 1e3

    def best_us(self, points: Sequence[Point]) -> float:
        """The least time of several shapes, without shapes that do not divide the array."""
        return min(self.time_us(point) for point in points if point.blocks is not None)


@dataclass(frozen=True)
class Figure:
    """A number of the document with the value of the kernel."""

    statement: str
    unit: str
    document: float
    kernel: float

    @property
    def ratio(self) -> float:
        return self.kernel / self.document


@dataclass(frozen=True)
class Comparison:
    """A statement that one is faster than another."""

    statement: str
    faster: str
    faster_us: float
    slower: str
    slower_us: float

    @property
    def holds(self) -> bool:
        return self.faster_us < self.slower_us


# Statement, GB/s of the document, kernel, threads, bytes of each, PEs, settings. The shape is the
# best one of `towpath bench exchange`. The document also sweeps shapes.
EXCHANGES = [
    ("plain, inside a node", 733, "plain_exchange", 512, 16, 2, ()),
    ("put, fence, signal, inside a node", 560, "signal_exchange", 128, 64, 2, ()),
    ("put with signal, inside a node", 733, "fused_exchange", 512, 16, 2, ()),
    ("plain, between nodes, proxy", 87, "plain_exchange", 128, 512, 16, ()),
    ("plain, between nodes, IBGDA", 96, "plain_exchange", 128, 512, 16, (BY_GPUS,)),
    ("put, fence, signal, between nodes", 80, "signal_exchange", 256, 512, 16, (BY_GPUS,)),
    ("put with signal, between nodes", 96, "fused_exchange", 1024, 64, 16, (BY_GPUS,)),
]


def exchange_figures(kernels: Kernels, size_bytes: int = 32 * MIB) -> list[Figure]:
    return [
        Figure(statement, "GB/s", document,
               kernels.gb_per_s(Point(kernel, size_bytes, threads, each, pes, settings)))
        for statement, document, kernel, threads, each, pes, settings in EXCHANGES
    ]  # fmt: skip


def shapes(kernel: str, size_bytes: int, pes: int, settings: tuple[str, ...] = ()) -> list[Point]:
    """Some shapes of the document's sweep: full blocks for large arrays, small ones for small."""
    sizes = [(512, 16), (512, 64), (512, 256)] if size_bytes >= 4 * MIB else [(64, 16), (256, 16)]
    return [Point(kernel, size_bytes, *each, pes, settings) for each in sizes]


def ring_comparisons(kernels: Kernels) -> list[Comparison]:
    """Comparisons of rings in one node."""
    found = []
    for size_bytes in (16 * KIB, 64 * KIB, 4 * MIB, 16 * MIB):
        ring = kernels.best_us(shapes(RING, size_bytes, 8))
        simple = kernels.best_us(shapes(SIMPLE, size_bytes, 8))
        text = f"{size_bytes // KIB} KiB on 8 GPUs"
        if size_bytes <= 64 * KIB:
            statement = f"a simple ring is better for small buffers: {text}"
            found.append(Comparison(statement, "simple ring", simple, "ring", ring))
        else:
            statement = f"... and worse for large ones: {text}"
            found.append(Comparison(statement, "ring", ring, "simple ring", simple))
    first = kernels.best_us(shapes("ring", 16 * MIB, 8))
    found.append(Comparison("loads of 16 bytes and SET help: 16 MiB on 8 GPUs", "vectorised ring",
                            ring, "first ring", first))  # fmt: skip
    return found


def node_comparisons(kernels: Kernels, large_bytes: int = 64 * MIB) -> list[Comparison]:
    """Comparisons of rings over two nodes whose GPUs hand their puts to the adapters."""
    few = (BY_GPUS, "gpu_cost.kernel.queue_pairs=2")
    many = (BY_GPUS, "gpu_cost.kernel.queue_pairs=32")
    one = kernels.best_us(shapes(RING, 16 * MIB, 16, many))
    rings = kernels.best_us(shapes(ALTERNATING, 16 * MIB, 16, many))
    large = [Point(ALTERNATING, large_bytes, 512, each, 16) for each in (32, 128, 512)]
    times = [
        kernels.best_us([Point(ALTERNATING, large_bytes, 512, point.bytes_per_thread, 16, settings)
                         for point in large])
        for settings in (few, many)
    ]  # fmt: skip
    return [
        Comparison("a ring for each adapter: 16 MiB on 2 nodes", "alternating rings", rings,
                   "one ring", one),
        Comparison(f"32 queue pairs help: {large_bytes // MIB} MiB on 2 nodes", "32 queue pairs",
                   times[1], "2 queue pairs", times[0]),
    ]  # fmt: skip


# nccl-tests on two nodes of eight H100, 256 MiB (NVIDIA/nccl-tests#309).
NCCL_RING_US = 1357.0
NCCL_DEFAULT_US = 1284.0


def nccl_comparisons(kernels: Kernels) -> list[Comparison]:
    """At 256 MiB. Takes 10 GB of memory."""
    settings = (BY_GPUS, "gpu_cost.kernel.queue_pairs=32")
    points = [Point(ALTERNATING, 256 * MIB, 512, each, 16, settings) for each in (128, 512)]
    time_us = kernels.best_us(points)
    return [
        Comparison("faster than NCCL's ring for large buffers: 256 MiB on 2 nodes",
                   "alternating rings", time_us, "NCCL's ring", NCCL_RING_US),
        Comparison("... and slower than NCCL by default", "NCCL", NCCL_DEFAULT_US,
                   "alternating rings", time_us),
    ]  # fmt: skip
