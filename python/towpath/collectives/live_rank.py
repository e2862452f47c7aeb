# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""One rank of a live run: `python -m towpath.collectives.live_rank CHANNEL RANK`.

live_processes starts it. It reads its job from the channel, runs it, and reports the result. The
first SIGINT or SIGTERM ends it, also while it waits in the core.
"""

from __future__ import annotations

import contextlib
import os
import signal
import statistics
import sys
import threading
import time
import traceback
from typing import TYPE_CHECKING, Any

from towpath.collectives.live_channel import RankChannel

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from towpath import _core
    from towpath.collectives.call import Call

    # So many calls from one buffer to another; the microseconds of each.
    Timed = Callable[[Any, Any, int], list[float]]


class Interrupted(KeyboardInterrupt):
    """The process received a signal to end. The text is the name of the signal."""


def what_happened(error: BaseException) -> str:
    """Clause that completes a sentence about the rank: "failed (KeyError: 'x')". One line."""
    text = " ".join(str(error).split())
    if isinstance(error, KeyboardInterrupt):
        return f"was interrupted ({text or 'SIGINT'})"
    if isinstance(error, SystemExit):
        code = error.code if isinstance(error.code, int) else int(error.code is not None)
        return f"exited early with status {code}"
    if isinstance(error, MemoryError):
        return f"ran out of memory ({text or 'no more is to be had'})"
    return f"failed ({': '.join(part for part in (type(error).__name__, text) if part)})"


def abandon(transport: _core.LiveTransport, error: BaseException) -> None:
    """Sends the other ranks the reason for giving up, unless they disagreed and already have it."""
    if getattr(error, "kind", None) == "disagreement":
        transport.leave()
        return
    transport.abandon(what_happened(error), getattr(error, "peer", None))


class Measuring:
    """This process's part of a job that measures collectives."""

    def __init__(
        self, job: dict[str, Any], channel: RankChannel, notice: _core.FailureNotice
    ) -> None:
        self.job = job
        self.channel = channel
        self.rank: int = job["rank"]
        self.timeout_s: float = job["options"].timeout_s
        self._is_waiting = False
        self._collectives: _core.LiveCollectives | None = None
        self._beat()

        from towpath import _core

        self._core = _core
        with self._waiting():
            self.transport = _core.connect_live(
                job["options"].transport, job["rendezvous"], self.rank, job["ranks"],
                timeout_s=self.timeout_s, notice=notice,
            )  # fmt: skip

    def run(self) -> None:
        """Measures all calls. Sends one message per call, and reports of progress."""
        # After connecting: a rank that may run on one core only would count as crowded.
        if self.job["core"] is not None:
            os.sched_setaffinity(0, {self.job["core"]})
        index = 0
        for asked in self.job["calls"]:
            call = asked.call()
            for size_bytes in asked.sizes_bytes:
                row = self._measure(call, size_bytes, asked.is_direct)
                self.channel.send({"index": index, **row})
                index += 1
        with self._waiting():
            self.transport.barrier(self.timeout_s)

    def _beat(self) -> None:
        """Reports to the launcher at intervals that this rank computes or makes progress."""

        def beat() -> None:
            seen = 0
            while True:
                transport = getattr(self, "transport", None)
                activity = 0 if transport is None else transport.activity
                if not self._is_waiting or activity != seen:
                    self.channel.send({})
                seen = activity
                time.sleep(self.job["options"].beat_s)

        threading.Thread(target=beat, daemon=True).start()

    @contextlib.contextmanager
    def _waiting(self) -> Iterator[None]:
        """Marks a section that may wait for other ranks."""
        self._is_waiting = True
        try:
            yield
        finally:
            self._is_waiting = False

    def _measure(self, call: Call, size_bytes: int, is_direct: bool) -> dict[str, Any]:
        from towpath.collectives.element_types import type_bytes

        elements = call.elements(size_bytes)
        timed = self._direct(call) if is_direct else self._planned(call, size_bytes)
        ways = {"out_of_place": call.schedule.out_of_place, "in_place": call.schedule.in_place}
        if is_direct and call.collective == "broadcast":
            ways["out_of_place"] = False  # the root's output would be a copy of its own
        columns = {
            name: self._column(call, timed, elements, name == "in_place") if runs else None
            for name, runs in ways.items()
        }
        with self._waiting():
            # A rank must not give memory back that a peer may still write to.
            self.transport.barrier(self.timeout_s)
        return {
            "collective": call.collective,
            "size_bytes": elements * type_bytes(call.type_name),
            "count": elements,
            "schedule": call.schedule.name,
            "protocol": self._core.name_of(call.schedule.protocol),
            "channels": call.schedule.channels,
            **columns,
        }

    def _planned(self, call: Call, size_bytes: int) -> Timed:
        """Runs calls by the schedule."""
        plan = call.plan(size_bytes)
        with self._waiting():
            # Before any memory is shared out, and so before anything can go astray.
            self.transport.agree(plan.statement, self.timeout_s)
        executor = self._core.Executor(self.transport, plan)
        return lambda source, output, times: executor.measure(
            self.transport, plan, source, output, times, self.timeout_s
        )

    def _direct(self, call: Call) -> Timed:
        """Runs calls without a schedule."""
        if self._collectives is None:
            with self._waiting():
                self._collectives = self._core.LiveCollectives(self.transport, self.timeout_s)
        collectives = self._collectives
        return lambda source, output, times: collectives.measure(
            call.collective, call.type_name, call.operation, call.schedule.root, source, output,
            times, self.timeout_s,
        )  # fmt: skip

    def _column(self, call: Call, timed: Timed, elements: int, in_place: bool) -> dict[str, Any]:
        """Checks one invocation on fresh data, then measures."""
        data = call.data(elements)
        buffers = self._core.RankBuffers(data, self.rank, in_place=in_place)
        views = (buffers.input, buffers.output)
        options = self.job["options"]

        def measure(times: int) -> list[float]:
            with self._waiting():
                return timed(*views, times)

        measure(1)
        wrong = data.count_wrong([buffers])
        # Repeating in place would pile sums on sums until they overflow; zeros stay zeros.
        buffers.clear_input()
        measure(options.warmup)
        with self._waiting():
            self.transport.barrier(self.timeout_s)
        points_us = _percentiles(measure(options.iterations))
        return {"percentiles_us": points_us, "wrong": wrong}


