#!/usr/bin/env python3
# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Synthesises the hardware with yosys for Xilinx and prints a table of cells per module.

Usage: rtl/synth.py [MODULE ...]

A path is the longest chain of cells between registers, memories and ports, with each carry and each
multiplexer behind a table as a cell of its own; yosys knows no wires and no delays, so that it says
how deep the logic is, not how fast.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path

HARDWARE = Path(__file__).parent / "hw"
NETWORK = (
    "net", "fifo", "packet_mux", "ring_route", "ring_channel", "ring_stop", "packetizer", "mailbox",
    "network_node",
)  # fmt: skip
CORE = (
    "rv", "fifo", "rv_decompress", "rv_decode", "rv_alu", "rv_muldiv", "rv_csr", "rv_tlb",
    "rv_walker", "rv_fetch", "rv_lsu", "rv_bus", "rv_bypass", "rv_core",
)  # fmt: skip
MODULES = {
    "packetizer": NETWORK, "mailbox": NETWORK, "ring_stop": NETWORK, "network_node": NETWORK,
    "rv_fetch": CORE, "rv_lsu": CORE, "rv_csr": CORE, "rv_muldiv": CORE, "rv_tlb": CORE,
    "rv_walker": CORE, "rv_core": CORE,
}  # fmt: skip


def synthesise(module: str) -> str:
    """The output of yosys: statistics of cells, and the longest path."""
    files = " ".join(str(HARDWARE / f"{name}.sv") for name in MODULES[module])
    with tempfile.NamedTemporaryFile("w", suffix=".ys") as script:
        script.write(
            f"read_verilog -sv {files}\nsynth_xilinx -family xcup -flatten -top {module} -noiopad\n"
            "stat\ndelete t:FD* t:RAM* t:DSP* t:BUFG*\nltp\n"
        )
        script.flush()
        done = subprocess.run(["yosys", script.name], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{module}: {done.stderr.strip() or done.stdout[-2000:]}")
    return done.stdout


def cells_of(output: str) -> dict[str, int]:
    """Cells by type, from the last statistics of an output."""
    statistics = output[output.rindex("Number of cells:") :]
    rows = re.findall(r"^ {5,}(\w+) +(\d+)$", statistics, re.MULTILINE)
    return {name: int(count) for name, count in rows}


def row_of(module: str) -> str:
    """A line of the table."""
    output = synthesise(module)
    cells = cells_of(output)

    def count(pattern: str) -> int:
        return sum(number for name, number in cells.items() if re.fullmatch(pattern, name))

    path = re.findall(r"Longest topological path in \w+ \(length=(\d+)\)", output)
    columns = (
        count(r"LUT\d"), count(r"RAM\d+M?\w*|RAM\w*D\w*"), count(r"FD\w+"), count(r"RAMB18\w*"),
        count(r"RAMB36\w*"), count(r"DSP\w*"), path[-1] if path else "?",
    )  # fmt: skip
    return f"| {module} | " + " | ".join(str(value) for value in columns) + " |"


def main(arguments: list[str]) -> None:
    unknown = [name for name in arguments if name not in MODULES]
    if unknown:
        sys.exit(f"synth: no module is called {unknown[0]!r}; there are {', '.join(MODULES)}")
    print("| module | LUTs | LUT memories | registers | RAMB18 | RAMB36 | DSPs | path |")
    print("|---|---|---|---|---|---|---|---|")
    for module in arguments or MODULES:
        print(row_of(module), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
