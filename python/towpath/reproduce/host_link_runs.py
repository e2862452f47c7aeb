# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Document 002: windows, stores, loads and the DMA engine of a host link."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from towpath.errors import TowpathError
from towpath.host.host_cluster import HostCluster
from towpath.specs import catalogue
from towpath.specs.chip_spec import ChipSpec
from towpath.studies.pcie_document import CHIP, HOST, MB
from towpath.studies.pcie_study import PcieBench, Way, causes, document_tables

Result = dict[str, Any]
_KIB = 1024


@lru_cache(maxsize=2)
def _bench() -> PcieBench:
    return PcieBench(catalogue.load_host(HOST), catalogue.load_chip(CHIP))


def _cluster(chip: str | ChipSpec = CHIP, **options: Any) -> HostCluster:
    return HostCluster(HOST if chip != "wormhole" else "n300-xeon-host", [chip], **options)


def _sentence(call: Callable[[], object]) -> str:
    """The error of a call, or an empty text."""
    try:
        call()
    except (TowpathError, ValueError) as error:
        return str(error)
    return ""


_KEYS = {
    "Dynamic windows, DRAM": "dynamic_dram",
    "Dynamic windows, L1": "dynamic_l1",
    "Static windows, DRAM": "static_dram",
    "Static windows, L1": "static_l1",
}


def tables() -> Result:
    """The four tables of the document, cell by cell."""
    found: Result = {}
    by_title = document_tables(_bench())
    for title, rows in by_title.items():
        key = _KEYS[title]
        for row in rows:
            size = row["size_bytes"] // _KIB
            found[f"{key}_write_{size}"] = row["write_mb_per_s"]
            found[f"{key}_read_{size}"] = _nearer(row)
        writes = [row["write_error_pct"] for row in rows]
        reads = [100 * (_nearer(row) / row["document_read_mb_per_s"] - 1) for row in rows]
        found[f"{key}_write_worst"] = [max(map(abs, writes)), _percents(rows, writes)]
        found[f"{key}_read_worst"] = [max(map(abs, reads)), _percents(rows, reads)]
    reads_of_all = [value for key, value in found.items() if re.search("_read_[0-9]", key)]
    small = [found[f"static_l1_write_{n}"] / found[f"dynamic_l1_write_{n}"] for n in (4, 8)]
    large = found["static_dram_write_1024"] / found["dynamic_dram_write_1024"]
    return {
        **found,
        "dynamic_over_static_4k": found["static_dram_write_4"] / found["dynamic_dram_write_4"],
        "static_gain": [
            min(small),
            f"L1: {small[0]:.2f} times at 4 KB, {small[1]:.2f} times at 8 KB",
        ],
        "large_alike": [large - 1, "1 MB to DRAM, static against dynamic windows"],
        "dram_over_l1": found["static_dram_write_1024"] / found["static_l1_write_1024"],
        "share_of_link": found["static_dram_write_8192"] * MB / 64e9,
        "reads_least": min(reads_of_all),
        "reads_most": max(reads_of_all),
        "figure_write": _table_figure(by_title, "write", "write_mb_per_s"),
        "figure_read": _table_figure(by_title, "read", "read_aligned_mb_per_s"),
    }


def _table_figure(
    tables: dict[str, list[dict[str, Any]]], kind: str, column: str
) -> dict[str, Any]:
    curves = []
    for title, rows in tables.items():
        sizes = [float(row["size_bytes"]) for row in rows]
        ours = [float(row[column]) for row in rows]
        theirs = [float(row[f"document_{kind}_mb_per_s"]) for row in rows]
        curves += [
            {"name": f"ours, {title.lower()}", "x": sizes, "y": ours},
            {"name": f"document, {title.lower()}", "x": sizes, "y": theirs, "style": "points"},
        ]
    return {
        "title": f"Host link, {kind}s by size",
        "x": "size",
        "y": "MB/s",
        "y_scale": "log",
        "how": "Ten transfers in a row. Buffers of reads begin on a line.",
        "curves": curves,
    }


def _nearer(row: dict[str, Any]) -> float:
    """A read into a buffer on a line or not, the one that is nearer to the document's value."""
    name = "read_aligned_mb_per_s" if row["aligned_is_nearer"] else "read_misaligned_mb_per_s"
    return float(row[name])