def _percentiles(times_us: list[float]) -> list[float]:
    """The minimum, the percentiles 25, 50, 75 and 99 (linear between neighbors), and the
    maximum.
    """
    once = len(times_us) == 1
    cuts = times_us * 99 if once else statistics.quantiles(times_us, n=100, method="inclusive")
    return [min(times_us), *(cuts[percent - 1] for percent in (25, 50, 75, 99)), max(times_us)]


def _measure(
    job: dict[str, Any], channel: RankChannel, notice: _core.FailureNotice
) -> dict[str, Any]:
    measuring = Measuring(job, channel, notice)
    try:
        measuring.run()
    except BaseException as error:
        abandon(measuring.transport, error)
        raise
    measuring.transport.leave()
    return {}


def _call(job: dict[str, Any], channel: RankChannel, notice: _core.FailureNotice) -> dict[str, Any]:
    """Calls the user's function with a communicator."""
    import pickle

    from towpath.collectives.live_communicator import join

    os.environ.update(
        RANK=str(job["rank"]), WORLD_SIZE=str(job["ranks"]), TOWPATH_JOB=job["rendezvous"]
    )
    _prepare_main(job["main"])
    function, arguments = pickle.loads(job["call"])
    with join(
        job["rendezvous"],
        job["rank"],
        job["ranks"],
        job["timeout_s"],
        transport=job["transport"],
        notice=notice,
    ) as communicator:
        return {"result": pickle.dumps(function(communicator, *arguments))}


def _prepare_main(main: dict[str, Any]) -> None:
    """Makes the launcher's main module importable here, like multiprocessing."""
    import multiprocessing
    from multiprocessing import spawn

    process = multiprocessing.current_process()
    process._inheriting = True  # type: ignore[attr-defined]  # a launch in here is an error
    try:
        spawn.prepare(main)
    finally:
        del process._inheriting  # type: ignore[attr-defined]


_JOBS: dict[str, Callable[[dict[str, Any], RankChannel, _core.FailureNotice], dict[str, Any]]] = {
    "measure": _measure,
    "call": _call,
}


def _raise_interrupted(number: int, _frame: object) -> None:
    for each in (signal.SIGINT, signal.SIGTERM):
        signal.signal(each, signal.SIG_DFL)
    raise Interrupted(signal.Signals(number).name)


def _run(channel: RankChannel, rank: int) -> int:
    try:
        for each in (signal.SIGINT, signal.SIGTERM):
            signal.signal(each, _raise_interrupted)
        job = channel.receive()

        from towpath import _core

        notice = _core.FailureNotice()
        channel.watch(notice)
        channel.send({"is_done": True, **_JOBS[job["kind"]](job, channel, notice)})
    except BaseException as error:
        what = what_happened(error)
        peer = getattr(error, "peer", None)
        is_own = peer is None or peer == rank
        sentence = f"rank {rank} (pid {os.getpid()}) {what}"
        channel.send({
            "error": sentence if is_own else " ".join(str(error).split()),
            "culprit": rank if is_own else peer, "what": what,
            "traceback": "".join(traceback.format_exception(error)),
        })  # fmt: skip
        return 1
    return 0


def main() -> None:
    """Entry point."""
    # Without the interpreter's own end, which would wait for threads of the user's function.
    code = _run(RankChannel(int(sys.argv[1])), rank=int(sys.argv[2]))
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            stream.flush()
    os._exit(code)


if __name__ == "__main__":
    main()
