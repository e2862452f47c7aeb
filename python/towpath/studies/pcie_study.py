# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Measurements of `towpath bench pcie`: transfers between a host and a chip by all methods."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, get_args

import numpy as np
import numpy.typing as npt

from towpath.host.host_cluster import HostCluster, Mapping, Ordering, TransferOptions
from towpath.studies.pcie_document import CHIP, HOST, MB, REPETITIONS, TABLES

if TYPE_CHECKING:
    from towpath import _core
    from towpath.specs.chip_spec import ChipSpec
    from towpath.specs.host_spec import HostSpec

Row = dict[str, Any]
Setting = dict[str, Any]
KINDS = {"dram": "DRAM", "worker": "L1"}
# malloc gives multiples of 16, of which one in four begins on a line.
MISALIGNMENT_BYTES = 16
SWEEP_BYTES_MAX = 256 * MB
# Effects below this are none.
MATERIAL = 0.05


@dataclass(frozen=True)
class Measurement:
    """Consecutive transfers of one kind.

    Attributes:
        mb_per_s: bandwidth, where 1 MB is 2^20 bytes.
        asked: the mechanism that the benchmark requested: MMIO, DMA or NoC.
        used: the mechanism that moved the data.
        obstacle: the reason for a difference between the two.
        last: the last transfer.
    """

    mb_per_s: float
    asked: str
    used: str
    obstacle: str
    last: _core.Transfer

    @property
    def mechanism(self) -> str:
        """The mechanism as text, with a note if it is not the requested one."""
        return self.used if self.asked == self.used else f"{self.asked} asked, {self.used} used"


@dataclass(frozen=True)
class Way:
    """A transfer method.

    Attributes:
        name: name for people.
        is_write: True for transfers to the device.
        mechanism: "window", "DMA" (through the bounce buffer), "zero-copy", "mapped" (zero-copy of
            the program's own memory, mapped for each transfer) or "device".
        is_static: True if the window is configured once, with `window_bytes` or the smallest size
            that holds all data, if there is one.
        options: options of the transfer.
        setting: options of the HostCluster.
    """

    name: str
    is_write: bool = True
    mechanism: str = "window"
    is_static: bool = False
    window_bytes: int | None = None
    options: TransferOptions = field(default_factory=TransferOptions)
    setting: Setting = field(default_factory=dict)


class PcieBench:
    """A host and a chip to measure."""

    def __init__(self, host: HostSpec, chip: ChipSpec) -> None:
        self.host = host
        self.chip = chip

    @property
    def is_the_documents(self) -> bool:
        """True if the document measured this pair."""
        return (self.host.name, self.chip.name) == (HOST, CHIP)

    def measure(
        self, way: Way, kind: str, size_bytes: int, repetitions: int = REPETITIONS,
        host: HostSpec | None = None,
    ) -> Measurement:  # fmt: skip
        """Measures transfers of one size to or from the first core of a kind."""
        cluster = HostCluster(host or self.host, [self.chip], carries_data=False, **way.setting)
        move = self._move(cluster, way, cluster.core(0, kind), size_bytes)
        begin_ns = cluster.now_ns
        last = [move() for _ in range(repetitions)][-1]
        time_s = (cluster.now_ns - begin_ns) / 1e9
        mb_per_s = size_bytes * repetitions / MB / time_s
        return Measurement(mb_per_s, last.asked, last.used, last.obstacle, last)

    def _move(
        self, cluster: HostCluster, way: Way, core: tuple[int, int], size_bytes: int
    ) -> Callable[[], _core.Transfer]:
        options = way.options.copy()
        if way.mechanism in ("zero-copy", "device"):
            buffer = cluster.allocate_sysmem_buffer(0, size_bytes)
            if way.mechanism == "device":  # to the device: the core reads the host
                by_device = buffer.noc_read if way.is_write else buffer.noc_write
                return lambda: by_device(0, size_bytes, core, 0)
            in_place = buffer.dma_write_to_device if way.is_write else buffer.dma_read_from_device
            return lambda: in_place(0, size_bytes, core, 0, **options)
        data = np.empty(size_bytes, np.uint8)
        if way.mechanism == "mapped":
            return lambda: _mapped_transfer(cluster, data, core, way)
        if way.mechanism == "DMA":
            by_engine = (
                cluster.dma_write_to_device if way.is_write else cluster.dma_read_from_device
            )
            return lambda: by_engine(data, 0, core, 0, **options)
        if way.is_static:
            ordering = options.pop("ordering", "default")
            mapping = options.pop("mapping", "write_combining")
            window_bytes = way.window_bytes or self._window_bytes_for(size_bytes)
            cluster.configure_tlb(0, core, window_bytes, 0, ordering=ordering, mapping=mapping)
        elif way.window_bytes is not None:
            options["window_bytes"] = way.window_bytes
        by_core = cluster.write_to_device if way.is_write else cluster.read_from_device
        return lambda: by_core(data, 0, core, 0, **options)

    def _window_bytes_for(self, size_bytes: int) -> int:
        """Size of the smallest window that holds the bytes, or of the largest if none does."""
        sizes = sorted(self.windows_bytes)
        return next((window for window in sizes if window >= size_bytes), sizes[-1])

    @property
    def windows_bytes(self) -> list[int]:
        """The window sizes of the chip."""
        assert self.chip.pcie is not None
        return [window.size_bytes.value for window in self.chip.pcie.windows]


