# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Progress bars for the terminal, on standard error."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from towpath.studies.progress import Update


@contextmanager
def bar(label: str, total: float) -> Iterator[Update]:
    """A bar with the remaining time; prints nothing if standard error is not a terminal."""
    if not sys.stderr.isatty():
        yield lambda done, label=None: None
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        Progress,
        TaskProgressColumn,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    console = Console(stderr=True)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True) as shown:
        task = shown.add_task(label, total=total)

        def update(done: float, label: str | None = None) -> None:
            shown.update(task, completed=done, description=label)

        yield update
