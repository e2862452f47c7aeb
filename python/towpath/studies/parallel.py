# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Long work on all processors of this host, with a bar for those who wait."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection, wait
from typing import Any, TypeVar

from rich.console import Console
from rich.progress import Progress, track

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


class ProcessEnded(RuntimeError):
    """A process ended in the middle of an item, whose number is `item`; `how` says how."""

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
) -> list[_Result]:
    """The results of all items, in the items' order whichever is done first.

    Args:
        function: of a module when there are several processes, which import it.
        items: each goes to one call.
        label: what to show beside the bar.
        processes: how many to use; 1 stays in this one.

    Raises:
        ProcessEnded: a process was killed or crashed.
    """
    processes = min(processes, len(items))
    if processes <= 1:
        return [function(item) for item in _shown(items, label, len(items))]
    results = dict(_shown(in_processes(function, items, processes), label, len(items)))
    return [results[number] for number in range(len(items))]


@contextmanager
def progress_bar(label: str, total: int) -> Generator[Callable[[int], None], None, None]:
    """A bar for those who wait for one long item; what it gives is told how much of it is done."""
    console = Console(stderr=True)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task(label, total=total)
        yield lambda done: progress.update(task, completed=done)


def processors() -> int:
    """How many this process may use."""
    return len(os.sched_getaffinity(0))


def _shown(items: Iterable[_Item], label: str, total: int) -> Iterable[_Item]:
    console = Console(stderr=True)
    return track(
        items, label, total, console=console, transient=True, disable=not console.is_terminal
    )


def in_processes(
    function: Callable[[_Item], _Result], items: Sequence[_Item], processes: int
) -> Generator[tuple[int, _Result], None, None]:
    """Numbers of items with their results, as they come; closed early, it ends its processes.

    Each process has a pipe: an executor of concurrent.futures cannot say at which item one died,
    and leaves its processes and a warning behind when ctrl-C ends the command.

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
    """The worker's process: items in, results out."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # ctrl-C is for the command, which ends this
    threading.Thread(target=_end_with_parent, daemon=True).start()
    while True:
        try:
            item = connection.recv()
        except EOFError:
            return
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
