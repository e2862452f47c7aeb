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
from towpath.specs.host_spec import HostSpec
from towpath.studies.pcie_document import CHIP, HOST, MB
from towpath.studies.pcie_study import PcieBench, Way, causes, document_tables

Result = dict[str, Any]
_KIB = 1024


@lru_cache(maxsize=2)
def _bench() -> PcieBench:
    return PcieBench(catalogue.load_host(HOST), catalogue.load_chip(CHIP))


def _cluster(chip: str | ChipSpec = CHIP, **options: Any) -> HostCluster:
    return HostCluster(HOST if chip != "wormhole" else "n300-xeon-host", [chip], **options)


def _with(host: HostSpec, path: str, value: Any) -> HostSpec:
    """The host with another value of a parameter, such as "memory.has_iommu"."""
    block, _, name = path.partition(".")
    parameters = getattr(host, block)
    figure = getattr(parameters, name).model_copy(update={"value": value})
    return host.model_copy(update={block: parameters.model_copy(update={name: figure})})


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
_READS_MB_PER_S = 44
# Single cells that statements name.
_CELLS = (
    "static_dram_write_2",
    "static_dram_write_4",
    "static_dram_write_8192",
    "static_l1_write_1024",
    "static_dram_read_1024",
)


def tables() -> Result:
    """The four tables of the document, cell by cell."""
    found: Result = {}
    by_title = document_tables(_bench())
    for title, rows in by_title.items():
        key = _KEYS[title]
        for row in rows:
            size = row["size_bytes"] // _KIB
            found[f"{key}_write_{size}"] = row["write_mb_per_s"]
            found[f"{key}_read_{size}"] = row["read_misaligned_mb_per_s"]
        writes = [row["write_error_pct"] for row in rows]
        reads = [row["read_misaligned_error_pct"] for row in rows]
        if key != "static_dram":  # its cells are statements of their own
            found[f"{key}_write_worst"] = [max(map(abs, writes)), _percents(rows, writes)]
        found[f"{key}_read_worst"] = [max(map(abs, reads)), _percents(rows, reads)]
    reads_of_all = [value for key, value in found.items() if re.search("_read_[0-9]", key)]
    furthest = max(reads_of_all, key=lambda rate: abs(rate / _READS_MB_PER_S - 1))
    small = {
        size: found[f"static_l1_write_{size}"] / found[f"dynamic_l1_write_{size}"]
        for size in (2, 4, 8)
    }
    large = found["static_dram_write_1024"] / found["dynamic_dram_write_1024"]
    per_call_ns = {
        kind: 1e9 * 4 * _KIB / MB / found[f"{kind}_l1_write_4"] for kind in ("static", "dynamic")
    }
    return {
        **{name: found[name] for name in found if name.endswith("_worst")},
        **{name: found[name] for name in _CELLS},
        "dynamic_over_static_4k": found["static_dram_write_4"] / found["dynamic_dram_write_4"],
        "static_gain": [
            small[4],
            ", ".join(f"{gain:.2f} times at {size} KB" for size, gain in small.items()),
        ],
        "setup_ns": [
            per_call_ns["dynamic"] - per_call_ns["static"],
            f"{per_call_ns['dynamic']:.0f} and {per_call_ns['static']:.0f} ns per transfer",
        ],
        "large_alike": [large - 1, "1 MB to DRAM, static against dynamic windows"],
        "dram_over_l1": found["static_dram_write_1024"] / found["static_l1_write_1024"],
        "reads": [
            furthest,
            f"{len(reads_of_all)} cells, {min(reads_of_all):.1f} to {max(reads_of_all):.1f} MB/s",
        ],
        "figure_write": _table_figure(by_title, "write", "write_mb_per_s"),
        "figure_read": _table_figure(by_title, "read", "read_misaligned_mb_per_s"),
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
        "how": "Ten transfers in a row. Buffers of reads begin 16 bytes behind a line, as malloc's "
        "do from 128 KiB on.",
        "curves": curves,
    }


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
    odd = _sentence(lambda: cluster.configure_tlb(0, worker, 3 * MB, 0))
    taken = _sentence(lambda: _exhaust(worker))
    large = _bench().measure(Way("", window_bytes=2 * MB), "dram", 64 * MB, 2)
    huge = _bench().measure(Way("", window_bytes=4 << 30), "dram", 64 * MB, 2)
    return {
        "wormhole": [sizes["wormhole"] == [MB, 2 * MB, 16 * MB], str(sizes["wormhole"])],
        "blackhole": [sizes["blackhole"] == [2 * MB, 4 << 30], str(sizes["blackhole"])],
        "maps_memory": [bytes(back) == b"!hapwot!" * 8, "written through a window and read back"],
        "dynamic_is_per_transfer": [
            (first.windows, static.windows, again.windows) == (1, 0, 1),
            "each transfer configures a window, unless there is a static one",
        ],
        "16_mb_refused": ["has no windows of 16 MiB" in refused, refused],
        "3_mb_refused": ["has no windows of 3 MiB" in odd, odd],
        "finite": ["all windows of 2 MiB" in taken, taken],
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


def _dma_to_both() -> list[Any]:
    """True if the engine has moved bytes of the host's memory to L1 and to DRAM."""
    cluster = _cluster()
    buffer = cluster.allocate_sysmem_buffer(0, 4096)
    buffer.array[:] = 9
    arrived = {}
    for kind in ("worker", "dram"):
        core = cluster.core(0, kind)
        moved = buffer.dma_write_to_device(0, 4096, core, 0)
        cluster.flush()
        arrived[kind] = moved.used == "DMA" and cluster.memory(0, core, 0, 4096) == b"\x09" * 4096
    return [all(arrived.values()), f"4 KB are there: {arrived}"]


def _without_the_core(bench: PcieBench) -> list[Any]:
    """True if a processor that stores at a tenth of its rate slows stores down, and not the DMA."""
    rate = bench.host.core.store_rate_gb_per_s.value
    slow = _with(bench.host, "core.store_rate_gb_per_s", rate / 10)
    posted = Way("", mechanism="zero-copy", options={"ordering": "posted"})
    by_core, by_engine = (
        bench.measure(way, "dram", MB, host=slow).mb_per_s / bench.measure(way, "dram", MB).mb_per_s
        for way in (Way("", is_static=True), posted)
    )
    return [
        by_core < 0.9 and by_engine > 0.99,
        f"with a tenth of the store rate: stores {by_core:.0%}, DMA {by_engine:.0%}",
    ]


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
    l1 = {
        name: rate(mechanism=mechanism, kind="worker", **more) * MB / 1e9
        for name, mechanism, more in (
            ("through the bounce buffer", "DMA", {}),
            ("zero-copy", "zero-copy", {}),
            ("posted", "zero-copy", {"options": {"ordering": "posted"}}),
            ("zero-copy without the NoC's limit", "zero-copy", {"setting": {"limits_noc": False}}),
        )
    }
    without = bench.measure(
        Way("", mechanism="DMA", setting={"num_host_mem_ch_per_mmio_device": 0}), "dram", MB
    )
    by_stores = bench.measure(Way("", is_static=True), "dram", MB)
    tests = [
        bench.measure(Way("", mechanism=name), "dram", MB).used for name in ("zero-copy", "mapped")
    ]
    many_reads = rate(is_write=False, is_static=True)
    one_read = bench.measure(Way("", False, "device"), "dram", MB).mb_per_s
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
        "dma_l1": [
            l1["zero-copy"],
            ", ".join(f"{name} {value:.1f} GB/s" for name, value in l1.items()),
        ],
        "dma_reaches_both": _dma_to_both(),
        "cpu_only_initiates": _without_the_core(bench),
        "dma_passes_noc": [
            l1["zero-copy without the NoC's limit"] / l1["zero-copy"],
            "1 MB to L1 by the engine: without the NoC's limit over with it",
        ],
        "no_engine_in_mmio": [
            by_stores.asked == by_stores.used == "MMIO",
            ", ".join(name for name, _ in by_stores.last.parts),
        ],
        "falls_back": [without.used == "MMIO" and without.asked == "DMA", without.obstacle],
        "zero_copy_tests": [tests == ["DMA", "DMA"], str(tests)],
        "bulk_over_small": [one_read / many_reads, f"{one_read:.0f} against {many_reads:.0f} MB/s"],
        "generation": [link.generation.value == 5 and lanes == 16, "generation 5, 16 lanes"],
        "raw_gb_per_s": raw,
        "dma_read_1m": [
            1e3 * MB / engine_reads[1],
            f"{1e3 * _KIB / engine_reads[0]:.0f} MB/s for 1 KiB; the engine of a Wormhole",
        ],
    }


