# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Document 001: traffic on one and several virtual channels, with the conditions it names."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from itertools import pairwise
from statistics import mean
from typing import Any

from towpath.reproduce.core_programs import core
from towpath.reproduce.documents import document
from towpath.specs import catalogue
from towpath.studies.noc_findings import findings
from towpath.studies.noc_study import StudyRequest, measure_point, study_parts
from towpath.studies.noc_traffic import shape_of

Result = dict[str, Any]
Row = dict[str, Any]
_CHIPS = ("wormhole", "blackhole")
_KIB = 1024


@lru_cache(maxsize=8)
def _spec_json(chip: str, changes: tuple[tuple[str, int], ...] = ()) -> str:
    spec = catalogue.load_chip(chip)
    if changes:
        router = spec.router.model_copy(
            update={
                name: getattr(spec.router, name).model_copy(update={"value": value})
                for name, value in changes
            }
        )
        spec = spec.model_copy(update={"router": router})
    return spec.model_dump_json()


def _rate(
    chip: str,
    pattern: str,
    size_bytes: int,
    vcs: int,
    *,
    noc: int = 0,
    transactions: int = 16,
    turned: bool = False,
    changes: tuple[tuple[str, int], ...] = (),
) -> float:
    """Median bytes per cycle of a master."""
    shape = shape_of(catalogue.load_chip(chip))
    point = {
        "experiment": "bandwidth",
        "pattern": pattern,
        "noc": noc,
        "size_bytes": size_bytes,
        "vcs": vcs,
        "turned": turned,
        "per_destination": transactions,
        "asked_per_destination": transactions,
        "grid": f"{shape.columns}x{shape.rows}",
        "seed": 1,
    }
    return float(measure_point(_spec_json(chip, changes), point)["bandwidth_bytes_per_cycle"])


def _change(chip: str, pattern: str, size_bytes: int, vcs: int, **options: Any) -> float:
    """Relative change of bandwidth from one to several VCs."""
    several = _rate(chip, pattern, size_bytes, vcs, **options)
    return several / _rate(chip, pattern, size_bytes, 1, **options) - 1


def facts() -> Result:
    """Networks, channels, flits and pages of both chips."""
    wormhole, blackhole = (catalogue.load_chip(name) for name in _CHIPS)
    both = core(
        "noc_async_write(0x20000, get_noc_addr(2, 2, 0x20000), 64, 0); noc_async_write_barrier(0);"
        "noc_async_write(0x20000, get_noc_addr(2, 2, 0x20000), 64, 1); noc_async_write_barrier(1);"
    )
    router = wormhole.router
    return {
        "networks": [both.run is not None, "a kernel writes over NoC 0 and NoC 1"],
        "virtual_channels": 2 * 2 * 4,
        "classes": router.classes.value,
        "packet_flits": router.packet_data_flits_max.value + 1,
        "dateline": router.has_dateline,
        "page_wormhole": router.flit_bytes.value,
        "page_blackhole": blackhole.router.flit_bytes.value,
        "pool": [
            3 * router.pool_flits_per_vc_max.value <= router.pool_flits.value,
            f"{router.pool_flits.value} flits, with at most "
            f"{router.pool_flits_per_vc_max.value}",
        ],
    }


def alone() -> Result:
    """Patterns in which VCs have nothing to separate, over sizes, on both NoCs and chips."""
    found: Result = {}
    for chip in _CHIPS:
        for pattern in ("one_to_one", "one_to_all", "one_from_one", "one_from_all", "loopback"):
            changes = {
                (noc, size, vcs): _change(chip, pattern, size, vcs, noc=noc, transactions=8)
                for noc in (0, 1)
                for size in (64, 2 * _KIB, 8 * _KIB)
                for vcs in (2, 4)
            }
            worst = max(changes, key=lambda place: abs(changes[place]))
            text = f"NoC {worst[0]}, {worst[1]} B, {worst[2]} VCs: {changes[worst]:+.1%}"
            found[f"{chip}_{pattern}"] = [abs(changes[worst]), text]
    return found


def together() -> Result:
    """All to all: the mean change with 2, 3 and 4 VCs, and curves over the size."""
    found: Result = {}
    for chip, sizes in (("wormhole", (64, 512, _KIB, 4 * _KIB)), ("blackhole", (512, 2 * _KIB))):
        rates = {
            (vcs, size): _rate(chip, "all_to_all", size, vcs, transactions=8)
            for vcs in (1, 2, 3, 4)
            for size in sizes
        }
        for vcs in (2, 3, 4):
            changes = [rates[vcs, size] / rates[1, size] - 1 for size in sizes]
            text = ", ".join(
                f"{size} B {change:+.0%}" for size, change in zip(sizes, changes, strict=True)
            )
            found[f"{chip}_{vcs}"] = [mean(changes), text]
        at_4k = rates.get((2, 4 * _KIB))
        if at_4k is not None:
            found[f"{chip}_2_at_4k"] = [
                at_4k / rates[1, 4 * _KIB] - 1,
                f"in the mean {found[f'{chip}_2'][0]:+.1%}",
            ]
        found[f"{chip}_worst"] = min(found[f"{chip}_{vcs}"][0] for vcs in (2, 3, 4))
        found[f"{chip}_ordered"] = [
            found[f"{chip}_4"][0] < found[f"{chip}_3"][0] < found[f"{chip}_2"][0],
            ", ".join(f"{vcs} VCs {found[f'{chip}_{vcs}'][0]:+.1%}" for vcs in (2, 3, 4)),
        ]
        found[f"figure_{chip}"] = _figure(f"All to all on {chip}, NoC 0", rates, sizes)
    return found


