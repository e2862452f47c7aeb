# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""How many threads one simulation may have."""

from __future__ import annotations

import os
import sys

from towpath.errors import ConfigError

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


def _is_one_of_many() -> bool:
    """Whether multiprocessing has started this process; it is loaded here then."""
    processes = sys.modules.get("multiprocessing.process")
    return processes is not None and processes.parent_process() is not None
