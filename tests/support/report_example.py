# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Made-up results in the shape of real ones: two hosts of eight GPUs, ring all-reduce."""

from __future__ import annotations

import random
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import towpath
from inside.collectives import LinkLoad, Measurement, RunRow, Timeline, measure
from inside.pages import provenance

NAMES = ["wait", "send", "receive_reduce_send", "receive_reduce_copy_send", "receive_copy_send",
         "receive", "segment"]  # fmt: skip


def example_report(ranks: int = 16, blocks: int = 8, loops: int = 10, sizes: int = 28) -> list:
    """A ring, a tree and a live ring; only the first has links and a timeline."""
    simulated = {"ranks": ranks, "blocks": blocks, "sizes": sizes}
    ring = example_run("ring", "Simple", 40.0, 330.0, loops=loops, **simulated)
    tree = example_run("tree", "LL128", 21.0, 190.0, **simulated)
    live = example_run("ring", "Simple", 90.0, 12.0, ranks=4, blocks=2, sizes=sizes, kind="live")
    return [ring, tree, live]


def example_run(
    schedule: str, protocol: str, latency_us: float, rate_gb_per_s: float, *, ranks: int,
    blocks: int, sizes: int, loops: int = 0, kind: str = "simulated",
) -> towpath.RunResult:  # fmt: skip
    """A run with a row per power of two from 8 bytes."""
    chance = random.Random(1)
    outcome = SimpleNamespace(
        links=example_links(ranks), limit=None, timeline=example_timeline(ranks, blocks, loops)
    )
    rows = []
    for power in range(3, 3 + sizes):
        size_bytes = 1 << power
        time_us = latency_us * chance.uniform(0.98, 1.02) + size_bytes / rate_gb_per_s / 1e3
        wrong = 0 if power < 28 else None
        rows.append(RunRow(
            size_bytes, size_bytes // 4, schedule, schedule, protocol, blocks,
            measure(time_us, size_bytes, "all_reduce", ranks, wrong),
            measure(time_us * 0.97, size_bytes, "all_reduce", ranks, wrong)
            if schedule == "ring" else None,
            again=(lambda size, traced: outcome) if loops else None,
        ))  # fmt: skip
    simulated = kind == "simulated"
    return towpath.RunResult(
        machine="dgx-h100", collective="all_reduce", kind=kind,
        where=f"dgx-h100, {ranks} ranks" if simulated else f"this host, {ranks} ranks",
        ranks=ranks, dtype="float32", op="sum", root=0, is_chosen=False,
        iterations=1 if simulated else 20, warmup=0 if simulated else 5,
        notes=("Sizes above 128 MiB keep time only: their data would not fit in memory.",),
        rows=tuple(rows), provenance=provenance(),
        command="towpath run all_reduce --machine dgx-h100 --sizes 8:1G",
        draw=lambda links: example_topology(ranks),
    )  # fmt: skip