def _mapped_transfer(
    cluster: HostCluster, data: npt.NDArray[np.uint8], core: tuple[int, int], way: Way
) -> _core.Transfer:
    """Maps the program's buffer, transfers it in place, and unmaps it, as tt-umd's
    benchmarks do.
    """
    buffer = cluster.map_sysmem_buffer(0, data)
    move = buffer.dma_write_to_device if way.is_write else buffer.dma_read_from_device
    transfer = move(0, len(data), core, 0, **way.options)
    buffer.unmap()
    return transfer


# --- the document's tables ------------------------------------------------------------------------


def document_tables(bench: PcieBench) -> dict[str, list[Row]]:
    """Each of the four tables, with simulated and published values.

    A read has two values and two errors, for a buffer with and without line alignment. The document
    does not state the alignment, so neither value is a prediction of the document's cell.
    """
    tables: dict[str, list[Row]] = {}
    for table in TABLES:
        rows = []
        for cell in table.cells:
            write = bench.measure(Way("", is_static=table.is_static), table.kind, cell.size_bytes)
            reads = [
                bench.measure(
                    Way("", False, is_static=table.is_static,
                        options={"misalignment_bytes": misalignment_bytes}),
                    table.kind, cell.size_bytes,
                ).mb_per_s
                for misalignment_bytes in (0, MISALIGNMENT_BYTES)
            ]  # fmt: skip
            rows.append({
                "size_bytes": cell.size_bytes,
                "write_mb_per_s": write.mb_per_s,
                "document_write_mb_per_s": cell.write_mb_per_s,
                "write_error_pct": 100 * (write.mb_per_s / cell.write_mb_per_s - 1),
                "read_aligned_mb_per_s": reads[0],
                "read_misaligned_mb_per_s": reads[1],
                "document_read_mb_per_s": cell.read_mb_per_s,
                "read_aligned_error_pct": 100 * (reads[0] / cell.read_mb_per_s - 1),
                "read_misaligned_error_pct": 100 * (reads[1] / cell.read_mb_per_s - 1),
                "aligned_is_nearer": (
                    abs(reads[0] / cell.read_mb_per_s - 1) < abs(reads[1] / cell.read_mb_per_s - 1)
                ),
            })  # fmt: skip
        tables[table.title] = rows
    return tables


# --- one way against another ----------------------------------------------------------------------


def comparisons(bench: PcieBench) -> dict[str, list[Row]]:
    """Transfer methods compared: TLB and DMA, orderings, mappings, windows, hugepages."""
    return {
        "Windows against DMA, 1 MB": list(_mechanisms(bench)),
        "Ordering and mapping, writes of 1 MB": list(_orderings(bench)),
        "Sizes of windows": list(_windows(bench)),
        "Hugepages": list(_hugepages(bench)),
    }


def _row(way: Way, kind: str, size_bytes: int, measured: Measurement) -> Row:
    name = way.name
    if measured.asked != measured.used:
        name += f" ({measured.mechanism}: {measured.obstacle})"
    return {
        "way": name, "target": KINDS[kind], "size_bytes": size_bytes,
        "asked": measured.asked, "used": measured.used, "mb_per_s": measured.mb_per_s,
    }  # fmt: skip


def _mechanisms(bench: PcieBench) -> Iterator[Row]:
    assert bench.chip.pcie is not None
    ways = [
        Way("static window, write", is_static=True),
        Way("static window, read", False, is_static=True),
        Way("DMA, write", mechanism="DMA"),
        Way("DMA, read", False, "DMA"),
        Way("DMA without memory for it, write", mechanism="DMA",
            setting={"num_host_mem_ch_per_mmio_device": 0}),
        Way("zero-copy DMA, write", mechanism="zero-copy"),
        Way("zero-copy DMA, posted, write", mechanism="zero-copy", options={"ordering": "posted"}),
        Way("zero-copy DMA, read", False, "zero-copy"),
        Way("zero-copy DMA of the program's own memory, write", mechanism="mapped"),
        Way("zero-copy DMA of the program's own memory, read", False, "mapped"),
        Way("the device reads the host", True, "device"),
        Way("the device writes to the host", False, "device"),
    ]  # fmt: skip
    for way in ways:
        reads_by_engine = way.mechanism in ("zero-copy", "mapped") and not way.is_write
        if reads_by_engine and not bench.chip.pcie.dma_from_device.value:
            continue
        if way.mechanism == "mapped" and not bench.host.memory.has_iommu.value:
            continue
        for kind in KINDS:
            yield _row(way, kind, MB, bench.measure(way, kind, MB))


