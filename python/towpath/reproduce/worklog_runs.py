# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Document 003: the GPU machine, calls of NVSHMEM, exchanges, rings and NCCL."""

from __future__ import annotations

import re
import tempfile
from functools import lru_cache
from pathlib import Path
from typing import Any

from towpath import _core
from towpath.api.gpu_kernel import kernel
from towpath.api.machine import load
from towpath.collectives.nccl.imitation import Library
from towpath.errors import TowpathError
from towpath.reproduce.documents import document
from towpath.reproduce.worklog_times import BY_GPUS
from towpath.specs import catalogue
from towpath.specs.override import with_settings
from towpath.studies import exchange

Result = dict[str, Any]
_MACHINE = "dgx-h100"
_KIB, _MIB = 1 << 10, 1 << 20
_PROGRAMS = Path(__file__).parent / "programs"


def machine() -> Result:
    """The described server: GPUs, adapters, rails, and the drawing."""
    layout = catalogue.load(_MACHINE).sized(hosts=2).layout()
    names = [device.name for device in layout.devices]
    own = [name.split("/")[1] for name in names if name.startswith("host0/")]
    switches = [name for name in own if name.startswith("nvswitch")]
    leaves = _leaves(layout)
    drawn: Any = load(_MACHINE, hosts=2)
    return {
        "gpus": sum(name.startswith("gpu") for name in own),
        "adapters": sum(name.startswith("nic") for name in own),
        "nvlink": [bool(switches), ", ".join(switches) or "no switch"],
        "network": [bool(leaves), "adapters reach leaf switches"],
        "rails": [
            bool(leaves) and all(len(each) == 1 for each in leaves.values()),
            "adapters of one index share a leaf",
        ],
        "picture": "<svg" in drawn.draw(),
    }


def _leaves(layout: Any) -> dict[str, set[str]]:
    """The leaf switches of the adapters with each index, over all hosts."""
    names = [device.name for device in layout.devices]
    found: dict[str, set[str]] = {}
    for wire in layout.wires:
        one, other = sorted((names[wire.a], names[wire.b]))
        if "/nic" in one and "leaf" in other:
            found.setdefault(one.split("/")[1], set()).add(other)
    return found


def topology() -> Result:
    """The document's own `nvidia-smi topo -m` and `ibstatus`, imported as a machine."""
    from towpath.specs.importers.own_host import import_host

    blocks = re.findall(r"^```\n(.*?)^```", document("003"), re.MULTILINE | re.DOTALL)
    table = next(block for block in blocks if "GPU0" in block)
    status = next(block for block in blocks if "Infiniband device" in block)
    spec = import_host([(table, "topo.txt"), (status, "ibstatus.txt")])
    only = import_host([(table, "topo.txt")])
    adapters = [device for device in spec.devices if device.kind == "nic"]
    joined = [device for device in adapters if device.joins_fabric]
    assert spec.fabric is not None
    rates = [
        spec.link_types[device.fabric_link_type or spec.fabric.link_type].rate_gb_per_s.value
        for device in joined
    ]
    with tempfile.TemporaryDirectory() as folder:
        from towpath.specs.write import yaml_of

        file = Path(folder, "own.yaml")
        file.write_text(yaml_of(spec.sized(2)), encoding="utf-8")
        own: Any = load(str(file), hosts=2)
        rate = own.run("all_reduce", size_bytes="256M", data=False).rows[0]
    return {
        "adapters": len(adapters),
        "infiniband": len(joined),
        "ethernet": len(adapters) - len(joined),
        "table_alone": [len(only.devices) > 8, f"{len(only.devices)} devices"],
        "slow_left_out": [len(joined) == 8, "adapters of 25 Gb/s do not join the fabric"],
        "adapter_gb_per_s": [
            min(rates),
            f"{len(rates)} adapters. All-reduce of 256 MiB on two such hosts: "
            f"{2 * 15 / 16 * rate.size_bytes / rate.time_us / 1e3:.0f} GB/s of bus bandwidth",
        ],
    }


# --- calls ----------------------------------------------------------------------------------------


