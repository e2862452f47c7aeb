# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""How many threads one simulation may have."""

from __future__ import annotations

import os
import sys


def threads_for(asked: int | None) -> int:
    """The number of threads of a simulation.

    Args:
        asked: what the caller wants; None: `$TOWPATH_THREADS`, or else one per processor in the
            main process, and one in a process beside which others simulate, too. A simulation of
            few events starts none of them.
    """
    if asked is None and (text := os.environ.get("TOWPATH_THREADS", "")).isdecimal():
        asked = int(text)
    if asked is None:
        asked = 1 if _is_one_of_many() else len(os.sched_getaffinity(0))
    return max(asked, 1)


def _is_one_of_many() -> bool:
    """Whether multiprocessing has started this process; it is loaded here then."""
    processes = sys.modules.get("multiprocessing.process")
    return processes is not None and processes.parent_process() is not None
