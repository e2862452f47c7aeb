# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Document 000: its microbenchmarks, at the sizes of its plots."""

from __future__ import annotations

import re
import statistics
from collections import Counter
from itertools import pairwise, product
from typing import Any

from towpath import _core
from towpath.reproduce.documents import CannotRun, points
from towpath.studies.ethernet_links import (
    best_channels,
    bidirectional_gb_per_s,
    channels_that_fit,
    cluster_of,
    ring_us,
    ring_wire_us,
)

Result = dict[str, Any]
_LINE_BYTES_PER_NS = 12.5
_KIB = 1024
_BEST = (1024, 2048, 4096, 8192, 16384, 24576, 32768, 36864)
_ONE_WAY_NS = (530, 620)
_FIXED = (512, 1024, 2048, 4096, 16384)
_PING = (16, 1024, 2048, 16384)
_RING = (16, 32, 64, 128, 256, 512, 768, 1024)


def _curve(name: str, xs: list[float], ys: list[float], style: str = "line") -> dict[str, Any]:
    return {"name": name, "x": xs, "y": ys, "style": style}


def theirs(figure: str, series: str) -> tuple[list[float], list[float]]:
    """The published points of a series, if they are on this host."""
    rows = [
        row
        for row in points("ethernet_figures.csv")
        if row["figure"] == figure and row["series"].startswith(series) and row["x"] != "plateau"
    ]
    return [float(row["x"]) for row in rows], [float(row["y"]) for row in rows]


def _figure(title: str, how: str, axes: tuple[str, str], curves: list[dict[str, Any]]) -> Result:
    return {"title": title, "how": how, "x": axes[0], "y": axes[1], "curves": curves}


def best_bandwidth() -> Result:
    """ubench1: the best of up to 30 channels in each direction."""
    cluster = cluster_of("n300")
    found = {size: best_channels(cluster, size) for size in _BEST}
    rates = {size: rate for size, (rate, _) in found.items()}
    xs, ys = theirs("ubench1", "bidirectional best channel count")
    curves = [_curve("ours", [float(size) for size in rates], list(rates.values()))]
    if xs:
        curves.append(_curve("the document's plot", xs, ys, "points"))
    few = bidirectional_gb_per_s(cluster, 1024, 4)
    plateau = max(rates.values())
    return {
        "16384": rates[16384],
        "small_are_lower": [
            max(rates[1024], rates[2048]) / plateau,
            f"{rates[2048]:.1f} GB/s at 2 KiB, {plateau:.1f} at most",
        ],
        "32768": [
            rates[32768],
            f"{rates[16384]:.1f} GB/s at 16 KiB; {channels_that_fit(32768)} channels of 32 KiB fit",
        ],
        "recommended": [
            min(rates[4096], rates[8192], rates[16384]) / plateau,
            "the least of 4, 8 and 16 KiB over the best of all sizes",
        ],
        "more_channels_help": [rates[1024] / few - 1, "1 KiB, the best number against 4 channels"],
        "figure": _figure(
            "ubench1: best number of channels",
            "Both directions together.",
            ("packet size", "GB/s"),
            curves,
        ),
    }


def fixed_channels() -> Result:
    """ubench2: plateaus by packet size and number of channels."""
    cluster = cluster_of("n300")
    rates = {
        (size, channels): bidirectional_gb_per_s(cluster, size, channels, merged=False)
        for size in _FIXED
        for channels in (1, 2, 3, 4)
    }
    curves = []
    rows = points("ethernet_figures.csv")
    for channels in (1, 2, 3, 4):
        curves.append(
            _curve(
                f"ours, {channels} channels",
                [float(size) for size in _FIXED],
                [rates[size, channels] for size in _FIXED],
            )
        )
        own = [
            (float(row["series"].split("B")[0]), float(row["y"]))
            for row in rows
            if row["figure"] == "ubench2" and row["series"].endswith(f" {channels}ch")
        ]
        if own:
            curves.append(
                _curve(
                    f"plot, {channels} channels", [x for x, _ in own], [y for _, y in own], "points"
                )
            )
    rises = all(
        rates[small, channels] < rates[large, channels]
        for channels in (1, 2, 3, 4)
        for small, large in pairwise(_FIXED)
    )
    return {
        "rises": [rises, "20 plateaus, each higher than with the next smaller packet"],
        "figure": _figure(
            "ubench2: fixed numbers of channels",
            "Plateaus, both directions.",
            ("packet size", "GB/s"),
            curves,
        ),
    }


