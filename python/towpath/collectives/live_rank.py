# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""One rank of a live run: `python -m towpath.live_rank`, started by towpath.live.

Reads its job as one line of JSON, writes one line of JSON per size, or one with `error`.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from typing import Any

import numpy as np

from towpath import _core
from towpath.collectives.call import Call, buffers_of, wrong_elements
from towpath.collectives.data import type_bytes
from towpath.schedules.schedule_source import ScheduleSource


class Rank:
    """This process's part in a job."""

    def __init__(self, job: dict[str, Any]) -> None:
        self.job = job
        self.rank: int = job["rank"]
        self.timeout_s: float = job["timeout_s"]
        self.transport = _core.connect_shm(
            job["rendezvous"], self.rank, job["ranks"], timeout_s=self.timeout_s
        )

    def run(self) -> None:
        index = 0
        for asked in self.job["calls"]:
            schedule = ScheduleSource(**asked["source"]).schedule()
            call = Call(schedule, asked["type_name"], asked["operation"])
            for size_bytes in asked["sizes_bytes"]:
                report = {"index": index, **self._measure(call, size_bytes)}
                print(json.dumps(report), flush=True)
                index += 1
        self.transport.barrier(self.timeout_s)

    def _measure(self, call: Call, size_bytes: int) -> dict[str, Any]:
        elements = call.elements(size_bytes)
        plan = call.plan(size_bytes)
        # Before any memory is shared out, and so before anything can go astray.
        self.transport.agree(plan.statement, self.timeout_s)
        executor = _core.Executor(self.transport, plan)
        ways = {"out_of_place": call.schedule.out_of_place, "in_place": call.schedule.in_place}
        columns = {
            name: self._column(call, executor, plan, elements, name == "in_place") if runs else None
            for name, runs in ways.items()
        }
        # Nobody gives memory back that a peer may still write to.
        self.transport.barrier(self.timeout_s)
        return {
            "collective": call.collective,
            "size_bytes": elements * type_bytes(call.type_name),
            "count": elements,
            **columns,
        }

    def _column(
        self, call: Call, executor: _core.Executor, plan: _core.Plan, elements: int, in_place: bool
    ) -> dict[str, float]:
        """Checks one invocation on fresh data, then measures."""
        source, output = buffers_of(call, self.rank, elements, in_place)
        views = (source.view(np.uint8), output.view(np.uint8))
        executor.run(plan, *views, times=1, timeout_s=self.timeout_s)
        wrong = wrong_elements(call, self.rank, elements, output)
        # Repeating in place would pile sums on sums until they overflow; zeros stay zeros.
        source[:] = 0
        executor.run(plan, *views, times=self.job["warmup"], timeout_s=self.timeout_s)
        self.transport.barrier(self.timeout_s)
        time_us = executor.run(plan, *views, times=self.job["iterations"], timeout_s=self.timeout_s)
        return {"time_us": time_us, "wrong": wrong}


def _end_with_launcher() -> None:
    """The launcher keeps standard input open and silent; its end is the launcher's, however it
    came about."""
    os.read(sys.stdin.fileno(), 1)
    os._exit(1)


def main() -> int:
    line = sys.stdin.readline()
    if not line:
        return 1  # the launcher ended before it said what to do
    job = json.loads(line)
    threading.Thread(target=_end_with_launcher, daemon=True).start()
    try:
        Rank(job).run()
    except (RuntimeError, ValueError, MemoryError) as error:
        print(json.dumps({"error": str(error)}), flush=True)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
