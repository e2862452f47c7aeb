# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""How many threads one simulation may have, and several simulations side by side."""

from __future__ import annotations

import os
import sys
import threading
from typing import TYPE_CHECKING, TypeVar

from towpath.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

Item = TypeVar("Item")
Found = TypeVar("Found")

_VARIABLE = "TOWPATH_THREADS"


def threads_for(asked: int | None) -> int:
    """The number of threads of a simulation.

    Args:
        asked: what the caller wants; None: `$TOWPATH_THREADS`, or else one per processor in the
            main process, and one in a process beside which others simulate, too. A simulation of
            few events starts none of them.

    Raises:
        ConfigError: the variable is not a number of threads.
    """
    if asked is None and (text := os.environ.get(_VARIABLE)):
        if not text.isdecimal() or int(text) < 1:
            raise ConfigError(f"${_VARIABLE} is '{text}'; it is the number of threads, 1 or more")
        asked = int(text)
    if asked is None:
        asked = 1 if _is_one_of_many() else len(os.sched_getaffinity(0))
    return asked


def on_several_threads(
    function: Callable[[Item], Found], items: Sequence[Item], threads: int
) -> list[Found]:
    """What a function returns for each item, in the items' order; the calling thread works, too.

    The function should spend its time in the core, where other threads can go on.

    Args:
        function: called once for each item, from any of the threads.
        items: what it is called with; those in front are begun first.
        threads: how many work at a time.

    Raises:
        BaseException: what the function raised for the first of the items for which it did. Items
            behind it may not have been begun.
    """
    numbers = iter(range(len(items)))
    found: dict[int, Found] = {}
    errors: dict[int, BaseException] = {}

    def work() -> None:
        for number in numbers:
            if errors:
                return
            try:
                found[number] = function(items[number])
            except BaseException as error:
                errors[number] = error

    helpers = [
        threading.Thread(target=work, daemon=True) for _ in range(min(threads, len(items)) - 1)
    ]
    try:
        for helper in helpers:
            helper.start()
        work()
        _join(helpers)
    except BaseException as error:  # Ctrl-C outside of the function
        errors[-1] = error
        _join(helpers)
    if errors:
        raise errors[min(errors)]
    return [found[number] for number in range(len(items))]


def _join(threads: list[threading.Thread]) -> None:
    """Wait for those that were started: a process must not end while a thread is in the core."""
    for each in threads:
        if each.ident is not None:
            each.join()


def _is_one_of_many() -> bool:
    """Whether multiprocessing has started this process; it is loaded here then."""
    processes = sys.modules.get("multiprocessing.process")
    return processes is not None and processes.parent_process() is not None
