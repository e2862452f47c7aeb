# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Tokens per second of vLLM with its own communicator, gloo and Towpath, in alternating runs.

Usage: FOLDER/bin/python benchmarks/live/vllm/compare.py [--ranks 2] [--rounds 3]
       FOLDER is what install.sh made.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path

COMMUNICATORS = ("own", "gloo", "towpath")
TIMEOUT_S = 600


def run(communicator: str, ranks: int, batches: int) -> dict | None:
    """What one server measured; None where it did not end well in its time."""
    environment = dict(os.environ)
    environment.pop("TOWPATH_VLLM", None)
    if communicator == "towpath":
        environment["TOWPATH_VLLM"] = "live"
    command = [
        sys.executable, str(Path(__file__).with_name("serve.py")), communicator,
        "--ranks", str(ranks), "--batches", str(batches),
    ]  # fmt: skip
    server = subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        printed, _ = server.communicate(timeout=TIMEOUT_S)
    except subprocess.TimeoutExpired:
        os.killpg(server.pid, 9)
        server.communicate()
        return None
    lines = [line for line in printed.splitlines() if line.startswith("{")]
    return json.loads(lines[-1]) if server.returncode == 0 and lines else None


def summary(runs: list[dict]) -> dict:
    """Medians over all batches of all runs of one communicator."""
    rates = [run["tokens"] / seconds for run in runs for seconds in run["seconds"]]
    of_ranks = [
        (rank, run["tokens"]) for run in runs for batch in run["communication"] for rank in batch
    ]
    return {
        "tokens per second": statistics.median(rates),
        "least": min(rates),
        "most": max(rates),
        "us per token": statistics.median(1e6 * rank[0] / tokens for rank, tokens in of_ranks),
        "us per call": statistics.median(1e6 * rank[2] for rank, _ in of_ranks),
        "calls per token": statistics.median(rank[1] / tokens for rank, tokens in of_ranks),
        "tokens": sorted({run["digest"] for run in runs}),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3, help="servers per communicator")
    parser.add_argument("--batches", type=int, default=5, help="timed batches per server")
    parser.add_argument("--only", nargs="*", choices=COMMUNICATORS, default=COMMUNICATORS)
    parser.add_argument("--json", help="file for all that was measured")
    arguments = parser.parse_args()
    runs: dict[str, list[dict]] = {name: [] for name in arguments.only}
    loads = []
    for turn in range(arguments.rounds):
        for name in arguments.only if turn % 2 == 0 else reversed(arguments.only):
            loads.append(os.getloadavg()[0])
            result = run(name, arguments.ranks, arguments.batches)
            print(f"{name}: {'did not end well' if result is None else result['seconds']}",
                  file=sys.stderr, flush=True)  # fmt: skip
            if result is not None:
                runs[name].append(result)
            if arguments.json:
                Path(arguments.json).write_text(json.dumps(runs, indent=1), encoding="utf-8")
    print(f"{arguments.ranks} ranks on {os.cpu_count()} processors; load before each run "
          f"{min(loads):.1f} to {max(loads):.1f}")  # fmt: skip
    print("communicator | tokens/s (least..most) | us in communication per token | "
          "us per call, median | calls per token | tokens")  # fmt: skip
    for name, done in runs.items():
        if not done:
            print(f"{name} | did not end well")
            continue
        row = summary(done)
        print(f"{name} | {row['tokens per second']:.0f} ({row['least']:.0f}..{row['most']:.0f}) | "
              f"{row['us per token']:.0f} | {row['us per call']:.1f} | "
              f"{row['calls per token']:.2f} | {' '.join(row['tokens'])}")  # fmt: skip
    digests = {run["digest"] for done in runs.values() for run in done}
    return 0 if all(runs.values()) and len(digests) == 1 else 1


if __name__ == "__main__":
    sys.exit(main())
