# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Document 001: traffic on one and several virtual channels, with the conditions it names."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from itertools import pairwise
from statistics import mean
from typing import Any

from towpath.errors import TowpathError
from towpath.reproduce.core_programs import core
from towpath.reproduce.documents import document
from towpath.specs import catalogue
from towpath.studies.noc_findings import DROP_BEYOND_BYTES, beyond, findings
from towpath.studies.noc_study import StudyRequest, measure_point, study_parts
from towpath.studies.noc_traffic import STALL_ROWS, STALLED_MAX, shape_of

Result = dict[str, Any]
Row = dict[str, Any]
_CHIPS = ("wormhole", "blackhole")
_KIB = 1024


@lru_cache(maxsize=8)
def _spec_json(chip: str, changes: tuple[tuple[str, int], ...] = ()) -> str:
    spec = catalogue.load_chip(chip)
    if changes:
        router = spec.router.model_copy(
            update={name: _changed(getattr(spec.router, name), value) for name, value in changes}
        )
        spec = spec.model_copy(update={"router": router})
    return spec.model_dump_json()


def _changed(figure: Any, value: int) -> Any:
    """A flag or a quantity with another value."""
    return value if isinstance(figure, bool) else figure.model_copy(update={"value": value})


def _row(
    chip: str,
    pattern: str,
    size_bytes: int,
    vcs: int,
    *,
    noc: int = 0,
    transactions: int = 16,
    turned: bool = False,
    changes: tuple[tuple[str, int], ...] = (),
) -> Row:
    """A point of the study with its result."""
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
    return {**point, **measure_point(_spec_json(chip, changes), point)}