def _orderings(bench: PcieBench) -> Iterator[Row]:
    for mapping in get_args(Mapping):
        for ordering in get_args(Ordering):
            options = TransferOptions(ordering=ordering, mapping=mapping)
            name = f"{ordering} ordering, {mapping.replace('_', '-')}"
            for kind in KINDS:
                way = Way(name, is_static=True, options=options)
                yield _row(way, kind, MB, bench.measure(way, kind, MB))


def _windows(bench: PcieBench) -> Iterator[Row]:
    for size_bytes in (8 * MB, 64 * MB):
        for is_write in (True, False):
            for window_bytes in bench.windows_bytes:
                words = f"{_window_text(window_bytes)} windows, {'write' if is_write else 'read'}"
                way = Way(words, is_write, window_bytes=window_bytes)
                measured = bench.measure(way, "dram", size_bytes, 2)
                row = _row(way, "dram", size_bytes, measured)
                yield row | {"windows": measured.last.windows}


def _window_text(window_bytes: int) -> str:
    gb = window_bytes >> 30
    return f"{gb} GB" if gb else f"{window_bytes >> 20} MB"


def _hugepages(bench: PcieBench) -> Iterator[Row]:
    for has_hugepages in (False, True):
        if not has_hugepages and not bench.host.memory.has_iommu.value:
            continue  # nothing large is contiguous for the device then
        host = bench.host.with_hugepages(has_hugepages)
        cluster = HostCluster(host, [bench.chip], carries_data=False)
        size_bytes = 64 * MB
        map_time_ns = cluster.allocate_sysmem_buffer(0, size_bytes).map_time_ns
        way = Way(
            f"{'with' if has_hugepages else 'without'} hugepages, zero-copy DMA, posted, write",
            mechanism="zero-copy", options={"ordering": "posted"},
        )  # fmt: skip
        measured = bench.measure(way, "dram", size_bytes, 2, host)
        yield _row(way, "dram", size_bytes, measured) | {"map_time_us": map_time_ns / 1e3}


# --- causes switched off --------------------------------------------------------------------------


@dataclass(frozen=True)
class Cause:
    """An explanation in the document, compared with the model without its cause.

    Attributes:
        effect: the effect to be explained.
        cause: the document's explanation.
        size: size of the effect as a ratio, with the cause and without; 1 is no effect.
        numbers: the underlying values as text.
    """

    effect: str
    cause: str
    with_cause: float
    without_cause: float
    numbers: str

    @property
    def outcome(self) -> str:
        """The result for the effect without its cause, as text."""
        there, left = self.with_cause - 1, self.without_cause - 1
        if there < MATERIAL:
            return "is not there"
        if left < MATERIAL:
            return "disappears"
        return f"shrinks to {self.without_cause:.2f} x" if left < there - MATERIAL else "stays"


def causes(bench: PcieBench) -> list[Cause]:
    """The document's explanations, each with its cause and without it."""
    static = Way("", is_static=True)
    small = 4096

    def write(kind: str, size_bytes: int = MB, **setting: bool) -> float:
        way = Way("", is_static=True, setting=setting)
        return bench.measure(way, kind, size_bytes).mb_per_s

    def small_over_large(**setting: bool) -> float:
        return write("dram", small, **setting) / write("dram", **setting)

    plain, infinite = small_over_large(), small_over_large(limits_posted_writes=False)
    l1, dram = write("worker"), write("dram")
    free_l1, free_dram = write("worker", limits_noc=False), write("dram", limits_noc=False)
    found = [
        Cause("small writes are faster than large ones", "finitely many posted writes under way",
              plain, infinite,
              f"4 KB over 1 MB to DRAM: {plain:.2f} times; with infinitely many {infinite:.2f}"),
        Cause("DRAM is faster than L1", "the NoC", dram / l1, free_dram / free_l1,
              f"{dram:.0f} against {l1:.0f} MB/s; without its limit {free_dram:.0f} against "
              f"{free_l1:.0f}"),
    ]  # fmt: skip
    read = bench.measure(Way("", False, is_static=True), "dram", MB).mb_per_s
    by_engine = _fastest_read(bench)
    found.append(
        Cause("reads are slower than writes", "round trips of the processor, one by one",
              dram / read, dram / by_engine.mb_per_s,
              f"{dram:.0f} against {read:.0f} MB/s; moved by {_mover(by_engine)} "
              f"{by_engine.mb_per_s:.0f}")
    )  # fmt: skip
    posted = TransferOptions(ordering="posted")
    dma = bench.measure(Way("", mechanism="zero-copy", options=posted), "dram", MB).mb_per_s
    link = _link_mb_per_s(bench)
    found.append(
        Cause("writes stay far below the link", "the processor writes, not the DMA engine",
              link / dram, link / dma,
              f"{dram:.0f} of {link:.0f} MB/s; zero-copy DMA with posted writes {dma:.0f}")
    )  # fmt: skip
    dynamic = bench.measure(Way(""), "dram", small).mb_per_s
    fixed = bench.measure(static, "dram", small).mb_per_s
    free = _with_free_windows(bench.host)
    free_dynamic = bench.measure(Way(""), "dram", small, host=free).mb_per_s
    free_fixed = bench.measure(static, "dram", small, host=free).mb_per_s
    found.append(
        Cause("small transfers are faster through static windows", "windows cost time to configure",
              fixed / dynamic, free_fixed / free_dynamic,
              f"4 KB to DRAM: {fixed:.0f} against {dynamic:.0f} MB/s; were they free "
              f"{free_fixed:.0f} against {free_dynamic:.0f}")
    )  # fmt: skip
    return found


