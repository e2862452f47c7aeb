# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Draws scaling.json as scaling.svg. Needs matplotlib, which towpath itself does not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("svg")
from matplotlib import pyplot  # noqa: E402

HERE = Path(__file__).resolve().parent
FIXED_RANKS = 64
WALL_LIMIT_S = 20
MEMORY_LIMIT_MIB = 2048
MORE, LARGER, QUIET = "#0b5fa5", "#c2571a", "#8a8a8a"


def draw_wall(axes: Any, result: dict[str, Any]) -> None:
    points = result["series"]["more_gpus"]
    first, last = points[0], points[-1]
    power = result["slopes"]["wall_s over steps, more GPUs"]
    axes.plot(
        [point["steps"] for point in points], [point["wall_s"] for point in points],
        marker="o", color=MORE, label=f"64 MiB on 16 to 1,024 GPUs: time ~ steps$^{{{power:.2f}}}$",
    )  # fmt: skip
    for point in points:
        axes.annotate(
            f"{point['ranks']:,}", (point["steps"], point["wall_s"]), textcoords="offset points",
            xytext=(6, -11), fontsize=8, color=MORE,
        )  # fmt: skip
    linear = [first["wall_s"], first["wall_s"] * last["steps"] / first["steps"]]
    axes.plot([first["steps"], last["steps"]], linear, ":", color=QUIET, label="linear in steps")
    axes.axhline(WALL_LIMIT_S, color=QUIET, linewidth=0.8)
    axes.annotate(f"{WALL_LIMIT_S} s", (first["steps"], WALL_LIMIT_S * 1.1), color=QUIET)
    axes.set_ylim(2e-3, 100)
    axes.set_ylabel("wall time, s")


def draw_cost_of_event(axes: Any, result: dict[str, Any]) -> None:
    names = {
        "more_gpus": ("64 MiB on 16 to 1,024 GPUs", MORE, "o"),
        "larger_array": (f"{FIXED_RANKS} GPUs, 64 MiB to 4 GiB", LARGER, "s"),
    }
    for name, (label, colour, marker) in names.items():
        points = result["series"][name]
        cost_ns = [point["wall_s"] / point["events"] * 1e9 for point in points]
        axes.plot(
            [point["events"] for point in points], cost_ns, marker=marker, color=colour, label=label
        )  # fmt: skip
        for point, cost in zip(points, cost_ns, strict=True):
            is_larger = name == "larger_array"
            if is_larger and point is points[0]:
                continue
            text = f"{point['size_bytes'] >> 20:,} MiB" if is_larger else f"{point['ranks']:,}"
            axes.annotate(
                text, (point["events"], cost), textcoords="offset points",
                xytext=(-14, -14) if is_larger else (-4, 7), fontsize=8, color=colour,
            )  # fmt: skip
    axes.set_xlabel("events")
    axes.set_ylim(10, 1000)
    axes.set_ylabel("wall time per event, ns")


def draw_memory(axes: Any, result: dict[str, Any]) -> None:
    points = result["series"]["more_gpus"]
    axes.plot(
        [point["steps"] for point in points], [point["peak_bytes"] / 2**20 for point in points],
        marker="o", color=MORE, label="64 MiB on 16 to 1,024 GPUs",
    )  # fmt: skip
    for point in points:
        axes.annotate(
            f"{point['ranks']:,}", (point["steps"], point["peak_bytes"] / 2**20),
            textcoords="offset points", xytext=(-4, 7), fontsize=8, color=MORE,
        )  # fmt: skip
    axes.axhline(MEMORY_LIMIT_MIB, color=QUIET, linewidth=0.8)
    axes.annotate("2 GiB", (points[0]["steps"], MEMORY_LIMIT_MIB * 1.04), color=QUIET)
    axes.set_ylim(20, 4096)
    axes.set_ylabel("peak memory of the process, MiB")


def main() -> None:
    result = json.loads((HERE / "scaling.json").read_text())
    matplotlib.rcParams.update({"svg.hashsalt": "towpath", "svg.fonttype": "none"})
    figure, (wall, event, memory) = pyplot.subplots(1, 3, figsize=(14, 4.6), layout="constrained")
    panels = (
        (wall, draw_wall, "lower right"),
        (event, draw_cost_of_event, "upper left"),
        (memory, draw_memory, "lower right"),
    )
    for axes, draw, place in panels:
        axes.set_xlabel("steps executed, all ranks together")
        draw(axes, result)
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.grid(True, which="major", color="#e4e4e4")
        axes.margins(x=0.1)
        axes.legend(loc=place, frameon=False, fontsize=8.5)
    figure.suptitle("Simulating a ring all-reduce on DGX H100, 8 channels, data off", fontsize=11)
    figure.savefig(HERE / "scaling.svg", metadata={"Date": None})


if __name__ == "__main__":
    main()