def plateaus() -> Result:
    """The published plateaus of ubench2 that are met within 6 %."""
    cluster = cluster_of("n300")
    errors = {}
    for row in points("ethernet_figures.csv"):
        if row["figure"] == "ubench2":
            size, channels = map(int, re.findall(r"[0-9]+", row["series"]))
            ours = bidirectional_gb_per_s(cluster, size, channels, merged=False)
            errors[size, channels] = ours / float(row["y"]) - 1
    if not errors:
        raise CannotRun("points", "the values read off the plots are not on this host")
    size, channels = max(errors, key=lambda place: abs(errors[place]))
    return {
        "within": [
            sum(abs(error) <= 0.06 for error in errors.values()),
            f"of {len(errors)}; the furthest is {errors[size, channels]:+.1%}, {size} B with "
            f"{channels} channels",
        ],
    }


def ring_trips() -> Result:
    """ubench3: modes of round trips, in steps of 10 ns."""
    cluster = cluster_of("t3000")

    def mode(hops: int, channels: int) -> float:
        times = ring_us(cluster, hops, 16, channels, merged=False)
        return statistics.mode(round(time, 2) for time in times)

    found = {
        f"{hops}_{channels}": mode(hops, channels)
        for hops, channels in ((8, 1), (8, 2), (8, 3), (8, 8), (12, 1), (2, 1), (4, 1))
    }
    names = {
        "8_1": "8 hops 1 channel (mode)",
        "8_2": "8 hops 2 channels (mode)",
        "8_3": "8 hops 3 channels (mode)",
        "8_8": "8 hops 8 channels (mode)",
        "12_1": "12 hops 1 channel (mode)",
    }
    curves = [_curve("ours, 8 hops", [1.0, 2.0, 3.0, 8.0], [found[f"8_{n}"] for n in (1, 2, 3, 8)])]
    seen = [
        (float(key.split("_")[1]), theirs("ubench3", name)[1])
        for key, name in names.items()
        if key.startswith("8")
    ]
    if all(ys for _, ys in seen):
        curves.append(
            _curve("plot, 8 hops", [x for x, _ in seen], [ys[0] for _, ys in seen], "points")
        )
    return {
        "12_1": found["12_1"],
        "8_8": found["8_8"],
        "hop_8_ns": 1000 * found["8_1"] / 8,
        **_choices_of_links(cluster),
        "configurable": [
            found["2_1"] < found["4_1"] < found["8_1"] < found["8_8"],
            "2, 4, 8 and 12 chips, 1 to 8 packets, any size",
        ],
        "figure": _figure(
            "ubench3: round trips by number of packets",
            "16 bytes, mode.",
            ("packets under way", "us"),
            curves,
        ),
    }


def _choices_of_links(cluster: Any) -> Result:
    """Times per hop of both rings over all choices of the links that the dispatcher leaves."""
    free = Counter(
        frozenset(chip for chip, _ in link.ends) for link in cluster.links if not link.is_reserved
    )
    hops: dict[int, list[float]] = {8: [], 12: []}
    for count, times in hops.items():
        chips = _core.t3000_ring(count)
        pairs = [frozenset(pair) for pair in zip(chips, [*chips[1:], chips[0]], strict=True)]
        for links in product(*(range(free[pair]) for pair in pairs)):
            if len(set(zip(pairs, links, strict=True))) < count:
                continue  # a link for two hops
            trips = _core.ring_ping_ns(
                cluster, chips=chips, merged=False, samples=2, links=links, finds_hazards=False
            )
            times.append(statistics.median(trips) / count)
    first = {
        count: statistics.median(ring_us(cluster, count, 16, 1, merged=False)) / count
        for count in (8, 12)
    }
    ranges = ", ".join(
        f"{count} hops {min(times):.1f} to {max(times):.1f} ns, {len(times)} choices"
        for count, times in hops.items()
    )
    spread = max(hops[8]) / min(hops[8]) - 1
    return {
        "twelve_over_eight": [
            first[12] / first[8] - 1,
            f"the first link between two chips; over all choices of links {ranges}",
        ],
        "choice_of_links": [0 < spread < 0.05, ranges],
    }


