# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""A program of a framework on gloo and on Towpath in alternating runs: its results and times.

Usage: python benchmarks/live/frameworks/compare.py llama|zero [--ranks 2] [--rounds 3]

Exits with 1 where the results differ or a run does not end well.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

BACKENDS = ("gloo", "towpath")
TIMEOUT_S = 300


def run(program: str, backend: str, ranks: int) -> dict | None:
    """What rank 0 printed; None where the program did not end well in its time."""
    script = str(Path(__file__).with_name(f"{program}.py"))
    with tempfile.TemporaryDirectory() as folder:
        process = subprocess.Popen(
            [sys.executable, "-m", "torch.distributed.run", "--standalone",
             "--nproc-per-node", str(ranks), script, backend, folder],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
            env={**os.environ, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"},
        )  # fmt: skip
        try:
            printed, errors = process.communicate(timeout=TIMEOUT_S)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            printed, errors = process.communicate()
    lines = [line for line in printed.splitlines() if line.startswith('{"digest"')]
    if process.returncode == 0 and lines:
        return json.loads(lines[-1])
    print(errors[-2000:], file=sys.stderr)
    return None


def summary(results: list[dict]) -> str:
    """Of the runs of one backend that ended well."""
    if not results:
        return "did not end well"
    times_ms = [1e3 * seconds for each in results for seconds in each["seconds"]]
    return (
        f"{len(results)} runs, median {statistics.median(times_ms):.1f} ms "
        f"({min(times_ms):.1f}..{max(times_ms):.1f}), "
        f"results {' '.join(sorted({each['digest'] for each in results}))}"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program", choices=["llama", "zero"])
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3, help="runs per backend")
    arguments = parser.parse_args()
    runs: dict[str, list[dict | None]] = {backend: [] for backend in BACKENDS}
    for turn in range(arguments.rounds):
        for backend in BACKENDS if turn % 2 == 0 else reversed(BACKENDS):
            runs[backend].append(run(arguments.program, backend, arguments.ranks))
    for backend, results in runs.items():
        print(f"{arguments.program} {backend:8} {summary([each for each in results if each])}")
    digests = {each and each["digest"] for results in runs.values() for each in results}
    return 0 if len(digests) == 1 and None not in digests else 1


if __name__ == "__main__":
    sys.exit(main())
