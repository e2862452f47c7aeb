#!/usr/bin/env python3
# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""How long commands take from their first line to their end, imports included.

    python benchmarks/cli/commands.py [TOWPATH...]

Each command runs nine times with each `towpath` that is named, in turn, after one run that leaves
compiled modules; the table has the medians of processor time and of wall time.
"""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time

RUNS = 9
_SMALL = "--algorithm ring --protocol Simple --channels 8 --sizes 1M"
COMMANDS = (
    "--help",
    "validate --help",
    "algorithms",
    "machines",
    "show dgx-h100",
    "show n300",
    f"run all_reduce --machine dgx-h100 --ranks 8 {_SMALL} --no-data",
    f"run all_reduce --machine dgx-h100 --ranks 8 {_SMALL}",
    "run all_reduce --machine dgx-h100 --sizes 1M",
    "run all_reduce --machine n300 --sizes 4K",
    "run all_reduce --machine t3000 --sizes 4K",
    "run all_reduce --machine carvnet --ranks 4 --sizes 1K",
)


def measure(words: list[str], environment: dict[str, str]) -> tuple[float, float]:
    """Processor time and wall time of a command, in seconds."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(words, stdout=subprocess.DEVNULL, env=environment, check=True)
    wall = time.perf_counter() - start
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return spent, wall


def main() -> None:
    programs = sys.argv[1:] or ["towpath"]
    headings = [f"{program}, {kind} s" for program in programs for kind in ("CPU", "wall")]
    print(f"| `towpath` | {' | '.join(headings)} |")
    print(f"|---|{'---|' * len(headings)}")
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "PYTHONPYCACHEPREFIX": folder}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        for command in COMMANDS:
            times: dict[str, list[tuple[float, float]]] = {program: [] for program in programs}
            for _ in range(1 + RUNS):
                for program in programs:
                    words = [program, *command.split()]
                    times[program].append(measure(words, environment))
            cells = [
                f"{statistics.median(each):.3f}"
                for program in programs
                for each in zip(*times[program][1:], strict=True)
            ]
            print(f"| `{command}` | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
