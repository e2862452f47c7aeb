# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""One process of a live measurement: `python -m towpath.studies.mailbox_live_process`.

mailbox_live starts it. It reads its job as one line of JSON, and writes one line of JSON.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

import numpy as np

from towpath import _core

_WARMUP = 1000


def main() -> int:
    # What a library prints must not be taken for the answer.
    answer = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    job: dict[str, Any] = json.loads(sys.stdin.readline())
    try:
        if job["core"] is not None:
            os.sched_setaffinity(0, {job["core"]})
        print(json.dumps(_measure(job)), file=answer, flush=True)
    except (RuntimeError, ValueError, OSError) as error:
        print(json.dumps({"error": str(error)}), file=answer, flush=True)
        return 1
    return 0


def _measure(job: dict[str, Any]) -> dict[str, Any]:
    """Measures line and mailbox in turn, so that both are exposed to the same load of the host."""
    measurement = _core.LiveMailboxMeasurement(
        job["own"], job["other"], job["is_initiator"], job["timeout_s"]
    )
    rounds, size_bytes = job["rounds"], job["size_bytes"]
    each = max(job["iterations"] // rounds, 1)
    lines, messages = [], []
    measurement.line_ping_pong_ns(_WARMUP)
    measurement.ping_pong_ns(_WARMUP, size_bytes)
    for _ in range(rounds):
        lines += measurement.line_ping_pong_ns(each)
        messages += measurement.ping_pong_ns(each, size_bytes)
    rates = measurement.messages_per_s(job["blocks"], job["block_messages"], size_bytes)
    if not job["is_initiator"]:
        return {"rates": rates}
    local = measurement.local_ns(job["blocks"], 1000, size_bytes)
    return {"line": _counted(lines), "message": _counted(messages), "local_ns": _median(local)}


def _median(values: list[float]) -> float:
    return float(np.median(values))


def _counted(times_ns: list[float]) -> dict[str, list[float]]:
    """Times rounded to nanoseconds, with the number of times that each occurred."""
    times, counts = np.unique(np.maximum(np.round(times_ns), 1), return_counts=True)
    return {"times_ns": times.tolist(), "counts": counts.tolist()}


if __name__ == "__main__":
    sys.exit(main())
