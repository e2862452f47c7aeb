# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Document 003: the GPU machine, calls of NVSHMEM, exchanges, rings and NCCL."""

from __future__ import annotations

import re
import tempfile
from collections import Counter
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
    spec = catalogue.load(_MACHINE).sized(hosts=2)
    layout, servers = spec.layout(), spec.build()
    names = [device.name for device in layout.devices]
    own = [name.split("/")[1] for name in names if name.startswith("host0/")]
    switches = [name for name in own if name.startswith("nvswitch")]
    leaves = _leaves(layout)
    drawn: Any = load(_MACHINE, hosts=2)
    names_drawn = Counter(re.findall(r"<text[^>]*>((?:gpu|nic)[0-9]+)<", drawn.draw()))
    return {
        "gpus": sum(name.startswith("gpu") for name in own),
        "nvlink": [bool(switches), ", ".join(switches) or "no switch"],
        "network": [bool(leaves), "adapters reach leaf switches"],
        "rails": [
            bool(leaves) and all(len(each) == 1 for each in leaves.values()),
            "adapters of one index share a leaf",
        ],
        "switches_on_rail": [
            _switches(servers, 0, 8),
            f"between GPUs 0 and 8; {_switches(servers, 0, 9)} between GPUs 0 and 9",
        ],
        "picture": [
            names_drawn == {f"gpu{n}": 2 for n in range(8)} | {f"nic{n}": 2 for n in range(8)},
            "two nodes of eight GPUs and eight adapters",
        ],
    }


def _switches(servers: _core.Machine, one: int, other: int) -> int:
    """The number of network switches on the route of a message between two GPUs."""
    ends = [servers.link(number).to_device for number in servers.route(one, other)]
    return sum(servers.device(end).kind == _core.DeviceKind.network_switch for end in ends)


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
        "infiniband": len(joined),
        "table_alone": [
            sum(device.kind == "gpu" for device in only.devices) == 8
            and sum(device.kind == "nic" for device in only.devices) == 13,
            f"{len(only.devices)} devices",
        ],
        "slow_left_out": [
            (len(adapters), len(joined)) == (13, 8),
            f"{len(adapters) - len(joined)} of {len(adapters)} adapters do not join the fabric",
        ],
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
    names = (
        "int_put", "thread", "warp", "block", "get", "get_signal", "fence", "fused", "registered",
    )  # fmt: skip
    times = {name: _call(name) for name in names}
    moved = {
        name: [error == "", error or f"{time_us:.1f} us"]
        for name, (time_us, error) in times.items()
    }
    wrong = {
        name: _call(name)[1] for name in ("unregistered", "plain_target", "other_size", "unordered")
    }
    unique = _call("unique_id", pes=1)[1]
    at = {name: time_us for name, (time_us, _) in times.items()}
    large = {name: _call(name, 4 * _MIB)[0] for name in ("block", "get")}
    return {
        **{name: found for name, found in moved.items()},
        "block_is_fastest": [
            at["block"] < at["warp"] < at["thread"],
            f"{at['thread']:.0f} us with a thread, {at['warp']:.0f} with a warp, "
            f"{at['block']:.0f} with a block",
        ],
        "get_over_put": [large["get"] / large["block"] - 1, "4 MiB by a block"],
        "unregistered": [
            "neither symmetric nor registered" in wrong["unregistered"],
            wrong["unregistered"],
        ],
        "same_size": [
            "mismatched symmetric allocations" in wrong["other_size"],
            wrong["other_size"],
        ],
        "plain_target": [
            "allocate them with nvshmem_malloc" in wrong["plain_target"],
            wrong["plain_target"],
        ],
        "unordered": ["unawaited data" in wrong["unordered"], wrong["unordered"]],
        "unique_id": [unique == "", unique or "the process joins by an identifier"],
        "fused_over_separate": [at["fence"] - at["fused"], "us that the fused call saves"],
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
    shares = {
        key: found[key][0] / 2 / spec.link_types[link].rate_gb_per_s.value
        for key, link in (("inside_plain", "nvlink"), ("proxy_plain", "infiniband"))
    }
    found["share_of_links"] = [
        min(shares.values()),
        ", ".join(f"{key} {share:.1%}" for key, share in shares.items()),
    ]
    places = list(keys.values())
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
        "proxy_costs": [
            times[0] / times[1],
            "time with a proxy over time without, blocks of 128 threads with 512 B each",
        ],
        "shapes_matter": [max(slices) / min(slices), "slowest over fastest of three shapes"],
    }


# --- rings ----------------------------------------------------------------------------------------


