# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Number of threads of one simulation, and of several concurrent simulations."""

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
        asked: the requested number; None: `$TOWPATH_THREADS`, or else one per processor in the main
            process, and one in a process next to which others also simulate. A simulation of few
            events starts no threads.

    Raises:
        ConfigError: the value of the variable is not a number of threads.
    """
    if asked is None and (text := os.environ.get(_VARIABLE)):
        if not text.isdecimal() or int(text) < 1:
            raise ConfigError(
                f"${_VARIABLE} is '{text}'; it must be the number of threads, 1 or more"
            )
        asked = int(text)
    if asked is None:
        asked = 1 if _is_one_of_many() else len(os.sched_getaffinity(0))
    return asked


def on_several_threads(
    function: Callable[[Item], Found], items: Sequence[Item], threads: int
) -> list[Found]:
    """The results of a function for all items, in the order of the items; the calling thread also
    works.

    The function should spend its time in the core, so that other threads can run.

    Args:
        function: called once for each item, from any of the threads.
        items: arguments of the function; the first items are started first.
        threads: number of threads that work at a time.

    Raises:
        BaseException: the exception for the first item whose call raised one. Later items may not
        have been started.
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
    """Waits for the started threads: a process must not end while a thread is in the core."""
    for each in threads:
        if each.ident is not None:
            each.join()


def _is_one_of_many() -> bool:
    """True if multiprocessing has started this process, which loads the module."""
    processes = sys.modules.get("multiprocessing.process")
    return processes is not None and processes.parent_process() is not None
