# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Document 004: the ping-pong of small messages on the described cluster, and on its RTL."""

from __future__ import annotations

import math
import os
from functools import lru_cache
from typing import Any

from towpath import _core
from towpath.api.machine import load
from towpath.errors import TowpathError
from towpath.specs import catalogue
from towpath.studies.mailbox_study import (
    DOCUMENT_CLUSTER,
    PUBLISHED_BREAKDOWN,
    MailboxStudy,
    StudyRequest,
    measure_study,
)

Result = dict[str, Any]
_ONE_WAY_NS = 720
_BINS_PER_DECADE = 40


def _study(request: StudyRequest) -> MailboxStudy:
    return measure_study(catalogue.load_mailbox_cluster(DOCUMENT_CLUSTER), request)


@lru_cache(maxsize=1)
def _trip() -> MailboxStudy:
    """The breakdown and the projections, which do not depend on the number of iterations."""
    return _study(StudyRequest(iterations=1_000, calm_iterations=1_000))


def latencies() -> Result:
    """A million iterations with interrupts, and 300,000 without."""
    study = _study(StudyRequest())
    calm, busy = study.latencies["without"], study.latencies["with"]
    most = max(calm["counts"]) / calm["iterations"]
    busy_most = max(busy["counts"]) / busy["iterations"]
    walks = sum(row["iterations"] for row in calm["plateaus"] if row["what"] == "page walks")
    reached = [row for row in busy["plateaus"] if row["iterations"]]
    switched = [row for row in reached if "context switch" in row["what"]]
    interrupted = [row["max_ns"] for row in reached if row["what"] == "interrupts"]
    return {
        "calm_mode": calm["mode_ns"],
        "calm_mean": calm["mean_ns"],
        "calm_max": calm["max_ns"],
        "busy_mode": busy["mode_ns"],
        "busy_round_trip": busy["mean_round_trip_ns"],
        "busy_max": busy["max_ns"],
        "busy_least": [busy["min_ns"], f"{busy['min_ns']:.0f} to {busy['max_ns']:.0f} ns"],
        "plateaus": [
            len(reached),
            ", ".join(f"{row['what']}: {row['median_ns']:.0f} ns" for row in reached),
        ],
        "share_at_mode": [most, f"{most:.1%} of the iterations without interrupts"],
        "busy_share_at_mode": [busy_most, f"{busy_most:.1%} of the iterations with interrupts"],
        "interrupt_max": [max(interrupted, default=0.0), "the slowest iteration with an interrupt"],
        "switches": [
            bool(switched),
            ", ".join(f"{row['what']}: {row['iterations']}" for row in switched),
        ],
        "switch_off": [
            calm["max_ns"] < 3000 < busy["max_ns"],
            "only runs with interrupts exceed 3 us",
        ],
        "walks": [
            walks > 0,
            f"{walks / calm['iterations']:.2%} of the iterations have a page walk",
        ],
        "sub_microsecond": [calm["mean_ns"] < 1000, f"{calm['mean_ns']:.1f} ns"],
        "recorded": [
            sum(calm["counts"]) == StudyRequest().calm_iterations and len(calm["counts"]) > 1,
            f"{sum(calm['counts'])} iterations with {len(calm['counts'])} different times",
        ],
        "different_times": [
            len(calm["times_ns"]),
            f"{min(calm['times_ns']):.0f} to {max(calm['times_ns']):.0f} ns",
        ],
        "figure_calm": _histogram("Figure 2, right: without interrupts", calm, (720.0, 1000.0)),
        "figure_busy": _histogram(
            "Figure 2, left: with interrupts", busy, (720.0, 1000.0, 2000.0, 500_000.0)
        ),
    }


def _histogram(title: str, row: dict[str, Any], theirs: tuple[float, ...]) -> dict[str, Any]:
    bins: dict[int, int] = {}
    for time_ns, count in zip(row["times_ns"], row["counts"], strict=True):
        place = math.floor(math.log10(time_ns) * _BINS_PER_DECADE)
        bins[place] = bins.get(place, 0) + count
    edges = [10 ** (place / _BINS_PER_DECADE) for place in sorted(bins)]
    counts = [float(bins[place]) for place in sorted(bins)]
    low = min(counts)
    return {
        "title": title,
        "how": "Iterations by their time; squares are plateaus of the document.",
        "x": "one way (ns)",
        "x_scale": "log",
        "y": "iterations",
        "y_scale": "log",
        "curves": [
            {"name": "ours", "x": edges, "y": counts, "style": "stem"},
            {
                "name": "the document's plateaus",
                "x": list(theirs),
                "y": [low] * len(theirs),
                "style": "points",
            },
        ],
    }


