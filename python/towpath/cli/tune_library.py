# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""What `towpath tune` has to do with NCCL and RCCL: their candidates, and the file for NCCL."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from towpath.cli.machine import cluster
from towpath.cli.options import given, refuse
from towpath.errors import ConfigError

if TYPE_CHECKING:
    from towpath import GpuCluster
    from towpath.collectives.nccl.imitation import Library
    from towpath.schedules.schedule_source import ScheduleSource
    from towpath.tuning.collective import Tuning
    from towpath.tuning.target import TuneRequest, TuneTarget

_NOT_WITH_AS = (
    "is for Towpath's own candidates; with --as, --env NCCL_PROTO=LL bends those of the library"
)


@dataclass(frozen=True)
class LibrarySide:
    """The cluster that a library would run on, and the library; none with --as: NCCL, for the
    file only."""

    gpus: GpuCluster
    library: Library | None

    def sources(self, collective: str, sizes_bytes: list[int]) -> list[ScheduleSource] | None:
        """What the library considers; None where Towpath's own candidates are tried."""
        if self.library is None:
            return None
        return self.gpus.imitate(self.library).candidates(collective, sizes_bytes)

    def write_csv(self, tuning: Tuning, csv: Path) -> None:
        """Writes a configuration of NCCL's example tuner plugin."""
        from towpath.api.library import nccl_advice
        from towpath.tuning.export import nccl_lines

        library = self.library or "nccl"
        advice = nccl_advice(self.gpus, tuning.collective, tuning.sizes_bytes, library)
        csv.write_text("\n".join(nccl_lines(tuning, advice)) + "\n", encoding="utf-8")


def library_side(
    request: TuneRequest, target: TuneTarget, library: Library | None, csv: Path | None
) -> LibrarySide | None:
    """The library's side of a search; None if there is nothing of it.

    Raises:
        ConfigError: there are no GPUs, or options exclude each other.
    """
    from towpath import GpuCluster

    if csv is not None and not target.has_nccl:
        raise ConfigError(f"--csv is for GPUs, where NCCL runs; this is for {target.text}")
    if library is None and csv is None:
        return None
    if request.machine is None or not target.has_nccl:
        raise ConfigError(f"--as is for a machine of GPUs; this is for {target.text}")
    if library is not None:
        typed: dict[str, Any] = given(channels=request.channels, protocol=request.protocols)
        refuse(typed, _NOT_WITH_AS)
        if csv is not None and library.name != "nccl":
            raise ConfigError("--csv is for NCCL's tuner plugin, so --as rccl has no use for it")
    place = given(
        hosts=request.hosts, ranks=request.ranks, ranks_per_host=request.ranks_per_host,
        complete_from=request.complete_from,
    )  # fmt: skip
    gpus = cluster(request.machine, **place)
    assert isinstance(gpus, GpuCluster)  # the target says so
    return LibrarySide(gpus, library)
