# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""One schedule, twice: simulated on two DGX H100 servers, and for real between 4 processes here.

What `make run` does. The schedule is a ring all-reduce of 4 ranks on 4 channels as MSCCL XML; in
the simulation two ranks sit in either server.
"""

import shlex
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
OUT = HERE.parents[1] / "out"
TOWPATH = Path(sys.executable).with_name("towpath")


def towpath(arguments: str) -> None:
    """Shows a command, then runs it; ends the example if it fails."""
    print(f"\n$ towpath {arguments}", flush=True)
    done = subprocess.run([TOWPATH, *shlex.split(arguments)], cwd=HERE)
    if done.returncode != 0:
        sys.exit(done.returncode)


def main() -> None:
    OUT.mkdir(exist_ok=True)
    report, trace = OUT / "two_nodes.html", OUT / "two_nodes.trace.json"
    towpath("verify all_reduce_ring_4.xml --sizes 64M")
    towpath(
        "run --schedule all_reduce_ring_4.xml --machine dgx-h100 --ranks-per-host 2 --live 4 "
        f"--sizes 8:64M:8 --out {shlex.quote(str(report))} --trace {shlex.quote(str(trace))}"
    )
    print(f"\nLook at file://{report} in a browser, and at {trace} in ui.perfetto.dev.")


if __name__ == "__main__":
    main()