def breakdown() -> Result:
    """The events of a round trip, in cycles, and the parts of one way."""
    study = _trip()
    events = {row["what"]: row["cycle"] for row in study.breakdown}
    keys = (
        "write",
        "header",
        "poll",
        "acknowledged",
        "answer_leaves",
        "answer_arrives",
        "seen",
        "read",
        "next",
    )
    cycles = {key: events[what] for key, (*_, what) in zip(keys, PUBLISHED_BREAKDOWN, strict=True)}
    parts: dict[str, float] = {}
    for row in study.parts:
        parts[row["kind"]] = parts.get(row["kind"], 0) + row["cycles"]
    waits = sorted({row["seen_after_cycles"] for row in study.phases})
    trips = {row["round_trip"] for row in study.phases}
    spec = catalogue.load_mailbox_cluster(DOCUMENT_CLUSTER)
    return {
        **{key: cycle for key, cycle in cycles.items() if key != "write"},  # the origin
        "software": parts["software"],
        "hardware": parts["hardware"],
        "traverse": parts["traverse"],
        "one_way_ns": 1e3 / spec.core_clock_mhz.value * sum(parts.values()),
        "wait_depends": [len(waits) > 1, f"waits of {waits} cycles, trips of {sorted(trips)}"],
        "poll_cycles": spec.software.poll_cycles.value,
        "figure": {
            "title": "Figure 3: events of a round trip",
            "how": "Cycles of node 0's clock.",
            "x": "event",
            "y": "cycle",
            "curves": [
                {
                    "name": "ours",
                    "x": list(map(float, range(len(keys)))),
                    "y": [float(cycles[key]) for key in keys],
                },
                {
                    "name": "the document",
                    "x": list(map(float, range(len(keys)))),
                    "y": [float(row[2]) for row in PUBLISHED_BREAKDOWN],
                    "style": "points",
                },
            ],
        },
    }


def cluster() -> Result:
    """The described node and ring, and its limits."""
    spec = catalogue.load_mailbox_cluster(DOCUMENT_CLUSTER)
    core = spec.build()

    def one_way(**options: Any) -> float:
        asked = _core.PingPongOptions(
            iterations=100, has_interruptions=False, has_page_walks=False, **options
        )
        cycles, _, _ = _core.run_ping_pong(core, asked)
        return float(cycles[20:].mean()) / 2

    try:
        one_way(size_bytes=spec.packetizer.payload_bytes_max.value + spec.word_bytes.value)
        beyond = ""
    except (TowpathError, ValueError) as error:
        beyond = str(error)
    larger = spec.with_figures(nodes=8)
    far = (
        _core.run_ping_pong(
            larger.build(),
            _core.PingPongOptions(
                iterations=100, has_interruptions=False, has_page_walks=False, hops=4
            ),
        )[0][20:].mean()
        / 2
    )
    near = one_way()
    by_size = {size: 10 * one_way(size_bytes=size) for size in range(8, 57, 8)}
    four: Any = load(DOCUMENT_CLUSTER, ranks=4)
    reduced = four.run("all_reduce", size_bytes="1K")
    slow = spec.with_figures(software__store_cycles=4)
    slower = (
        _core.run_ping_pong(
            slow.build(),
            _core.PingPongOptions(iterations=100, has_interruptions=False, has_page_walks=False),
        )[0][20:].mean()
        / 2
    )
    options = {"senders": 8, "messages": 200, "burst_messages": 8, "pause_cycles": 4000}
    many = spec.with_figures(nodes=4, cores_per_node=32)
    received, _, _ = _core.run_mailbox_stream(many.build(), **options)
    return {
        "core_mhz": spec.core_clock_mhz.value,
        "line_gbps": 8 * spec.ring.line_rate_gb_per_s.value,
        "ring": [bool(far > near), f"{near:.0f} cycles to the next node, {far:.0f} over four hops"],
        "more_nodes": [reduced.wrong == 0, "four nodes reduce 1 KiB"],
        "stores": spec.software.store_cycles.value,
        "early_acknowledged": [
            bool(slower > near),
            f"with stores of 4 cycles {slower - near:.0f} cycles " "more",
        ],
        "contexts": spec.packetizer.contexts.value,
        "queues": [received == 8 * 200, f"{received} messages of 8 senders in their mailboxes"],
        "small_packets": [
            spec.packetizer.payload_bytes_max.value <= 64 and near > 0,
            f"up to {spec.packetizer.payload_bytes_max.value} bytes",
        ],
        "maximum_size": ["it must carry 1 to 64" in beyond, beyond],
        "message_bytes": [
            min(by_size, key=lambda size: abs(by_size[size] - _ONE_WAY_NS)),
            "the size with 720 ns: "
            + ", ".join(f"{size} B {time:.0f} ns" for size, time in by_size.items()),
        ],
        "rdcycle": spec.software.cycle_counter_cycles.value,
    }


def projection() -> Result:
    """One way at 1 GHz, by the parts that scale."""
    rows = _trip().projections
    simulated = [row["one_way_ns"] for row in rows if row["how"] == "simulated"]
    own = next(row["one_way_ns"] for row in rows if row["how"] == "arithmetic")
    return {
        "arithmetic": [own, rows[-2]["what"]],
        "simulated": [
            simulated[0],
            "core, packetizer, mailbox and line rate at ten times their clock; other cases "
            + ", ".join(f"{value:.0f}" for value in simulated[1:]),
        ],
    }


def library() -> Result:
    """The library of mailboxes between processes of this host."""
    import towpath

    receiver = towpath.Mailbox(f"reproduce-{os.getpid()}/receiver")
    sender = towpath.Mailbox(f"reproduce-{os.getpid()}/sender")
    sender.send(f"reproduce-{os.getpid()}/receiver", b"up to 56 bytes")
    taken = receiver.receive(timeout_s=5.0)
    return {"user_level": [taken == b"up to 56 bytes", "a message without a system call"]}