def _figure(
    title: str, rates: dict[tuple[int, int], float], sizes: Iterable[int]
) -> dict[str, Any]:
    own = list(sizes)
    vcs_of = sorted({vcs for vcs, _ in rates})
    return {
        "title": title,
        "how": "Median of the masters.",
        "x": "size",
        "y": "B/cycle",
        "curves": [
            {
                "name": f"{vcs} VC{'s' if vcs > 1 else ''}",
                "x": list(map(float, own)),
                "y": [rates[vcs, size] for size in own],
            }
            for vcs in vcs_of
        ],
    }


def irregular() -> Result:
    """Losses from a size to the next larger one, in writes and reads of all cores."""
    found: Result = {}
    sizes = (128, 256, 512, _KIB, 2 * _KIB)
    for pattern in ("all_to_all", "all_from_all"):
        rates = {
            (vcs, size): _rate("wormhole", pattern, size, vcs, transactions=8)
            for vcs in (1, 3)
            for size in sizes
        }
        steps = [rates[vcs, b] / rates[vcs, a] - 1 for vcs in (1, 3) for a, b in pairwise(sizes)]
        dips = sum(step < -0.05 for step in steps)
        found[pattern] = [
            dips / len(steps),
            f"a larger size loses 5 % or more in {dips} of "
            f"{len(steps)} steps, at worst {min(steps):+.0%}",
        ]
        found[f"figure_{pattern}"] = _figure(
            f"{pattern.replace('_', ' ').capitalize()} on wormhole, NoC 0", rates, sizes
        )
    change = _change("wormhole", "all_from_all", 512, 4, transactions=8)
    found["reads_of_all"] = [change, "all from all, 512 B, 4 VCs against one"]
    return found


def few_transactions() -> Result:
    """Four transactions to each destination, on NoC 0: where the bandwidth drops, and its cure."""
    found: Result = {}
    for chip, beyond, sizes in (
        ("wormhole", 4096, (512, _KIB, 2 * _KIB, 4 * _KIB, 8 * _KIB)),
        ("blackhole", 2048, (512, 2 * _KIB, 4 * _KIB)),
    ):
        plain = {size: _rate(chip, "all_to_all", size, 4, transactions=4) for size in sizes}
        turned = {
            size: _rate(chip, "all_to_all", size, 4, transactions=4, turned=True) for size in sizes
        }
        after = min(rate for size, rate in plain.items() if size > beyond)
        low = min(plain, key=lambda size: plain[size])
        text = ", ".join(f"{size} B {rate:.2f}" for size, rate in plain.items())
        found[f"{chip}_drop_beyond"] = [after / plain[beyond] - 1, text]
        found[f"{chip}_drop_anywhere"] = [
            plain[low] / max(rate for size, rate in plain.items() if size <= low) - 1,
            text,
        ]
        found[f"{chip}_cure"] = [
            turned[low] / plain[low] - 1,
            f"{plain[low]:.2f} become {turned[low]:.2f} B/cycle at {low} B",
        ]
        found[f"figure_{chip}"] = {
            "title": f"Four transactions to each, {chip}, NoC 0",
            "how": "",
            "x": "size",
            "y": "B/cycle",
            "curves": [
                {"name": name, "x": list(map(float, sizes)), "y": [rates[s] for s in sizes]}
                for name, rates in (("same order", plain), ("turned", turned))
            ],
        }
    size = 8 * _KIB
    one = [_rate("wormhole", "one_to_all", each, 4, transactions=4) for each in (4 * _KIB, size)]
    found["one_to_all"] = [one[1] / one[0] - 1, "one to all, 8 KiB against 4 KiB"]
    return found