@lru_cache(maxsize=1)
def _calls() -> Any:
    return kernel(_PROGRAMS / "worklog_calls.cu")


def _call(name: str, size_bytes: int = 65536, pes: int = 2) -> tuple[float, str]:
    """Simulated time of a case, or the error that ended it. Wrong data is an error."""
    try:
        ran = _calls().run(
            _MACHINE, pes, arguments=[name, str(size_bytes)], settings=["gpu_cost.launch_ns=0"]
        )
    except TowpathError as error:
        return float("nan"), str(error)
    return ran.time_us, "" if ran.status == 0 else "wrong data"


def calls() -> Result:
    """Puts, gets, signals and the rules of symmetric memory."""
    names = ("int_put", "thread", "warp", "block", "get", "fence", "fused", "add", "registered")
    times = {name: _call(name) for name in names}
    moved = {
        name: [error == "", error or f"{time_us:.1f} us"]
        for name, (time_us, error) in times.items()
    }
    wrong = {name: _call(name)[1] for name in ("unregistered", "other_size", "unordered")}
    unique = _call("unique_id", pes=1)[1]
    at = {name: time_us for name, (time_us, _) in times.items()}
    large = {name: _call(name, 4 * _MIB)[0] for name in ("block", "get")}
    return {
        **{name: found for name, found in moved.items()},
        "warp_over_thread": [
            at["thread"] / at["warp"],
            f"{at['thread']:.0f} us with a thread, "
            f"{at['warp']:.0f} with a warp, {at['block']:.0f} with a block",
        ],
        "block_is_fastest": [at["block"] < at["warp"] < at["thread"], "64 KiB"],
        "get_over_put": [large["get"] / large["block"] - 1, "4 MiB by a block"],
        "unregistered": [
            "neither symmetric nor registered" in wrong["unregistered"],
            wrong["unregistered"],
        ],
        "same_size": [
            "mismatched symmetric allocations" in wrong["other_size"],
            wrong["other_size"],
        ],
        "same_offset": [times["block"][1] == "", "one address names the memory of each PE"],
        "unordered": ["unawaited data" in wrong["unordered"], wrong["unordered"]],
        "unique_id": [unique == "", unique or "the process joins by an identifier"],
        "fused_over_separate": [at["fence"] - at["fused"], "us that the fused call saves"],
        "set_over_add": [at["add"] / at["fused"] - 1, "64 KiB"],
    }


# --- exchanges ------------------------------------------------------------------------------------


def exchanges() -> Result:
    """The seven bandwidths of the document, each in the best shape of a sweep."""
    spec = catalogue.load(_MACHINE)
    rows = exchange.best(exchange.exchanges(spec, [32 * _MIB]))
    keys = {
        (exchange.INSIDE, "plain"): "inside_plain",
        (exchange.INSIDE, "separate_signal"): "inside_separate",
        (exchange.INSIDE, "fused_signal"): "inside_fused",
        (exchange.PROXY, "plain"): "proxy_plain",
        (exchange.INITIATED, "plain"): "gpus_plain",
        (exchange.INITIATED, "separate_signal"): "gpus_separate",
        (exchange.INITIATED, "fused_signal"): "gpus_fused",
    }
    found: Result = {
        keys[row.route, row.stage]: [
            row.gb_per_s,
            f"{row.threads} threads, " f"{row.bytes_per_thread} B each",
        ]
        for row in rows
        if (row.route, row.stage) in keys
    }
    places = list(keys.values())
    found["gpus_over_proxy"] = found["gpus_plain"][0] / found["proxy_plain"][0]
    nvlink = spec.link_types["nvlink"].rate_gb_per_s.value
    found["share_of_link"] = found["inside_plain"][0] / (2 * nvlink)
    found["slowdown"] = found["inside_separate"][0] / found["inside_plain"][0]
    found["figure"] = {
        "title": "Exchanges: seven bandwidths",
        "how": ", ".join(places),
        "x": "exchange",
        "y": "GB/s",
        "curves": [
            {
                "name": "ours",
                "x": list(map(float, range(7))),
                "y": [found[key][0] for key in places],
            },
            {
                "name": "the document",
                "x": list(map(float, range(7))),
                "y": [exchange.DOCUMENT[key] for key in keys],
                "style": "points",
            },
        ],
    }
    return found