def _fastest_read(bench: PcieBench) -> Measurement:
    """The fastest read without a waiting processor: by the engine, or else by a core of
    the chip.
    """
    assert bench.chip.pcie is not None
    can = bench.chip.pcie.dma_from_device.value
    return bench.measure(Way("", False, "zero-copy" if can else "device"), "dram", MB)


def _mover(measured: Measurement) -> str:
    return "DMA" if measured.used == "DMA" else "a core of the device"


def _link_mb_per_s(bench: PcieBench) -> float:
    """Bandwidth of the link that remains next to the host's answers to the engine's reads."""
    way = Way("", mechanism="zero-copy", options={"ordering": "posted"},
              setting={"limits_noc": False})  # fmt: skip
    large = bench.measure(way, "dram", 64 * MB, 2).last
    rate = dict(large.parts)["bytes on their way"]
    return 64 / (rate / 1e9)


def _with_free_windows(host: HostSpec) -> HostSpec:
    driver = host.driver
    free = driver.window_time_ns.model_copy(update={"value": 0.0, "source": "switched off"})
    return host.model_copy(update={"driver": driver.model_copy(update={"window_time_ns": free})})


# --- over sizes, and one read in detail -----------------------------------------------------------


def sweep(bench: PcieBench, sizes_bytes: Sequence[int]) -> list[Row]:
    """Bandwidth over size for each method and target."""
    ways = [
        Way("static window, write", is_static=True),
        Way("dynamic window, write"),
        Way("static window, read", False, is_static=True),
        Way("dynamic window, read", False),
        Way("DMA, write", mechanism="DMA"),
        Way("zero-copy DMA, write", mechanism="zero-copy"),
        Way("zero-copy DMA, posted, write", mechanism="zero-copy", options={"ordering": "posted"}),
    ]
    rows = []
    for kind in KINDS:
        memory_bytes = MB if kind == "worker" else sizes_bytes[-1]
        for way in ways:
            for size_bytes in sizes_bytes:
                if size_bytes <= memory_bytes:
                    measured = bench.measure(way, kind, size_bytes)
                    rows.append(_row(way, kind, size_bytes, measured))
    return rows


@dataclass(frozen=True)
class SlowRead:
    """One read of 1 MB, with the breakdown of its time.

    Attributes:
        title: the memory, and the alignment of the buffer.
        time_us: total time.
        accesses: round trips, one after the other.
        parts: name, microseconds in total, nanoseconds of each round trip or 0.
    """

    title: str
    time_us: float
    accesses: int
    parts: list[tuple[str, float, float]]

    @property
    def mb_per_s(self) -> float:
        """Bandwidth with MB of 2^20 bytes."""
        return 1e6 / self.time_us


# Parts that are of the call, not of a round trip.
_ONCE = ("call", "allocating and configuring windows", "waiting for earlier writes")


def slow_reads(bench: PcieBench) -> list[SlowRead]:
    """One read of 1 MB through the driver, from each memory, with and without an aligned buffer."""
    reads = []
    for kind, target in KINDS.items():
        for misalignment_bytes in (0, MISALIGNMENT_BYTES):
            way = Way("", False, options={"misalignment_bytes": misalignment_bytes})
            last = bench.measure(way, kind, MB, 1).last
            parts = [
                (name, time_ns / 1e3, 0.0 if name in _ONCE else time_ns / last.accesses)
                for name, time_ns in last.parts
            ]
            place = "not on a line" if misalignment_bytes else "on a line"
            title = f"{target}, buffer {place}"
            reads.append(SlowRead(title, last.time_ns / 1e3, last.accesses, parts))
    return reads
