# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Profile of kernels for programs: `Kernel.run(..., profile=True).profile`."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from towpath.errors import ConfigError

if TYPE_CHECKING:
    from towpath.kernels.gpu_kernel import SimulatedGpus
    from towpath.kernels.profile import Recorded
    from towpath.kernels.profile_verdict import ProfileVerdict


class KernelProfile:
    """The recorded activities of all blocks of a run, with a verdict."""

    def __init__(self, recorded: Recorded, title: str) -> None:
        """Wraps records; users call `Kernel.run`, `Kernel.run_live` or `Kernel.load`."""
        self._recorded = recorded
        self._title = title

    @classmethod
    def of(cls, gpus: SimulatedGpus) -> KernelProfile:
        """The profile of launches by name so far, on PEs from `Kernel.load(..., profile=True)`.

        Args:
            gpus: the PEs.

        Returns:
            The profile of all launches so far.

        Raises:
            ConfigError: the PEs were loaded without `profile=True`.
        """
        recorded = gpus.recorded()
        if recorded is None:
            raise ConfigError("these PEs do not record; load them with profile=True")
        return cls(recorded, f"Kernels on {recorded.where}")

    def __repr__(self) -> str:
        return f"KernelProfile({self._title!r}, {len(self._recorded.spans)} spans)"

    @property
    def verdict(self) -> ProfileVerdict:
        """Where the time was spent, by PE and in total, with the minimum set by links and latency.

        `sentences` contains the limit of the run and advice. `shares`, `pes`, `causes`, `links`,
        `rounds` and the bounds contain the underlying data.
        """
        return self._recorded.verdict

    @property
    def recorded(self) -> Recorded:
        """The records as arrays: spans of blocks, transfers, work of streams, links."""
        return self._recorded

    @property
    def text(self) -> str:
        """The verdict with its tables, for a terminal."""
        from towpath.pages.kernel_profile_page import profile_text

        return "\n".join(profile_text(self._recorded))

    def trace(self, path: str | os.PathLike[str]) -> None:
        """Writes a trace for ui.perfetto.dev.

        Args:
            path: the file; compressed if its name ends in ".gz".
        """
        from towpath.pages.kernel_trace import write_kernel_trace

        write_kernel_trace(self._recorded, os.fspath(path))

    def report(self, path: str | os.PathLike[str], *, command: str = "") -> None:
        """Writes an HTML page that needs no other file.

        Args:
            path: the file.
            command: the command line that the page names as its origin.
        """
        from towpath.pages.kernel_profile_page import write_profile_page

        write_profile_page(
            self._recorded, os.fspath(path), title=self._title, command=command or self._title
        )