def proxy() -> Result:
    """The agent that hands puts to an adapter, and the environment that selects it."""
    from towpath.api.gpu_kernel import environment_settings

    given = environment_settings(
        {"NVSHMEM_IB_ENABLE_IBGDA": "1", "NVSHMEM_IBGDA_NUM_RC_PER_PE": "32"}
    )
    spec = catalogue.load(_MACHINE)
    times = [
        _core.kernel_exchange_us(
            with_settings(spec, settings).build(hosts=2),
            _core.ExchangeStage.plain,
            32 * _MIB,
            128,
            512,
            (0, 8),
        )
        for settings in ([], given)
    ]
    slices = [
        _core.kernel_exchange_us(
            spec.build(hosts=1), _core.ExchangeStage.plain, 4 * _MIB, threads, each, (0, 1)
        )
        for threads, each in ((128, 16), (512, 16), (128, 256))
    ]
    return {
        "environment": [
            times[1] < 0.95 * times[0],
            f"{', '.join(given)}: {times[0]:.0f} and " f"{times[1]:.0f} us for 32 MiB",
        ],
        "proxy_costs": [times[0] / times[1], "time with a proxy over time without"],
        "shapes_matter": [max(slices) / min(slices), "slowest over fastest of three shapes"],
    }


# --- rings ----------------------------------------------------------------------------------------


@lru_cache(maxsize=1)
def _rings() -> dict[tuple[str, int], float]:
    spec = catalogue.load(_MACHINE)
    sizes = [size * _KIB for size in (32, 64, 128, 256, 1024, 4096, 16384)]
    found = [
        *exchange.rings_inside(spec, sizes),
        *exchange.rings_between(spec, [16 * _MIB, 256 * _MIB]),
    ]
    return {(ring.variant, ring.size_bytes): ring.time_us for ring in found}


def _nccl_times() -> dict[str, dict[int, float]]:
    """Times that nccl-tests should print, by NCCL's setting and size."""
    servers: Any = load(_MACHINE, hosts=2)
    node: Any = load(_MACHINE, hosts=1)
    by_ring = Library.of("nccl", variables={"NCCL_ALGO": "Ring"})

    def time_us(machine: Any, size_bytes: int, library: Any) -> float:
        found = machine.expect("all_reduce", size_bytes=size_bytes, library=library)
        return float(found.rows[0].time_us)

    large = (_MIB, 16 * _MIB, 256 * _MIB)
    return {
        "ring": {size: time_us(servers, size, by_ring) for size in large},
        "default": {size: time_us(servers, size, "nccl") for size in large},
        "node": {
            size: time_us(node, size, by_ring) for size in (32 * _KIB, 128 * _KIB, _MIB, 16 * _MIB)
        },
    }