def _percents(rows: list[dict[str, Any]], errors: list[float]) -> str:
    return ", ".join(
        f"{row['size_bytes'] // _KIB} KB {error:+.1f} %"
        for row, error in zip(rows, errors, strict=True)
    )


def windows() -> Result:
    """Sizes of windows, and transfers within them, across them and without them."""
    sizes: dict[str, list[int]] = {}
    for name in ("wormhole", "blackhole"):
        pcie = catalogue.load_chip(name).pcie
        assert pcie is not None
        sizes[name] = [window.size_bytes.value for window in pcie.windows]
    cluster = _cluster()
    worker = cluster.core(0, "worker")
    first = cluster.write_to_device(b"towpath!" * 8, 0, worker, 64)
    number = cluster.configure_tlb(0, worker, 2 * MB, 0)
    static = cluster.write_to_device(b"!hapwot!" * 8, 0, worker, 64)
    back = bytearray(64)
    cluster.read_from_device(back, 0, worker, 64)
    cluster.free_tlb(0, number)
    again = cluster.write_to_device(bytes(64), 0, worker, 64)
    refused = _sentence(lambda: cluster.configure_tlb(0, worker, 16 * MB, 0))
    taken = _sentence(lambda: _exhaust(worker))
    large = _bench().measure(Way("", window_bytes=2 * MB), "dram", 64 * MB, 2)
    huge = _bench().measure(Way("", window_bytes=4 << 30), "dram", 64 * MB, 2)
    return {
        "wormhole": [sizes["wormhole"] == [MB, 2 * MB, 16 * MB], str(sizes["wormhole"])],
        "blackhole": [sizes["blackhole"] == [2 * MB, 4 << 30], str(sizes["blackhole"])],
        "maps_memory": [bytes(back) == b"!hapwot!" * 8, "written through a window and read back"],
        "dynamic_is_per_transfer": [
            first.windows == 1 and again.windows == 1,
            "each transfer configures a window",
        ],
        "static_is_reused": [static.windows == 0, "a transfer within the window configures none"],
        "setup_ns": first.time_ns - static.time_ns,
        "16_mb_refused": ["has no windows of 16 MiB" in refused, refused],
        "finite": ["" != taken, taken],
        "chunks_2_mb": [large.last.windows, "windows for 64 MB in steps of 2 MB"],
        "chunks_4_gb": [huge.last.windows, "windows for 64 MB with a window of 4 GB"],
        "chunking_costs": [
            large.mb_per_s / huge.mb_per_s - 1,
            f"{large.mb_per_s:.0f} and {huge.mb_per_s:.0f} MB/s",
        ],
    }


def _exhaust(worker: tuple[int, int]) -> None:
    cluster = _cluster(carries_data=False)
    for _ in range(2000):
        cluster.configure_tlb(0, worker, 2 * MB, 0)


