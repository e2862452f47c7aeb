#!/usr/bin/env python3
# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Looks for a run of the mailbox that breaks a promise, among all runs of so many cycles.

Usage: rtl/formal/prove.py [CYCLES]
Needs yosys, whose solver searches. Exits 1 where there is such a run, and prints it.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

RTL = Path(__file__).parent.parent
FILES = [
    *(RTL / "hw" / f"{name}.sv" for name in ("net", "fifo", "mailbox")),
    RTL / "formal" / "mailbox_formal.sv",
]


def main(arguments: list[str]) -> int:
    cycles = arguments[0] if arguments else "6"
    script = (
        f"read_verilog -formal -sv {' '.join(map(str, FILES))}; prep -top mailbox_formal -flatten; "
        "memory; opt -full; dffunmap; opt_clean; sat -tempinduct-baseonly -prove-asserts "
        f"-set-assumes -set-init-undef -set-def-inputs -maxsteps {cycles} mailbox_formal"
    )
    done = subprocess.run(["yosys", "-p", script], capture_output=True, text=True, check=False)
    searched = re.findall(r"base case (\d+)\] Solving", done.stdout)
    is_broken = "model found" in done.stdout
    if is_broken or searched[-1:] != [cycles]:
        print(done.stdout[done.stdout.rfind("[base case") :] + done.stderr)
        return 1
    print(f"no run of up to {cycles} cycles breaks a promise")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
