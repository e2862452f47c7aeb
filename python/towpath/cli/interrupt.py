# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Ctrl-C: stops the command, even while it runs in the compiled core."""

from __future__ import annotations

import atexit
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

EXIT_CODE = 130

# Python raises KeyboardInterrupt between two of its own lines; a call of the core that takes no
# longer than this ends first.
_CORE_CALL_S = 0.5
_WAKING_S = 0.05
_EXIT_HANDLERS_S = 1.0


@contextmanager
def interruptible(sentence: Callable[[], str]) -> Iterator[None]:
    """Lets Ctrl-C stop the code inside with exit code 130. Call it in the main thread.

    The main thread gets a KeyboardInterrupt, so `finally` and exit handlers run. A simulation can
    run for minutes in the core, where Python raises no exception. Signals therefore also wake a
    thread. If the main thread does not react, this thread prints the message, runs the exit
    handlers and ends the process. A second Ctrl-C ends the process immediately.

    Args:
        sentence: message to print.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # nohup, or a script's background
        yield
        return
    noticed = threading.Event()

    def interrupt(number: int, frame: FrameType | None) -> None:
        if not noticed.is_set():
            noticed.set()
            raise KeyboardInterrupt

    listening_end, signal_end = os.pipe()
    os.set_blocking(signal_end, False)
    former_handler = signal.signal(signal.SIGINT, interrupt)
    former_fd = signal.set_wakeup_fd(signal_end, warn_on_full_buffer=False)
    threading.Thread(target=_watch, args=(listening_end, noticed, sentence), daemon=True).start()
    try:
        yield
    except BaseException:
        if not noticed.is_set():
            raise
        say(sentence())  # whatever else went wrong on the way out
        sys.exit(EXIT_CODE)
    finally:
        if not noticed.is_set():  # otherwise a second Ctrl-C may still come
            signal.set_wakeup_fd(former_fd)
            signal.signal(signal.SIGINT, former_handler)
            os.close(signal_end)


def say(sentence: str) -> None:
    """Prints the last line of an interrupted command, and shows the cursor that a progress bar had
    hidden.
    """
    if sys.stderr is not None:
        cursor = "\x1b[?25h" if sys.stderr.isatty() else ""
        print(f"{cursor}towpath: {sentence}", file=sys.stderr, flush=True)


def _watch(listening_end: int, noticed: threading.Event, sentence: Callable[[], str]) -> None:
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    interrupts, expected = 0, 1
    while numbers := os.read(listening_end, 64):
        interrupts += numbers.count(signal.SIGINT)
        if interrupts > expected:
            os._exit(EXIT_CODE)
        if noticed.wait(_WAKING_S) or interrupts < expected:
            continue
        # Another thread may have got the signal; then the main thread still waits in a system call.
        expected = 2
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
        if not noticed.wait(_CORE_CALL_S):
            say(sentence())
            handlers = threading.Thread(target=atexit._run_exitfuncs, daemon=True)
            handlers.start()
            handlers.join(_EXIT_HANDLERS_S)
            os._exit(EXIT_CODE)  # sys.exit would wait for the core
    os.close(listening_end)