def mechanisms() -> Result:
    """Stores and loads of the processor against the DMA engine and the device."""
    bench = _bench()

    def rate(**options: Any) -> float:
        kind = options.pop("kind", "dram")
        size = options.pop("size", MB)
        return bench.measure(Way("", **options), kind, size).mb_per_s

    combined = rate(is_static=True)
    uncached = rate(is_static=True, options={"mapping": "uncached"})
    posted = {"options": {"ordering": "posted"}, "mechanism": "zero-copy"}
    dma = rate(**posted, size=64 * MB) * MB / 1e9
    bounce_l1 = rate(mechanism="DMA", kind="worker") * MB / 1e9
    zero_l1 = rate(mechanism="zero-copy", kind="worker") * MB / 1e9
    bounce_dram = rate(mechanism="DMA") * MB / 1e9
    without = bench.measure(
        Way("", mechanism="DMA", setting={"num_host_mem_ch_per_mmio_device": 0}), "dram", MB
    )
    ddma = bench.measure(Way("", mechanism="zero-copy"), "worker", MB)
    parts = dict(bench.measure(Way("", is_static=True), "dram", MB).last.parts)
    no_engine = all("engine" not in name and "DMA" not in name for name in parts)
    tests = [
        bench.measure(Way("", mechanism=name), "dram", MB).used for name in ("zero-copy", "mapped")
    ]
    many_reads = rate(is_write=False, is_static=True)
    one_read = bench.measure(Way("", False, "device"), "dram", MB).mb_per_s
    cluster = _cluster()
    buffer = cluster.allocate_sysmem_buffer(0, 4096)
    buffer.array[:] = 9
    core = cluster.core(0, "worker")
    moved = buffer.dma_write_to_device(0, 4096, core, 0)
    touched = cluster.memory(0, core, 0, 4) == b"\x09" * 4
    link = catalogue.load_host(HOST).link
    lanes = link.lanes.value
    n300 = PcieBench(catalogue.load_host("n300-xeon-host"), catalogue.load_chip("wormhole"))
    engine_reads = [
        n300.measure(Way("", False, "DMA"), "dram", size, 1).last.time_ns for size in (_KIB, MB)
    ]
    raw = {3: 8, 4: 16, 5: 32}[link.generation.value] * lanes / 8
    return {
        "combining_helps": [combined / uncached, f"{combined:.0f} against {uncached:.0f} MB/s"],
        "dma_gb_per_s": dma,
        "dma_l1": [bounce_l1, f"through the bounce buffer; {zero_l1:.1f} GB/s without it"],
        "dma_dram": bounce_dram,
        "dma_reaches_both": [moved.used == "DMA" and touched and ddma.used == "DMA", "DRAM and L1"],
        "cpu_only_initiates": [moved.used == "DMA" and touched, "the engine reads the buffer"],
        "no_engine_in_mmio": [no_engine, ", ".join(parts)],
        "falls_back": [without.used == "MMIO" and without.asked == "DMA", without.obstacle],
        "zero_copy_tests": [tests == ["DMA", "DMA"], str(tests)],
        "bulk_over_small": [one_read / many_reads, f"{one_read:.0f} against {many_reads:.0f} MB/s"],
        "generation": [link.generation.value == 5 and lanes == 16, "generation 5, 16 lanes"],
        "raw_gb_per_s": raw,
        "dma_read_1k": [
            1e3 * _KIB / engine_reads[0],
            f"{1e3 * MB / engine_reads[1]:.0f} MB/s for 1 MiB",
        ],
    }


def explanations() -> Result:
    """The document's causes, each switched off."""
    names = ("small_writes", "dram_over_l1", "slow_reads", "no_dma", "static_windows")
    found: Result = {}
    for name, cause in zip(names, causes(_bench()), strict=True):
        gone = cause.without_cause - 1 < (cause.with_cause - 1) / 2
        found[name] = [cause.with_cause > 1.05 and gone, f"{cause.numbers}: {cause.outcome}"]
    return found


def reads() -> Result:
    """Loads of the processor: round trips, one after the other."""
    bench = _bench()
    last = bench.measure(Way("", False, is_static=True), "dram", MB, 1).last
    trip_ns = last.time_ns / last.accesses
    parts = dict(last.parts)
    latency = sum(value for name, value in parts.items() if "configur" not in name)
    cluster = _cluster("wormhole", carries_data=False)
    core = cluster.core(0, "dram")
    cluster.configure_tlb(0, core, 2 * MB, 0, mapping="uncached")
    data = np.empty(MB, np.uint8)
    words = cluster.read_from_device(data, 0, core, 0, mapping="uncached")
    write = bench.measure(Way("", is_static=True), "dram", MB).mb_per_s
    read = MB / MB * 1e9 / last.time_ns
    streamed = bench.measure(
        Way("", False, is_static=True, options={"load": "stream", "mapping": "write_combining"}),
        "dram",
        MB,
    ).mb_per_s
    others = {}
    for host in ("n300-xeon-host", "ryzen-host"):
        other = PcieBench(catalogue.load_host(host), catalogue.load_chip("wormhole"))
        rates = [
            other.measure(Way("", is_write, is_static=True), "dram", MB).mb_per_s
            for is_write in (True, False)
        ]
        others[host] = rates[0] / rates[1]
    return {
        "other_hosts": [
            min(others.values()),
            ", ".join(f"{host} {ratio:.0f}" for host, ratio in others.items()),
        ],
        "round_trip_ns": trip_ns,
        "latency_share": [latency / last.time_ns, "share of round trips in the time of a read"],
        "accesses_4": words.accesses,
        "time_4_ms": words.time_ns / 1e6,
        "rate_4": 1e9 / words.time_ns,
        "asymmetry": [write / read, f"{write:.0f} against {read:.1f} MB/s"],
        "one_by_one": [
            abs(last.accesses * trip_ns / last.time_ns - 1) < 0.01,
            f"{last.accesses} loads of a line, one after the other",
        ],
        "prefetching": [
            streamed / write,
            f"{streamed:.0f} MB/s with 16 loads under way, {write:.0f} MB/s written",
        ],
    }


