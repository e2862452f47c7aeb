# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""How long work reports its progress: to a display that the caller supplies."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol


class Update(Protocol):
    """Takes what is done so far."""

    def __call__(self, done: float, label: str | None = None) -> None:
        """Show that `done` of the total is done; a label replaces the one shown."""


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
        """Display for work of this total, in any unit."""


@contextmanager
def silent(label: str, total: float) -> Iterator[Update]:
    """The default: no display."""

    def ignore(done: float, label: str | None = None) -> None:
        pass

    yield ignore
