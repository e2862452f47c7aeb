# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Process-pool map that reports its progress."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Generator, Sequence
from contextlib import suppress
from multiprocessing.connection import Connection, wait
from typing import Any, TypeVar

from towpath.studies.interrupts import children_without_interrupts
from towpath.studies.progress import Progress, silent

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


class ProcessEnded(RuntimeError):
    """A process ended while it worked on an item.

    Attributes:
        item: the number of the item.
        how: exit code or signal, as a phrase.
    """

    def __init__(self, item: int, exit_code: int) -> None:
        how = (
            f"was killed by {signal.Signals(-exit_code).name}"
            if exit_code < 0
            else f"ended with exit code {exit_code}"
        )
        super().__init__(f"the process at work on item {item} {how}")
        self.item = item
        self.how = how


def map_in_order(
    function: Callable[[_Item], _Result],
    items: Sequence[_Item],
    label: str,
    processes: int = 1,
    *,
    progress: Progress = silent,
) -> list[_Result]:
    """Calls a function with every item.

    Args:
        function: a function at the top level of a module if there are several processes, which
            import it.
        items: each goes to one call.
        label: text next to the progress.
        processes: number of processes; 1 stays in this process.
        progress: a display of the number of completed items.

    Returns:
        The results in the order of the items, whatever the order of completion.

    Raises:
        ProcessEnded: a process was killed or crashed.
    """
    processes = min(processes, len(items))
    results: dict[int, _Result] = {}
    with progress(label, len(items)) as update:
        if processes <= 1:
            for number, item in enumerate(items):
                results[number] = function(item)
                update(len(results))
        else:
            for number, result in in_processes(function, items, processes):
                results[number] = result
                update(len(results))
    return [results[number] for number in range(len(items))]


def processors() -> int:
    """Number of processors available to this process."""
    return len(os.sched_getaffinity(0))


def in_processes(
    function: Callable[[_Item], _Result], items: Sequence[_Item], processes: int
) -> Generator[tuple[int, _Result], None, None]:
    """Numbers of items with their results, in order of completion. Closing it early ends its
    processes.

    Each process has a pipe. An executor of concurrent.futures cannot report at which item a process
    died, and leaves its processes and a warning behind when Ctrl-C ends the command.

    Raises:
        ProcessEnded: a process was killed or crashed.
    """
    waiting = deque(enumerate(items))
    workers = [_Worker(function) for _ in range(processes)]
    busy: dict[Any, tuple[_Worker, int]] = {}

    def hand_out(worker: _Worker) -> None:
        if waiting:
            number, item = waiting.popleft()
            worker.send(item)
            busy[worker.connection] = (worker, number)

    try:
        for worker in workers:
            hand_out(worker)
        while busy:
            for connection in wait(list(busy)):
                worker, number = busy.pop(connection)
                result = worker.receive(number)
                hand_out(worker)
                yield number, result
    finally:
        for worker in workers:
            worker.end()


class _Worker:
    """A process that takes one item at a time."""

    def __init__(self, function: Callable[[Any], Any]) -> None:
        # Started afresh: a copy of this process would have one of its threads, and all its locks.
        context = multiprocessing.get_context("spawn")
        self.connection, far_end = context.Pipe()
        self._process = context.Process(target=_serve, args=(function, far_end), daemon=True)
        with children_without_interrupts():
            self._process.start()
        far_end.close()  # so that its death is seen here

    def send(self, item: object) -> None:
        with suppress(ConnectionError):  # it died; receive() tells
            self.connection.send(item)

    def receive(self, number: int) -> Any:
        try:
            result, error = self.connection.recv()
        except (EOFError, ConnectionError):
            self._process.join()
            raise ProcessEnded(number, self._process.exitcode or 0) from None
        if error is not None:
            raise error
        return result

    def end(self) -> None:
        self._process.terminate()
        self._process.join()
        self.connection.close()


def _serve(function: Callable[[Any], Any], connection: Connection) -> None:
    """The worker's process: receives items, and sends results."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    while True:
        try:
            item = connection.recv()
        except EOFError:
            return
        answer: tuple[Any, Exception | None]
        try:
            answer = function(item), None
        except Exception as error:
            answer = None, error
        connection.send(answer)


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
    os._exit(1)
