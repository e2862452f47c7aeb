#!/usr/bin/env python3
# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Looks for a run of the mailbox that breaks a promise, among all runs of so many cycles.

Usage: rtl/formal/prove.py [CYCLES]
Needs yosys with yosys-smtbmc, and z3. Exits 1 where there is such a run, and prints it.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

RTL = Path(__file__).parent.parent
FILES = [RTL / "hw" / f"{name}.sv" for name in ("net", "fifo", "mailbox")]


def main(arguments: list[str]) -> int:
    cycles = arguments[0] if arguments else "16"
    with tempfile.TemporaryDirectory() as folder:
        smt = Path(folder) / "mailbox.smt2"
        files = " ".join(map(str, [*FILES, RTL / "formal" / "mailbox_formal.sv"]))
        script = (
            f"read_verilog -formal -sv {files}; prep -top mailbox_formal -flatten; "
            f"memory; opt -full; dffunmap; opt_clean; write_smt2 -wires {smt}"
        )
        subprocess.run(["yosys", "-q", "-p", script], check=True)
        command = ["yosys-smtbmc", "-s", "z3", "--presat", "-t", cycles, str(smt)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    print(done.stdout if done.returncode else done.stdout.strip().splitlines()[-1])
    return done.returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