def explanations() -> Result:
    """The document's causes, each switched off."""
    names = ("", "dram_over_l1", "slow_reads", "no_dma", "")
    found: Result = {}
    for name, cause in zip(names, causes(_bench()), strict=True):
        if not name:
            continue  # not a subject of a statement
        gone = cause.without_cause - 1 < (cause.with_cause - 1) / 2
        found[name] = [cause.with_cause > 1.05 and gone, f"{cause.numbers}: {cause.outcome}"]
    return found


def reads() -> Result:
    """Loads of the processor: round trips, one after the other."""
    bench = _bench()
    last = bench.measure(Way("", False, is_static=True), "dram", MB, 1).last
    trip_ns = last.time_ns / last.accesses
    cluster = _cluster("wormhole", carries_data=False)
    core = cluster.core(0, "dram")
    cluster.configure_tlb(0, core, 2 * MB, 0, mapping="uncached")
    data = np.empty(MB, np.uint8)
    words = cluster.read_from_device(data, 0, core, 0, mapping="uncached")
    write = bench.measure(Way("", is_static=True), "dram", MB).mb_per_s
    streamed = bench.measure(
        Way("", False, is_static=True, options={"load": "stream", "mapping": "write_combining"}),
        "dram",
        MB,
    ).mb_per_s
    return {
        "round_trip_ns": trip_ns,
        "overlap_gain": [
            streamed * MB * last.time_ns / 1e9 / MB,
            f"1 MB in {last.time_ns / 1e6:.1f} ms one load after the other; {streamed:.0f} MB/s "
            "with 16 under way",
        ],
        "accesses_4": words.accesses,
        "time_4_ms": words.time_ns / 1e6,
        "rate_4": 1e9 / words.time_ns,
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
    cluster.configure_tlb(0, core, 2 * MB, 0)
    small = cluster.write_to_device(b"\x01" * 64, 0, core, 0)
    returned_ns = cluster.now_ns
    cluster.flush()
    on_way_ns = cluster.now_ns - returned_ns
    read = cluster.read_from_device(bytearray(64), 0, core, 0)
    return {
        "device_writes": [arrived and out.time_ns > 0, "a core writes 4 KB into the host's memory"],
        "posted": [
            on_way_ns > 0 and small.time_ns < read.time_ns / 2,
            f"a write returns after {small.time_ns:.0f} ns, {on_way_ns:.0f} before its bytes "
            f"arrive; a read after {read.time_ns:.0f}",
        ],
    }


def harvesting() -> Result:
    """The chip of the document, with its masks."""
    chip = catalogue.load_chip(CHIP)
    harvested = chip.with_masks("tensix=0x1020, dram=0x8, eth=0x3fff")
    cluster = _cluster(harvested, carries_data=False)
    workers = {cluster.core(0, "worker", n)[0] for n in range(120)}
    none = _sentence(lambda: cluster.core(0, "ethernet"))
    core = chip.tiles.ethernet[0]
    access = _sentence(lambda: cluster.write_to_device(bytes(64), 0, core, 0))
    whole = _sentence(lambda: _cluster().write_to_device(bytes(64), 0, core, 0))
    return {
        "opens": [len(workers) == 12, f"workers in columns {sorted(workers)}"],
        "no_ethernet": ["it has none left (harvest mask 0x3fff)" in none, none],
        "refused": [whole == "" and "which has no memory" in access, access],
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
    none, four = (
        bench.measure(
            Way("", mechanism="DMA", setting={"num_host_mem_ch_per_mmio_device": channels}),
            "dram",
            MB,
        )
        for channels in (0, 4)
    )
    zero_copy = Way("", mechanism="zero-copy", options={"ordering": "posted"})
    translated = [
        bench.measure(zero_copy, "dram", size, 2, bench.host.with_hugepages(has)).mb_per_s
        for has in (False, True)
    ]
    return {
        "hugepages_map": [
            map_plain / map_huge,
            f"{map_plain / 1e3:.0f} and " f"{map_huge / 1e3:.0f} us to pin and map 64 MB",
        ],
        "translation": [
            translated[1] / translated[0] - 1,
            f"{translated[0]:.0f} and {translated[1]:.0f} MB/s",
        ],
        "four_channels": [
            (none.used, four.used) == ("MMIO", "DMA"),
            f"without channels {none.used} with {none.mb_per_s:.0f} MB/s, with four {four.used} "
            f"with {four.mb_per_s:.0f}",
        ],
        "engine_channels": [
            pcie.dma_channels.value > host.driver.dma_channels.value,
            f"the chip has {pcie.dma_channels.value} channels, the driver uses "
            f"{host.driver.dma_channels.value}",
        ],
    }


def iommu() -> Result:
    """Memory of a program, mapped for the device by a host with and without an IOMMU."""
    bench = _bench()
    program = np.zeros(MB, np.uint8)
    cluster = _cluster()
    accepted = _sentence(lambda: cluster.map_sysmem_buffer(0, program))
    no_iommu = _with(bench.host, "memory.has_iommu", False)
    refused = _sentence(lambda: HostCluster(no_iommu, [bench.chip]).map_sysmem_buffer(0, program))
    return {"needed": ["IOMMU" in refused and accepted == "", accepted or refused]}