def ring_sizes() -> Result:
    """ubench4: round trips of eight hops by packet size, and without their bytes on links."""
    cluster = cluster_of("t3000")
    whole = {
        size: statistics.median(ring_us(cluster, 8, size, 1, merged=False))
        for size in (*_RING, 3072, 5120, 8192)
    }
    less = {size: time - ring_wire_us(cluster, 8, size) for size, time in whole.items()}
    curves = []
    for name, values, series in (
        ("", whole, "8-hop ring measured"),
        (", less bytes on links", less, "8-hop ring minus"),
    ):
        own = [values[size] for size in _RING]
        curves.append(_curve(f"ours{name}", [float(size) for size in _RING], own))
        xs, ys = theirs("ubench4", series)
        if xs:
            curves.append(_curve(f"plot{name}", xs, ys, "points"))
    return {
        "1024": whole[1024],
        "less_1024": less[1024],
        "hop_1k_us": whole[1024] / 8,
        "bytes_dominate_kib": [
            _doubled_at(whole) / _KIB,
            f"at 5 KiB {whole[5120] - whole[16]:.2f} of {whole[5120]:.2f} us "
            "are due to the size",
        ],
        "figure": _figure(
            "ubench4: round trips by packet size",
            "Eight hops, one packet.",
            ("packet size", "us"),
            curves,
        ),
    }


def _doubled_at(whole: dict[int, float]) -> float:
    """Size at which a trip takes twice the time of a single word."""
    below, above = 5120, 8192
    slope = (whole[above] - whole[below]) / (above - below)
    return below + (2 * whole[16] - whole[below]) / slope


def link_pings() -> Result:
    """ubench5: there and back over a link, with the document's arithmetic."""
    cluster = cluster_of("n300")
    parts: dict[str, dict[int, float]] = {}
    for size in _PING:
        pings = _core.link_ping(cluster, payload_bytes=size, samples=30)

        def median(name: str, pings: Any = pings) -> float:
            return statistics.median(getattr(ping, name) for ping in pings)

        one_hop = (median("send_and_receive_ns") - size / _LINE_BYTES_PER_NS) / 2
        for name, value in (
            ("sender full send+receive", median("send_and_receive_ns")),
            ("sender waiting for acks", median("wait_ns")),
            ("receiver full wait+ack", median("wait_and_answer_ns")),
            ("computed one hop time", one_hop),
            ("eth subsystem + link", one_hop - median("send_ns")),
            ("send", median("send_ns")),
        ):
            parts.setdefault(name, {})[size] = value
    curves = []
    for name, values in parts.items():
        if name == "send":
            continue
        curves.append(
            _curve(f"ours, {name}", [float(size) for size in values], list(values.values()))
        )
        xs, ys = theirs("ubench5", name)
        if xs:
            curves.append(_curve(f"plot, {name}", xs, ys, "points"))
    hop = parts["computed one hop time"]
    least, most = _ONE_WAY_NS
    beyond = {size: max(least / time, time / most) - 1 for size, time in hop.items()}
    return {
        "whole_16": parts["sender full send+receive"][16],
        "send_16": parts["send"][16],
        "one_way_beyond": [
            max(beyond.values()),
            ", ".join(f"{size} B {time:.0f} ns" for size, time in hop.items()),
        ],
        "link_mean": statistics.mean(parts["eth subsystem + link"].values()),
        "figure": _figure("ubench5: there and back over one link", "", ("payload", "ns"), curves),
    }
