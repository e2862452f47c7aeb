# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Ctrl-C and the processes that a command starts."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import resource_tracker


@contextmanager
def children_without_interrupts() -> Iterator[None]:
    """Processes started inside do not get Ctrl-C, not even while they still import modules.

    The terminal sends it to all processes of the command; this one ends the others. A Ctrl-C that
    comes meanwhile takes effect here at the end of the block.
    """
    resource_tracker.ensure_running()  # multiprocessing's own process; its start unblocks signals
    former_mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, former_mask)
