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
    """Protects processes that are started inside from Ctrl-C, even while they still import modules.

    The terminal sends Ctrl-C to all processes of the command, and this process ends the others. A
    Ctrl-C in the meantime takes effect here at the end of the block.
    """
    resource_tracker.ensure_running()  # multiprocessing's own process; its start unblocks signals
    former_mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, former_mask)
