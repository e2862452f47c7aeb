# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Processes that end with the one that started them."""

from __future__ import annotations

import ctypes
import os
import signal
from collections.abc import Callable

_PR_SET_PDEATHSIG = 1  # prctl(2)
_LIBC = ctypes.CDLL(None)


def ending_with_parent() -> Callable[[], None]:
    """A `preexec_fn` of subprocess: the kernel kills the process once its parent has ended.

    The parent is the thread that calls this. Processes that the child starts are not included.
    """
    parent = os.getpid()

    def prepare() -> None:
        _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)  # the parent has ended meanwhile

    return prepare