def device() -> Result:
    """Transfers that a core of the chip initiates, and posted writes."""
    cluster = _cluster()
    core = cluster.core(0, "worker")
    buffer = cluster.allocate_sysmem_buffer(0, 8192)
    cluster.write_to_device(b"\x05" * 4096, 0, core, 0)
    cluster.flush()
    out = buffer.noc_write(0, 4096, core, 0)
    cluster.flush()
    arrived = bool((buffer.array[:4096] == 5).all())
    begin = cluster.now_ns
    small = cluster.write_to_device(b"\x01" * 64, 0, core, 0)
    returned = cluster.now_ns - begin
    read = cluster.read_from_device(bytearray(64), 0, core, 0)
    return {
        "device_writes": [arrived and out.time_ns > 0, "a core writes 4 KB into the host's memory"],
        "posted": [
            returned < read.time_ns + small.windows * 1000,
            f"a write returns after {small.time_ns:.0f} ns, a read after {read.time_ns:.0f}",
        ],
    }


def harvesting() -> Result:
    """The chip of the document, with its masks."""
    chip = catalogue.load_chip(CHIP)
    harvested = chip.with_masks("tensix=0x1020, dram=0x8, eth=0x3fff")
    cluster = _cluster(harvested, carries_data=False)
    workers = {cluster.core(0, "worker", n)[0] for n in range(120)}
    none = _sentence(lambda: cluster.core(0, "ethernet"))
    access = _sentence(lambda: cluster.write_to_device(bytes(64), 0, chip.tiles.ethernet[0], 0))
    return {
        "opens": [len(workers) == 12, f"workers in columns {sorted(workers)}"],
        "no_ethernet": [none != "", none],
        "refused": [access != "", access],
    }


def memory() -> Result:
    """Host memory: IOMMU, hugepages, channels."""
    bench = _bench()
    host, pcie = bench.host, bench.chip.pcie
    assert pcie is not None
    plain, huge = (
        HostCluster(bench.host.with_hugepages(has), [bench.chip], carries_data=False)
        for has in (False, True)
    )
    size = 64 * MB
    map_plain, map_huge = (
        cluster.allocate_sysmem_buffer(0, size).map_time_ns for cluster in (plain, huge)
    )
    program = np.zeros(MB, np.uint8)
    cluster = _cluster()
    mapped = cluster.map_sysmem_buffer(0, program)
    moved = mapped.dma_write_to_device(0, 4096, cluster.core(0, "dram"), 0)
    rates = [
        bench.measure(
            Way("", mechanism="DMA", setting={"num_host_mem_ch_per_mmio_device": channels}),
            "dram",
            MB,
        ).mb_per_s
        for channels in (1, 4)
    ]
    no_iommu = bench.host.model_copy(
        update={
            "memory": bench.host.memory.model_copy(
                update={
                    "has_iommu": bench.host.memory.has_iommu.model_copy(update={"value": False})
                }
            )
        }
    )
    refused = _sentence(lambda: HostCluster(no_iommu, [bench.chip]).map_sysmem_buffer(0, program))
    zero_copy = Way("", mechanism="zero-copy", options={"ordering": "posted"})
    translated = [
        bench.measure(zero_copy, "dram", size, 2, bench.host.with_hugepages(has)).mb_per_s
        for has in (False, True)
    ]
    return {
        "iommu": ["" != refused, refused],
        "mapped": [moved.used == "DMA", "memory of the program, without a copy"],
        "hugepages_map": [
            map_plain / map_huge,
            f"{map_plain / 1e3:.0f} and " f"{map_huge / 1e3:.0f} us to pin and map 64 MB",
        ],
        "translation": [
            translated[1] / translated[0] - 1,
            f"{translated[0]:.0f} and {translated[1]:.0f} MB/s",
        ],
        "four_channels": [rates[1] / rates[0] - 1, f"{rates[0]:.0f} and {rates[1]:.0f} MB/s"],
        "engine_channels": [
            pcie.dma_channels.value > host.driver.dma_channels.value,
            f"the chip has {pcie.dma_channels.value} channels, the driver uses "
            f"{host.driver.dma_channels.value}",
        ],
    }
