# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Long work on all processors of this host, with a bar for those who wait."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from typing import TypeVar

from rich.console import Console
from rich.progress import track

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")

_LOOKS_FOR_PARENT_EVERY_S = 1.0


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
    """
    processes = min(processes, len(items))
    if processes <= 1:
        return [function(item) for item in _shown(items, label, len(items))]
    # Started afresh: a copy of this process would have only one of its threads, and all its locks.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(processes, context, _worker_begins, (os.getpid(),)) as executor:
        futures = [executor.submit(function, item) for item in items]
        try:
            for future in _shown(as_completed(futures), label, len(items)):
                future.result()
        except BaseException:
            executor.shutdown(wait=False, cancel_futures=True)
            raise
    return [future.result() for future in futures]


def processors() -> int:
    """How many this process may use."""
    return len(os.sched_getaffinity(0))


def _shown(items: Iterable[_Item], label: str, total: int) -> Iterable[_Item]:
    console = Console(stderr=True)
    return track(
        items, label, total, console=console, transient=True, disable=not console.is_terminal
    )


def _worker_begins(parent: int) -> None:
    """Ctrl-C ends a worker without a word, and so does its parent's end, whatever caused that."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    threading.Thread(target=_end_after, args=(parent,), daemon=True).start()


def _end_after(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(_LOOKS_FOR_PARENT_EVERY_S)
    os._exit(1)
