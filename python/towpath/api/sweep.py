# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Many independent simulations: on all cores or on a cluster, and resumed where they were left."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from towpath.studies.progress import Progress


def sweep(
    measure: Callable[[dict[str, Any]], dict[str, Any]],
    points: Sequence[dict[str, Any]],
    file: str | os.PathLike[str],
    *,
    jobs: int = 0,
    scheduler: str | None = None,
    progress: Progress | None = None,
) -> list[dict[str, Any]]:
    """Measures every point that the file does not hold yet.

    Results are appended to the file as they come. The same call goes on after an interruption, and
    measures again when the source of `measure` or Towpath has changed. See docs/sweeps.md.

    Args:
        measure: gets a point and returns what it measured, both as dicts that JSON can hold. It is
            called in any process and order, so it is a function at the top level of a module.
        points: what to measure; equal ones are measured once.
        file: of JSON lines: a digest, a point and its result each.
        jobs: processes; 0: one per core, 1: this one.
        scheduler: the address of a dask scheduler whose workers measure instead, "host:8786".
        progress: a display for long work; see `towpath.studies.progress`.

    Returns:
        The results in the order of the points.

    Raises:
        ConfigError: the file is not a sweep's or is in use, or no scheduler answers.
        SweepError: a point failed, or the cluster is lost; what was measured is in the file.
    """
    from towpath import _core
    from towpath.studies.progress import silent
    from towpath.studies.sweep import SweepOptions, digest_of, run_sweep

    function = inspect.unwrap(measure)
    return run_sweep(
        measure, list(points), Path(file),
        digest=digest_of(f"{function.__module__}.{function.__qualname__}",
                         inspect.getfile(function), _core.__file__),
        options=SweepOptions(jobs=jobs, scheduler=scheduler, progress=progress or silent),
    )  # fmt: skip