def rings() -> Result:
    """Rings in a node and over two nodes, compared with NCCL."""
    times = _rings()
    ring, simple = exchange.RING, exchange.SIMPLE_RING
    many, few = exchange.alternating(32), exchange.alternating(2)
    large = 256 * _MIB
    nccl = _nccl_times()
    small = {size: times[ring, size * _KIB] for size in (32, 64, 128)}
    return {
        "latency_bound": [
            small[128] / small[32] - 1,
            f"{small[32]:.1f} us at 32 KiB, " f"{small[128]:.1f} at 128 KiB",
        ],
        "simple_small": [times[simple, 64 * _KIB] / small[64], "simple ring over ring, one call"],
        "simple_large": [
            times[simple, 16 * _MIB] / times[ring, 16 * _MIB],
            "simple ring over ring at 16 MiB",
        ],
        "behind_nccl_small": [
            small[32] / nccl["node"][32 * _KIB],
            f"{small[32]:.1f} against {nccl['node'][32 * _KIB]:.1f} us at 32 KiB",
        ],
        "one_ring_is_bad": [
            times[exchange.ONE_RING, 16 * _MIB] / nccl["ring"][16 * _MIB],
            "one ring over two nodes against NCCL's ring at 16 MiB",
        ],
        "alternating_gain": [
            times[exchange.ONE_RING, 16 * _MIB] / times[few, 16 * _MIB],
            "one ring over alternating rings at 16 MiB",
        ],
        "queue_pairs_gain": _queue_pairs_gain(),
        "beats_nccl_ring": [
            times[many, large] / 1357.0,
            f"{times[many, large]:.0f} us; NCCL's ring 1357 us (nccl-tests)",
        ],
        "vectorized_over_nccl": [
            times[ring, 16 * _MIB] / nccl["node"][16 * _MIB],
            f"{times[ring, 16 * _MIB]:.0f} and " f"{nccl['node'][16 * _MIB]:.0f} us",
        ],
        "default_is_faster": [times[many, large] / 1284.0, "NCCL by default 1284 us (nccl-tests)"],
        "default_over_ring": [
            nccl["default"][large] / nccl["ring"][large] - 1,
            f"{nccl['default'][large]:.0f} and {nccl['ring'][large]:.0f} us "
            "expected, 1284 and 1357 measured",
        ],
        "figure_inside": _plot(
            "Rings in one node, and NCCL's ring",
            {
                "ring": {s: t for (v, s), t in times.items() if v == ring},
                "simple ring": {s: t for (v, s), t in times.items() if v == simple},
                "NCCL's ring, expected": nccl["node"],
            },
        ),
        "figure_between": _plot(
            "Rings over two nodes, and NCCL",
            {
                "one ring": {s: t for (v, s), t in times.items() if v == exchange.ONE_RING},
                "alternating, 2 queue pairs": {s: t for (v, s), t in times.items() if v == few},
                "alternating, 32 queue pairs": {s: t for (v, s), t in times.items() if v == many},
                "NCCL's ring, expected": nccl["ring"],
                "NCCL by default, expected": nccl["default"],
            },
        ),
    }


def _queue_pairs_gain() -> list[Any]:
    """Alternating rings in blocks of 512 threads, with 2 and 32 queue pairs."""
    spec = catalogue.load(_MACHINE)
    times = [
        min(
            _core.kernel_all_reduce_us(
                with_settings(spec, [BY_GPUS, f"gpu_cost.kernel.queue_pairs={pairs}"]).build(2),
                _core.RingKernel.ring,
                64 * _MIB,
                512,
                each,
                alternates=True,
            )
            for each in (32, 128, 512)
        )
        for pairs in (2, 32)
    ]
    return [
        times[0] / times[1],
        f"64 MiB, blocks of 512 threads: {times[0]:.0f} us with 2, " f"{times[1]:.0f} with 32",
    ]


def _plot(title: str, lines: dict[str, dict[int, float]]) -> dict[str, Any]:
    curves = [
        {
            "name": name,
            "x": [float(size) for size in sorted(points)],
            "y": [points[size] for size in sorted(points)],
        }
        for name, points in lines.items()
    ]
    return {
        "title": title,
        "how": "The document gives its plots without values.",
        "x": "size",
        "y": "us",
        "y_scale": "log",
        "curves": curves,
    }


def nccl() -> Result:
    """NCCL's own choice, by its decisions."""
    servers: Any = load(_MACHINE, hosts=2)
    names = [
        servers.explain("all_reduce", size_bytes=size).candidates[0].name
        for size in (256 * _KIB, _MIB, 64 * _MIB)
    ]
    forced: Any = servers.expect(
        "all_reduce", size_bytes=_MIB, library=Library.of("nccl", variables={"NCCL_ALGO": "Ring"})
    )
    node: Any = load(_MACHINE, hosts=1)
    sent = node.run("send_recv", size_bytes="64M", data=False)
    row = sent.rows[0]
    return {
        "tree": [
            any("tree" in name.lower() for name in names),
            f"at 256 KiB, 1 MiB and 64 MiB: {', '.join(names)}",
        ],
        "forced_ring": [
            "ring" in str(forced.rows[0].algorithm).lower(),
            str(forced.rows[0].algorithm),
        ],
        "send_recv_gb_per_s": row.size_bytes / row.time_us / 1e3,
    }
