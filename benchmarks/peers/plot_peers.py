# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Draws results.json as results.svg and prints its tables. Needs matplotlib."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("svg")
from matplotlib import pyplot  # noqa: E402

HERE = Path(__file__).resolve().parent
COLOURS = {
    "Towpath": "#0b5fa5", "Towpath, all ranks": "#6aa7d6", "LogGOPSim": "#c2571a",
    "SimGrid": "#4d7f3a", "ASTRA-sim": "#8a5aa8",
    "BookSim2": "#c2571a",
}  # fmt: skip

Row = dict[str, Any]


def programs_of(rows: list[Row]) -> list[str]:
    return list(dict.fromkeys(row["program"] for row in rows))


def draw_lines(axes: Any, rows: list[Row], column: int, label: str) -> None:
    """Time over ranks or bytes; of Towpath also, dashed, without the start of Python."""
    for program in programs_of(rows):
        own = [row for row in rows if row["program"] == program]
        places = [row["case"][column] for row in own]
        colour = COLOURS[program]
        axes.plot(places, [row["wall_s"] for row in own], marker="o", color=colour, label=program)
        if program.startswith("Towpath"):
            axes.plot(places, [row["inside_s"] for row in own], "--", marker="o", color=colour)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_ylim(3e-3, 30)
    axes.set_xlabel(label)
    axes.set_ylabel("time, s (dashed: without the start of Python)")


def draw_bars(axes: Any, rows: list[Row]) -> None:
    """Router passes per second, by load, VCs and flits."""
    cases = list(dict.fromkeys(tuple(row["case"]) for row in rows))
    programs = programs_of(rows)
    width = 0.8 / len(programs)
    for number, program in enumerate(programs):
        own = {tuple(row["case"]): row for row in rows if row["program"] == program}
        axes.bar(
            [place + number * width for place in range(len(cases))],
            [own[case]["passes_per_s"] / 1e6 for case in cases], width,
            color=COLOURS[program], label=program,
        )  # fmt: skip
    middle = (len(programs) - 1) * width / 2
    axes.set_xticks(
        [place + middle for place in range(len(cases))],
        [f"{vcs} VCs,\n{flits} flit{'s' * (flits > 1)}" for _, vcs, flits in cases],
    )
    axes.set_yscale("log")
    axes.set_ylim(0.1, 200)
    axes.set_ylabel("router passes per second, millions")
    axes.legend(frameon=False, ncols=2, loc="upper center")


def print_rings(rows: list[Row]) -> None:
    print("| ranks | MiB per rank | program | process, s | simulation, s | messages/s | MiB | us |")
    print("|---:|---:|---|---:|---:|---:|---:|---:|")
    for row in rows:
        ranks, size_bytes = row["case"]
        print(
            f"| {ranks:,} | {size_bytes >> 20:,} | {row['program']} | {row['wall_s']:.3g} "
            f"| {row['inside_s']:.3g} | {row['messages_per_s'] / 1e6:.3g} M "
            f"| {row['memory_mib']:.0f} | {row['simulated_us']:,.0f} |"
        )


def print_networks(rows: list[Row]) -> None:
    print("| load | VCs | flits | program | passes/s | MiB |")
    print("|---:|---:|---:|---|---:|---:|")
    for row in rows:
        load, vcs, flits = row["case"]
        print(
            f"| {load} | {vcs} | {flits} | {row['program']} | {row['passes_per_s'] / 1e6:.3g} M "
            f"| {row['memory_mib']:.0f} |"
        )


def main() -> None:
    results = json.loads((HERE / "results.json").read_text())
    figure, (ranks, sizes, networks) = pyplot.subplots(1, 3, figsize=(15, 4.2))
    draw_lines(ranks, results["ranks"], 0, "ranks, 64 MiB each")
    draw_lines(sizes, results["bytes"], 1, "bytes per rank, 64 ranks")
    draw_bars(networks, results["noc"])
    for axes in (ranks, sizes, networks):
        axes.spines[["top", "right"]].set_visible(False)
    figure.legend(
        *ranks.get_legend_handles_labels(), frameon=False, ncols=5, loc="lower left",
        bbox_to_anchor=(0.03, 0),
    )  # fmt: skip
    figure.tight_layout(rect=(0, 0.08, 1, 1))
    figure.savefig(HERE / "results.svg")
    print_rings(results["ranks"] + results["bytes"])
    print()
    print_networks(results["noc"])


if __name__ == "__main__":
    main()