def example_row(
    size_bytes: int, out_of_place: Measurement | None, in_place: Measurement | None, **other: Any
) -> RunRow:
    made = {"algorithm": "ring", "schedule": "ring", "protocol": "Simple", "channels": 4} | other
    return RunRow(size_bytes, size_bytes // 4, out_of_place=out_of_place, in_place=in_place, **made)


def example_timeline(ranks: int, blocks: int, loops: int) -> Timeline:
    """A ring: each step waits for its left neighbour's step before."""
    chance = random.Random(2)
    tracks = [f"rank {r} thread block {b}" for r in range(ranks) for b in range(blocks)]
    spans = []
    links: dict[str, list[tuple[int, int]]] = {}
    for block in range(blocks):
        for rank, name, begin_ps, end_ps, phase in block_spans(ranks, loops, chance):
            spans.append((rank * blocks + block, name, begin_ps, end_ps, phase))
            host, gpu = divmod(rank, 8)
            if NAMES[name] != "wait":
                link = f"link node{host}/gpu{gpu} > node{host}/nvswitch"
                links.setdefault(link, []).append((begin_ps, end_ps))
    for track, (name, busy) in enumerate(links.items(), len(tracks)):
        tracks.append(name)
        spans += [(track, 6, begin_ps, end_ps, 65536) for begin_ps, end_ps in segments(busy)]
    return Timeline(64 << 20, tracks, NAMES, spans)


def block_spans(
    ranks: int, loops: int, chance: random.Random
) -> Iterator[tuple[int, int, int, int, int]]:
    """Rank, index of its name, begin, end and phase of what one thread block of each rank does."""
    free_ps = [3_000_000 + chance.randrange(400_000) for _ in range(ranks)]
    arrived_ps = [0] * ranks
    phases = 2 * ranks - 1
    for step in range(loops * phases):
        phase = step % phases
        ended_ps = []
        for rank in range(ranks):
            begin_ps = max(free_ps[rank], arrived_ps[rank] if phase else 0)
            if begin_ps > free_ps[rank]:
                yield rank, 0, free_ps[rank], begin_ps, phase
            free_ps[rank] = begin_ps + chance.randrange(2_100_000, 2_600_000)
            yield rank, name_at(phase, ranks), begin_ps, free_ps[rank], phase
            is_last_of_host = rank % 8 == 7
            ended_ps.append(free_ps[rank] + (4_000_000 if is_last_of_host else 800_000))
        arrived_ps = [ended_ps[rank - 1] for rank in range(ranks)]


def name_at(phase: int, ranks: int) -> int:
    """The index of what a ring's rank does in a phase: send, reduce on, copy on, receive."""
    lasts = (0, ranks - 2, ranks - 1, 2 * ranks - 3)
    return 1 + sum(phase > last for last in lasts)


def segments(busy: list[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """What a link carries of spans that share it: a ninth of each, one after the other."""
    cursor_ps = 0
    for begin_ps, end_ps in sorted(busy):
        begin_ps = max(begin_ps, cursor_ps)
        cursor_ps = begin_ps + (end_ps - begin_ps if end_ps > begin_ps else 1) // 9
        yield begin_ps, cursor_ps


def example_links(ranks: int) -> list[LinkLoad]:
    chance = random.Random(3)
    links = []
    for rank in range(ranks):
        host, gpu = divmod(rank, 8)
        device = f"node{host}/gpu{gpu}"
        edge = gpu == 7
        for ends in ((device, f"node{host}/nvswitch"), (f"node{host}/nvswitch", device)):
            busy = chance.uniform(0.08, 0.13)
            links.append(LinkLoad(*ends, "nvlink", 110_000_000, busy))
        for ends in ((device, f"node{host}/nic{gpu}"), (f"node{host}/nic{gpu}", device)):
            links.append(LinkLoad(*ends, "pcie", 126_000_000 if edge else 0, 0.71 if edge else 0.0))
        adapter, leaf = f"node{host}/nic{gpu}", f"leaf{gpu}"
        for ends in ((adapter, leaf), (leaf, adapter)):
            busy = chance.uniform(0.9, 0.96)
            links.append(LinkLoad(*ends, "network", 126_000_000 if edge else 0, busy * edge))
    return links


def example_topology(ranks: int) -> str:
    parts = ['<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 640 420" font-size="10" '
             'font-family="sans-serif" text-anchor="middle">']  # fmt: skip
    for rank in range(ranks):
        host, gpu = divmod(rank, 8)
        x, y = 50 + gpu * 76, 120 if host == 0 else 300
        switch_y = 40 if host == 0 else 380
        parts.append(f'<line x1="{x}" y1="{y}" x2="320" y2="{switch_y}" stroke="#2b9c80"/>')
        parts.append(f'<rect x="{x - 26}" y="{y - 12}" width="52" height="24" fill="#dfe8f3"/>'
                     f'<text x="{x}" y="{y + 4}">gpu{gpu}</text>')  # fmt: skip
        if host == 1:
            width = 4 if gpu == 7 else 1
            parts.append(f'<line x1="{x}" y1="132" x2="{x}" y2="288" stroke="#3b74b8" '
                         f'stroke-width="{width}"/>')  # fmt: skip
    for host, y in ((0, 40), (1, 380)):
        parts.append(f'<rect x="270" y="{y - 14}" width="100" height="28" rx="4" fill="#d8eee8"/>'
                     f'<text x="320" y="{y + 4}">node{host}/nvswitch</text>')  # fmt: skip
    return "".join(parts) + "</svg>"