def _rate(chip: str, pattern: str, size_bytes: int, vcs: int, **options: Any) -> float:
    """Median bytes per cycle of a master."""
    row = _row(chip, pattern, size_bytes, vcs, **options)
    return float(row["bandwidth_bytes_per_cycle"])


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
    taken, refused = _vcs_of_writes("wormhole")
    return {
        "networks": [both.run is not None, "a kernel writes over NoC 0 and NoC 1"],
        "unicast_vcs": [len(taken), f"writes leave on VCs {taken}; {refused}"],
        "vcs": [
            2 * 2 * wormhole.build().router["classes"] if router.has_dateline else 0,
            "a dateline bit, a class and a buddy bit",
        ],
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


def _vcs_of_writes(chip: str) -> tuple[list[int], str]:
    """The VCs that a write may name, and the error for the next one."""
    from towpath import _core

    shape = shape_of(catalogue.load_chip(chip))
    machine = catalogue.load_chip(chip).build()
    taken: list[int] = []
    for vc in range(16):
        write = _core.TrafficStep("write", to=shape.worker(1, 0), size_bytes=64, first_vc=vc)
        steps = [write, _core.TrafficStep("write_barrier")]
        program = _core.TrafficProgram(core=shape.worker(0, 0), noc=0, steps=steps)
        try:
            _core.run_traffic(machine, [program], seed=1, records_requests=False)
        except (TowpathError, ValueError) as error:
            return taken, str(error)
        taken.append(vc)
    return taken, ""


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
        means = {}
        for vcs in (2, 3, 4):
            changes = [rates[vcs, size] / rates[1, size] - 1 for size in sizes]
            means[vcs] = mean(changes)
            text = _percents_at(sizes, changes)
            if vcs > 2 or chip == "wormhole":
                found[f"{chip}_{vcs}"] = [means[vcs], text]
        found[f"{chip}_best"] = [max(means.values()), _percents_of(means)]
        found[f"{chip}_ordered"] = [
            means[4] < means[3] < means[2],
            _percents_of(means),
        ]
        found[f"figure_{chip}"] = _figure(f"All to all on {chip}, NoC 0", rates, sizes)
        if chip == "wormhole":
            found["small"] = [rates[4, 64] / rates[1, 64] - 1, "64 B, 4 VCs against one"]
    return found


def _percents_of(means: dict[int, float]) -> str:
    return "in the mean " + ", ".join(f"{vcs} VCs {mean:+.1%}" for vcs, mean in means.items())


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
    """Four transactions to each destination, on NoC 0: where the bandwidth drops, and its cure.

    The cure removes the cause: masters no longer begin with the same destination.
    """
    found: Result = {}
    for chip, sizes in (
        ("wormhole", (512, _KIB, 2 * _KIB, 4 * _KIB, 8 * _KIB)),
        ("blackhole", (512, 2 * _KIB, 4 * _KIB)),
    ):
        shape = shape_of(catalogue.load_chip(chip))
        plain, turned = (
            [_row(chip, "all_to_all", size, 4, transactions=4, turned=turned) for size in sizes]
            for turned in (False, True)
        )
        shown = {each.name: each for each in findings({"orders": [*plain, *turned]}, shape)}
        cure = shown["all_to_all_cure_noc_0"]
        if chip == "wormhole":
            place = sizes.index(4 * _KIB)
            order = _rate(chip, "all_to_all", 4 * _KIB, 1, transactions=4, turned=True)
            vcs = plain[place]["bandwidth_bytes_per_cycle"]
            found["order_over_vcs"] = [
                order / vcs,
                f"{order:.2f} B/cycle in another order on one VC, {vcs:.2f} in the same order on 4",
            ]
        change, text = beyond(plain, DROP_BEYOND_BYTES[shape.flit_bytes])
        found[f"{chip}_drop_beyond"] = [change, text]
        found[f"{chip}_cure"] = [cure.shown is True, "; ".join(cure.numbers)]
        curves = [("same order", plain), ("turned", turned)]
        found[f"figure_{chip}"] = {
            "title": f"Four transactions to each, {chip}, NoC 0",
            "how": "",
            "x": "size",
            "y": "B/cycle",
            "curves": [
                {
                    "name": name,
                    "x": list(map(float, sizes)),
                    "y": [row["bandwidth_bytes_per_cycle"] for row in rows],
                }
                for name, rows in curves
            ],
        }
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
    subjects = ("own_vc", "dram_apart", "ethernet_together", "debug_together", "onset")
    found: Result = {
        finding.name: [finding.shown, "; ".join(finding.numbers)]
        for finding in findings(rows, shape)
        if finding.name in subjects
    }
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
    found["two_stalled"] = [stalled[2] / stalled[0], "rate with two stalled VCs"]
    return found


def stalled() -> Result:
    """Flits per cycle of a VC that shares its links with three stalled ones, on Blackhole."""
    shape = shape_of(catalogue.load_chip("blackhole"))
    rates = {}
    columns_of = [(rows, 0) for rows in range(STALL_ROWS, shape.rows + 1)]
    for rows, joins in (*columns_of, (shape.rows, 1)):
        point = {
            "experiment": "stalled_vcs",
            "noc": 0,
            "stalled": STALLED_MAX,
            "rows": rows,
            "joins": joins,
            "grid": f"{shape.columns}x{shape.rows}",
            "seed": 1,
        }
        rate = measure_point(_spec_json("blackhole"), point)["bandwidth_bytes_per_cycle"]
        rates[2 ** (rows - 2 + joins)] = rate / shape.flit_bytes
    text = ", ".join(f"{rate:.4f} if each moves 1/{part}" for part, rate in rates.items())
    return {"rate": [rates[max(rates)], text]}


# Both causes turned off: every VC has the whole pool, and ports are picked before VCs.
_WIDE = (("pool_flits", 1024), ("pool_flits_per_vc_max", 120))
_OUTPUTS_FIRST = (("picks_vc_first", False),)


def causes() -> Result:
    """The shared pool and the order of arbitration, each turned off, and both."""
    sizes = (64, 512, _KIB)
    rates = {
        (name, vcs, size): _rate(
            "wormhole", "all_to_all", size, vcs, transactions=8, changes=changes
        )
        for name, changes in (("as is", ()), ("wide", _WIDE), ("both", _WIDE + _OUTPUTS_FIRST))
        for vcs in (1, 4)
        for size in (sizes if changes else (_KIB,))
    }

    def gains(name: str) -> list[float]:
        return [rates[name, 4, size] / rates[name, 1, size] - 1 for size in sizes]

    with_cause = rates["as is", 4, _KIB] / rates["as is", 1, _KIB] - 1
    without = gains("wide")[-1]
    order = [rates["both", 4, size] / rates["wide", 4, size] - 1 for size in sizes]
    return {
        "pool": [
            without > with_cause + 0.05,
            f"4 VCs, 1 KiB: {with_cause:+.0%} with the shared "
            f"pool, {without:+.0%} with room for all",
        ],
        "order": [mean(order), _percents_at(sizes, order)],
        "gain": [mean(gains("both")), _percents_at(sizes, gains("both"))],
    }


def _percents_at(sizes: Iterable[int], changes: Iterable[float]) -> str:
    pairs = zip(sizes, changes, strict=True)
    return ", ".join(f"{size} B {change:+.1%}" for size, change in pairs)


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
