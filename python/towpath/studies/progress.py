# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Progress of long work, reported to a display from the caller."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol


class Update(Protocol):
    """Receives the amount of completed work."""

    def __call__(self, done: float, label: str | None = None) -> None:
        """Shows that `done` of the total is done; a label replaces the previous one."""


class Progress(Protocol):
    """Opens a display for one piece of work and closes it afterwards.

    >>> def printed(label, total):
    ...     @contextmanager
    ...     def display():
    ...         yield lambda done, label=label: print(f"{label}: {done} of {total}")
    ...     return display()
    >>> with printed("points", 2) as update:
    ...     update(1)
    points: 1 of 2
    """

    def __call__(self, label: str, total: float) -> AbstractContextManager[Update]:
        """Creates a display for work of this total, in any unit."""


@contextmanager
def silent(label: str, total: float) -> Iterator[Update]:
    """The default: no display."""

    def ignore(done: float, label: str | None = None) -> None:
        pass

    yield ignore