@lru_cache(maxsize=1)
def _rings() -> dict[tuple[str, int], float]:
    spec = catalogue.load(_MACHINE)
    sizes = [size * _KIB for size in (32, 64, 128, 256, 1024, 4096, 16384)]
    found = [
        *exchange.rings_inside(spec, sizes),
        *exchange.rings_between(spec, [16 * _MIB, 64 * _MIB, 256 * _MIB]),
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
    nccl = _nccl_times()
    small = {size: times[ring, size * _KIB] for size in (32, 64, 128)}
    return {
        **_over_nccl(times, nccl),
        "latency_bound": [
            small[128] / small[32] - 1,
            f"{small[32]:.1f} us at 32 KiB, " f"{small[128]:.1f} at 128 KiB",
        ],
        "simple_large": [
            times[simple, 16 * _MIB] / times[ring, 16 * _MIB],
            "simple ring over ring at 16 MiB",
        ],
        "behind_nccl_small": [
            min(small[32], times[simple, 32 * _KIB]) / nccl["node"][32 * _KIB],
            f"ring {small[32]:.1f}, simple ring {times[simple, 32 * _KIB]:.1f}, NCCL's ring "
            f"{nccl['node'][32 * _KIB]:.1f} us",
        ],
        "one_ring_is_bad": [
            times[exchange.ONE_RING, 16 * _MIB] / nccl["ring"][16 * _MIB],
            "one ring over two nodes against NCCL's ring at 16 MiB",
        ],
        "alternating_gain": [
            times[exchange.ONE_RING, 16 * _MIB] / times[few, 16 * _MIB],
            "one ring over alternating rings at 16 MiB",
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


def _over_nccl(times: dict[tuple[str, int], float], nccl: dict[str, dict[int, float]]) -> Result:
    """Rings over two nodes with 2 and 32 queue pairs, compared with the expected times of NCCL."""
    large, middle = 256 * _MIB, 16 * _MIB
    many, few = exchange.alternating(32), exchange.alternating(2)
    by_size = {size: times[few, size] / times[many, size] for size in (middle, 64 * _MIB, large)}
    return {
        "few_over_nccl": [
            times[few, middle] / nccl["ring"][middle],
            f"{times[few, middle]:.0f} us with 2 queue pairs, NCCL's ring "
            f"{nccl['ring'][middle]:.0f} at 16 MiB",
        ],
        "queue_pairs_gain": [
            by_size[large],
            "2 over 32 queue pairs, each in its fastest blocks: "
            + ", ".join(f"{size // _MIB} MiB {gain:.2f}" for size, gain in by_size.items()),
        ],
        "many_over_nccl_ring": [
            times[many, large] / nccl["ring"][large],
            f"{times[many, large]:.0f} us; {nccl['ring'][large]:.0f} us expected of NCCL's ring",
        ],
        "many_over_nccl_default": [
            times[many, large] / nccl["default"][large],
            f"{times[many, large]:.0f} us; {nccl['default'][large]:.0f} us expected of NCCL",
        ],
        "default_over_ring": [
            nccl["default"][large] / nccl["ring"][large] - 1,
            f"{nccl['default'][large]:.0f} and {nccl['ring'][large]:.0f} us expected",
        ],
        "vectorized_over_nccl": [
            times[exchange.RING, middle] / nccl["node"][middle],
            f"{times[exchange.RING, middle]:.0f} and {nccl['node'][middle]:.0f} us",
        ],
    }


def simple_between() -> Result:
    """One simple ring over two nodes, against alternating rings, for the sizes that both divide."""
    machine = with_settings(
        catalogue.load(_MACHINE), [BY_GPUS, "gpu_cost.kernel.queue_pairs=32"]
    ).build(2)

    def best(variant: str, size_bytes: int, rings: int) -> float:
        (ring,) = exchange.fastest(variant, machine, size_bytes, rings, (32, 64, 128, 256, 512))
        return ring.time_us

    gains = {
        size: best(exchange.alternating(32), size * _KIB, 8)
        / best(exchange.SIMPLE_RING, size * _KIB, 1)
        for size in (64, 128)
    }
    text = ", ".join(f"{size} KiB {gain:.2f}" for size, gain in gains.items())
    return {"gain": [gains[64], f"alternating rings over the simple ring, 16 GPUs: {text}"]}


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
    sent = node.run("send_recv", size_bytes="1M")
    return {
        "tree": [
            all("tree" in name.lower() for name in names),
            f"at 256 KiB, 1 MiB and 64 MiB: {', '.join(names)}",
        ],
        "forced_ring": [
            "ring" in str(forced.rows[0].algorithm).lower(),
            str(forced.rows[0].algorithm),
        ],
        "send_recv": [
            sent.wrong == 0,
            f"1 MiB from each GPU to the next in {sent.rows[0].time_us:.1f} us",
        ],
    }
