# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Runs on all machines as one table: simulated picoseconds, events and trace hashes.

Usage (with PYTHONPATH=tests/support):
    python tests/e2e/simulated_results.py tests/e2e/simulated_results.json
That writes the table anew, for a change that is meant to change simulated results; such a change is
named in CHANGELOG.md.
"""

from __future__ import annotations

import hashlib
import json
import sys
import time
from dataclasses import replace

import numpy as np

from inside import _core
from inside.collectives import (
    Call,
    ChipPlace,
    GpuPlace,
    MailboxPlace,
    fabric,
    parse_link_fault,
    simulated,
)
from inside.machines import catalogue as machines
from inside.noc import noc_study, shape_of
from inside.schedules import ScheduleSource
from towpath import HostCluster


def ps(us):
    return round(us * 1e6)


def outcome(place, source, size, *, data=True, op="sum", dtype="float32", in_place=False, **more):
    traced = not isinstance(place, MailboxPlace)
    trace = _core.Trace(keeps_records=False) if traced else None
    done = simulated.invoke(
        place,
        Call(source.schedule(), dtype, op),
        size,
        in_place=in_place,
        with_data=data,
        trace=trace,
        **more,
    )
    assert done.wrong in (0, None)
    return {"time_ps": ps(done.time_us), "events": done.events, "hash": done.trace_hash}


def gpu(
    machine,
    collective,
    size,
    algorithm=None,
    protocol="Simple",
    *,
    channels=8,
    hosts=1,
    ranks=None,
    seed=1,
    jitter_ns=0.0,
    **more,
):
    spec = machines.load(machine, hosts=hosts if machine == "dgx-h100" else None)
    place = GpuPlace(spec.build(), jitter_ns=jitter_ns)
    source = ScheduleSource(
        collective=collective,
        algorithm=algorithm,
        ranks=ranks or spec.ranks,
        channels=channels,
        protocol=protocol,
        hosts=hosts,
    )
    return outcome(place, source, size, seed=seed, **more)


def chips(machine, collective, size, algorithm=None, faults=(), **more):
    spec = machines.load_chip_cluster(machine)
    cluster = spec.build()
    on_grid = bool(algorithm and algorithm.startswith("grid_"))
    layout = fabric.layout_of(cluster, on_grid)
    planes = _core.fabric_planes(cluster, layout.shape)
    grid = fabric.grid_of(layout.shape) if on_grid else {}
    source = replace(
        ScheduleSource(
            collective=collective,
            algorithm=algorithm,
            ranks=len(layout.places),
            channels=2 * planes,
        ),
        both_ways=True,
        **grid,
    )
    place = ChipPlace(
        cluster, tuple(layout.places), tuple(map(parse_link_fault, faults)), layout.shape
    )
    return outcome(place, source, size, **more)


def mailbox(collective, size, algorithm=None):
    spec = machines.load_mailbox_cluster("carvnet").with_figures(nodes=8)
    cluster = spec.build()
    return outcome(
        MailboxPlace(cluster),
        ScheduleSource(collective=collective, algorithm=algorithm, ranks=8),
        size,
    )


def built(spec):
    return spec.build()


def ping_pong(**options):
    cluster = built(machines.load_mailbox_cluster("carvnet"))
    cycles, us, events = _core.run_ping_pong(
        cluster, _core.PingPongOptions(iterations=5000, **options)
    )
    return {
        "time_ps": ps(us),
        "events": events,
        "hash": hashlib.sha256(cycles.tobytes()).hexdigest()[:16],
    }


def study_points(chip, count):
    spec = machines.load_chip(chip)
    shape = shape_of(spec)
    request = noc_study.StudyRequest(
        patterns=("all_to_all", "one_to_all", "all_from_all"), sizes_bytes=(64, 2048)
    )
    parts = noc_study.study_parts(shape, request)
    text = spec.model_dump_json()
    found = {}
    for name, points in parts.items():
        points = [p for p in points if "x" in p["grid"]]
        small = sorted(points, key=lambda p: json.dumps(dict(p), sort_keys=True))
        for point in small[:: max(1, len(small) // count)][:count]:
            grid = (
                "4x4"
                if "pattern" in point and point["experiment"] != "stalled_vcs"
                else point["grid"]
            )
            try:
                result = noc_study.measure_point(text, {**point, "grid": grid})
            except IndexError:
                result = noc_study.measure_point(text, point)
            found[name + json.dumps(dict(point), sort_keys=True)] = result
    return {
        "hash": hashlib.sha256(json.dumps(found, sort_keys=True).encode()).hexdigest()[:16],
        "cycles": sum(r["cycles"] for r in found.values()),
        "flit_hops": sum(r["flit_hops"] for r in found.values()),
    }


def whole_grid(chip):
    from_spec = machines.load_chip(chip)
    core = built(from_spec)
    shape = shape_of(from_spec)
    programs = []
    workers = [shape.worker(c, r) for c in range(4) for r in range(4)]
    for n, at in enumerate(workers):
        steps = [
            _core.TrafficStep(
                "write" if n % 2 else "read",
                to=tuple(workers[(n * 5 + k) % 16]),
                size_bytes=2048,
                count=4,
                first_vc=n % 2,
                vcs=2,
            )
            for k in range(1, 5)
        ]
        steps += [_core.TrafficStep("write_barrier"), _core.TrafficStep("read_barrier")]
        programs.append(_core.TrafficProgram(core=tuple(at), noc=n % 2, steps=steps))
    result = _core.run_traffic(core, programs, seed=3)
    return {
        "cycles": int(result.cycles),
        "flit_hops": int(result.flit_hops),
        "hash": hashlib.sha256(
            repr((list(result.begin_cycles), list(result.end_cycles))).encode()
        ).hexdigest()[:16],
    }


def ethernet(machine, name, **options):
    cluster = built(machines.load_chip_cluster(machine))
    function = getattr(_core, name)
    value = function(cluster, **options)
    if name == "link_ping":
        value = [(p.send_and_receive_ns, p.send_ns, p.wait_ns, p.wait_and_answer_ns) for p in value]
    return {
        "value": repr(value)
        if isinstance(value, float)
        else hashlib.sha256(repr(value).encode()).hexdigest()[:16]
    }


def fabric_times(machine):
    cluster = built(machines.load_chip_cluster(machine))
    layout = fabric.layout_of(cluster, False)
    trips = [
        _core.fabric_round_trip(
            cluster, layout.shape, source=0, destination=d, payload_bytes=b, is_fused=f
        ).total_ns
        for d in range(1, len(layout.places))
        for b in (16, 2048)
        for f in (False, True)
    ]
    rate = _core.fabric_stream_gb_per_s(
        cluster, layout.shape, [(0, 1)], payload_bytes=2048, packets=100
    )
    return {"value": repr(rate), "hash": hashlib.sha256(repr(trips).encode()).hexdigest()[:16]}


def host(name, chip):
    cluster = HostCluster(name, [machines.load_chip(chip)])
    times = []
    for kind in ("dram", "worker"):
        core = cluster.core(0, kind)
        for size in (4, 64, 4096, 100_000):
            data = np.arange(size, dtype=np.uint8)
            times.append(cluster.write_to_device(data, 0, core, 0x2000).time_ns)
            times.append(cluster.read_from_device(data, 0, core, 0x2000).time_ns)
            times.append(cluster.dma_write_to_device(data, 0, core, 0x2000).time_ns)
            times.append(cluster.dma_read_from_device(data, 0, core, 0x2000).time_ns)
    return {
        "time_ps": round(cluster.now_ns * 1e3),
        "hash": hashlib.sha256(repr(times).encode()).hexdigest()[:16],
    }


K, M = 1 << 10, 1 << 20
RUNS = {
    "dgx-h100 x2 ring all_reduce Simple 4M": lambda: gpu(
        "dgx-h100", "all_reduce", 4 * M, channels=16, hosts=2
    ),
    "dgx-h100 x2 ring all_reduce LL 64K": lambda: gpu(
        "dgx-h100", "all_reduce", 64 * K, protocol="LL", hosts=2
    ),
    "dgx-h100 x2 tree all_reduce LL128 1M": lambda: gpu(
        "dgx-h100", "all_reduce", M, "tree_all_reduce", "LL128", hosts=2
    ),
    "dgx-h100 one_shot all_reduce LL 8K": lambda: gpu(
        "dgx-h100", "all_reduce", 8 * K, "one_shot_all_reduce", "LL"
    ),
    "dgx-h100 two_shot all_reduce Simple 1M": lambda: gpu(
        "dgx-h100", "all_reduce", M, "two_shot_all_reduce"
    ),
    "dgx-h100 all_gather 1M": lambda: gpu("dgx-h100", "all_gather", M),
    "dgx-h100 all_pairs all_gather 1M": lambda: gpu(
        "dgx-h100", "all_gather", M, "all_pairs_all_gather", channels=4
    ),
    "dgx-h100 reduce_scatter avg 1M in place": lambda: gpu(
        "dgx-h100", "reduce_scatter", M, op="avg", in_place=True
    ),
    "dgx-h100 x2 all_to_all 1M": lambda: gpu("dgx-h100", "all_to_all", M, hosts=2),
    "dgx-h100 broadcast 1M": lambda: gpu("dgx-h100", "broadcast", M),
    "dgx-h100 reduce max float64 1M": lambda: gpu(
        "dgx-h100", "reduce", M, op="max", dtype="float64"
    ),
    "dgx-h100 x2 ring all_reduce jitter seed 7": lambda: gpu(
        "dgx-h100", "all_reduce", M, hosts=2, seed=7, jitter_ns=500.0
    ),
    "dgx-h100 x16 ring all_reduce 16M time only": lambda: gpu(
        "dgx-h100", "all_reduce", 16 * M, channels=8, hosts=16, data=False
    ),
    "ring all_reduce 1M": lambda: gpu("ring", "all_reduce", M, channels=2),
    "fully-connected all_to_all 1M": lambda: gpu("fully-connected", "all_to_all", M, channels=2),
    "n300 all_reduce 64K": lambda: chips("n300", "all_reduce", 64 * K),
    "t3000 all_reduce 256K": lambda: chips("t3000", "all_reduce", 256 * K),
    "t3000 all_gather bfloat16 256K": lambda: chips(
        "t3000", "all_gather", 256 * K, dtype="bfloat16"
    ),
    "t3000 grid all_reduce 64K": lambda: chips("t3000", "all_reduce", 64 * K, "grid_all_reduce"),
    "t3000 all_to_all 64K": lambda: chips("t3000", "all_to_all", 64 * K),
    "t3000 all_reduce 256K, link 0:9 drops": lambda: chips(
        "t3000", "all_reduce", 256 * K, faults=("0:9,at=20us,every=100us,training=5us",)
    ),
    "galaxy all_reduce 16K": lambda: chips("galaxy", "all_reduce", 16 * K, data=False),
    "galaxy-torus grid all_gather 16K": lambda: chips(
        "galaxy-torus", "all_gather", 16 * K, "grid_all_gather", data=False
    ),
    "blackhole-line reduce_scatter 64K": lambda: chips("blackhole-line", "reduce_scatter", 64 * K),
    "blackhole-line all_gather line 64K": lambda: chips(
        "blackhole-line", "all_gather", 64 * K, "line_all_gather"
    ),
    "carvnet all_reduce 4K": lambda: mailbox("all_reduce", 4 * K),
    "carvnet all_gather 4K": lambda: mailbox("all_gather", 4 * K),
    "carvnet ping-pong": lambda: ping_pong(),
    "carvnet ping-pong 16 B phase 3": lambda: ping_pong(size_bytes=16, phase_cycles=3, seed=5),
    "wormhole study points": lambda: study_points("wormhole", 3),
    "blackhole study points": lambda: study_points("blackhole", 3),
    "wormhole traffic": lambda: whole_grid("wormhole"),
    "blackhole traffic": lambda: whole_grid("blackhole"),
    "t3000 ring ping": lambda: ethernet(
        "t3000",
        "ring_ping_ns",
        chips=_core.t3000_ring(8),
        packet_bytes=1024,
        channels=2,
        merged=True,
        samples=5,
    ),
    "n300 link ping": lambda: ethernet("n300", "link_ping", payload_bytes=256, samples=5),
    "n300 link bandwidth": lambda: ethernet(
        "n300", "link_test_ns", kind="erisc_write_worker", message_bytes=2048, messages=64
    ),
    "n300 both ways": lambda: ethernet(
        "n300", "bidirectional_gb_per_s", packet_bytes=1024, channels=4, packets=40
    ),
    "blackhole-line link bandwidth": lambda: ethernet(
        "blackhole-line", "link_test_ns", kind="erisc", message_bytes=2048, messages=64
    ),
    "t3000 fabric": lambda: fabric_times("t3000"),
    "blackhole-line fabric": lambda: fabric_times("blackhole-line"),
    "blackhole-host": lambda: host("blackhole-host", "blackhole"),
    "n300-xeon-host": lambda: host("n300-xeon-host", "wormhole"),
    "ryzen-host": lambda: host("ryzen-host", "blackhole"),
}


def main() -> int:
    table = {}
    for name, run in RUNS.items():
        begin = time.perf_counter()
        table[name] = run()
        print(f"{time.perf_counter() - begin:6.2f} s {name}: {table[name]}", flush=True)
    with open(sys.argv[1], "w") as file:
        json.dump(table, file, indent=1)
        file.write("\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