def follow_ups() -> Result:
    """Classes of traffic, flow control, throttling and stalled channels on Wormhole."""
    spec = catalogue.load_chip("wormhole")
    shape = shape_of(spec)
    request = StudyRequest(patterns=(), sizes_bytes=(), nocs=(0,), vcs=(1, 4), has_study=False)
    parts = study_parts(shape, request)
    wanted = ("flow_control", "classes", "throttle", "stalled_vcs")
    text = spec.model_dump_json()
    rows = {
        part: [{**point, **measure_point(text, point)} for point in parts[part]] for part in wanted
    }
    found: Result = {}
    for finding in findings(rows, shape):
        found[finding.name] = [finding.shown, "; ".join(finding.numbers)]
    latency = {
        row["placement"]: row["latency_median_cycles"]
        for row in rows["flow_control"]
        if row["message"] == "atomic"
    }
    found["messages_gain"] = [
        latency["data_vc"] / latency["own_vc"],
        f"{latency['own_vc']} cycles on a VC of their own, "
        f"{latency['data_vc']} behind data, {latency['alone']} without data",
    ]
    stalled = {row["stalled"]: row["bandwidth_bytes_per_cycle"] for row in rows["stalled_vcs"]}
    found["stalled_rate"] = _stalled_rate()
    found["two_stalled"] = [stalled[2] / stalled[0], "rate with two stalled VCs"]
    late = [
        row
        for row in rows["throttle"]
        if row["vcs"] == 1
        and row["bandwidth_bytes_per_cycle"] < 0.95 * row["offered_bytes_per_cycle"]
    ]
    found["onset_share"] = [
        min(row["offered_bytes_per_cycle"] for row in late) / shape.flit_bytes,
        "offered load of a core at the onset, of a link",
    ]
    return found


def _stalled_rate() -> list[Any]:
    """Flits per cycle of a VC that shares its links with three stalled ones, on Blackhole."""
    shape = shape_of(catalogue.load_chip("blackhole"))
    point = {
        "experiment": "stalled_vcs",
        "noc": 0,
        "stalled": 3,
        "rows": shape.rows,
        "grid": f"{shape.columns}x{shape.rows}",
        "seed": 1,
    }
    rate = measure_point(_spec_json("blackhole"), point)["bandwidth_bytes_per_cycle"]
    return [
        rate / shape.flit_bytes,
        f"flits per cycle, each stalled VC at 1/" f"{2 ** (shape.rows - 2)} of a link",
    ]


def causes() -> Result:
    """The shared pool without its limit: every VC has the whole of it."""
    wide = (("pool_flits", 1024), ("pool_flits_per_vc_max", 120))
    with_cause = _change("wormhole", "all_to_all", _KIB, 4, transactions=8)
    without = _change("wormhole", "all_to_all", _KIB, 4, transactions=8, changes=wide)
    return {
        "pool": [
            without > with_cause + 0.05,
            f"4 VCs, 1 KiB: {with_cause:+.0%} with the shared "
            f"pool, {without:+.0%} with room for all",
        ],
        "gain": [without, "4 VCs against one, 1 KiB, with room for all"],
    }


def whole() -> Result:
    """256 transactions to each destination, as in the document's kernels, for 64 B."""
    change = _change("wormhole", "all_to_all", 64, 4, transactions=256)
    reads = _change("wormhole", "one_from_all", 8 * _KIB, 4, transactions=256)
    return {
        "change": [change, "all to all, 64 B, 4 VCs against one, NoC 0"],
        "one_from_all": [reads, "one from all, 8 KiB, 4 VCs against one, NoC 0"],
    }


def snippet() -> Result:
    """The document's own lines, inside a kernel of every worker."""
    from towpath.kernels.chip_kernel import SourceKernel
    from towpath.reproduce.core_programs import run

    lines = document("001").partition("```c++")[2].partition("```")[0]
    workers = catalogue.load_chip("wormhole").worker_grid()
    count = workers[0] * workers[1]
    body = (
        '#include "dataflow_api.h"\nvoid kernel_main() {\n'
        "const uint32_t num_virtual_channels = 4, num_subordinates = DESTINATIONS;\n"
        "const uint32_t my_x = COLUMN, my_y = ROW;\n"
        "uint32_t subordinate_x_coord, subordinate_y_coord;\n"
        "for (uint32_t j = 0; j < num_subordinates; ++j) for (uint32_t i = 0; i < 4; ++i) {\n"
        f"{lines}"
        "noc_async_write(0x20000, get_noc_addr(subordinate_x_coord, subordinate_y_coord, 0x40000),"
        " 512, 0, current_virtual_channel);\n}\nnoc_async_write_barrier();\n}\n"
    )
    tiles = [(x, y) for y in range(1, 12) if y not in (5, 6, 11) for x in (1, 2, 3, 4, 6, 7, 8, 9)]
    args = [value for tile in tiles for value in tile]
    kernels = [
        SourceKernel(
            "snippet.cpp",
            core=(n % workers[0], n // workers[0]),
            args=args,
            defines={"DESTINATIONS": str(len(tiles)), "COLUMN": str(x), "ROW": str(y)},
            text=body,
        )
        for n, (x, y) in enumerate(tiles[:count])
    ]
    found = run("wormhole", kernels, cycles_max=10_000_000)
    time_ns = found.run.time_ns if found.run else 0.0
    text = found.error or f"{len(kernels)} workers in {time_ns:.0f} ns"
    return {"runs": [found.run is not None, text]}
