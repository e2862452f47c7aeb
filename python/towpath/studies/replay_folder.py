# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""All NoC traces of a folder, replayed on one chip, with predicted and measured times."""

from __future__ import annotations

import statistics
from dataclasses import asdict, dataclass, field
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

from towpath.errors import ConfigError
from towpath.specs.chip_spec import ChipSpec
from towpath.studies.noc_trace import load_noc_trace
from towpath.studies.parallel import map_in_order, processors
from towpath.studies.progress import Progress, silent
from towpath.studies.replay import Pace, replay


@dataclass(frozen=True)
class TraceReplay:
    """One trace of the folder.

    Attributes:
        name: the file, relative to the folder.
        requests: number of requests.
        predicted_cycles: time of the longest core in the simulation.
        measured_cycles: time of the longest core in the trace.
        problem: reason for which the trace could not be replayed; None if it was replayed.
    """

    name: str
    requests: int = 0
    predicted_cycles: int = 0
    measured_cycles: int = 0
    problem: str | None = None

    @property
    def error_pct(self) -> float | None:
        """Predicted relative to measured, as a deviation in percent; None if no time
        was measured.
        """
        if self.problem is not None or self.measured_cycles == 0:
            return None
        return 100 * (self.predicted_cycles / self.measured_cycles - 1)


@dataclass(frozen=True)
class FolderReplay:
    """The traces of a folder on a chip, in the order of their names."""

    chip: str
    pace: Pace
    traces: list[TraceReplay] = field(default_factory=list)

    @property
    def absolute_errors_pct(self) -> list[float]:
        """Absolute error of each prediction in percent, the smallest first."""
        errors = (trace.error_pct for trace in self.traces)
        return sorted(abs(error) for error in errors if error is not None)

    @property
    def problems(self) -> int:
        """Number of traces that could not be replayed."""
        return sum(trace.problem is not None for trace in self.traces)

    def summary(self) -> dict[str, Any]:
        """Counts, and median and largest absolute error in percent; None without any."""
        errors = self.absolute_errors_pct
        return {
            "traces": len(self.traces),
            "problems": self.problems,
            "median_error_pct": statistics.median(errors) if errors else None,
            "worst_error_pct": errors[-1] if errors else None,
        }

    def to_dict(self) -> dict[str, Any]:
        """Returns it as plain data."""
        return {
            "chip": self.chip,
            "pace": self.pace,
            "summary": self.summary(),
            "traces": [{**asdict(trace), "error_pct": trace.error_pct} for trace in self.traces],
        }


def replay_folder(
    folder: Path, spec: ChipSpec, *, pace: Pace = "gaps", seed: int = 1, jobs: int = 0,
    progress: Progress = silent,
) -> FolderReplay:  # fmt: skip
    """Replays every trace, *.json, in a folder and its subfolders.

    Files with a topology of tt-npe, which accompany traces of several chips, are skipped.

    Args:
        folder: folder of the traces.
        spec: the chip.
        pace: rule for the times of calls, see `replay`.
        seed: seed of the random behavior of the chip.
        jobs: processes; 0: one per core.
        progress: a display of the number of completed traces.

    Returns:
        One entry per trace; `problem` contains the error of a trace.

    Raises:
        ConfigError: the folder has no trace. ProcessEnded: a process was killed or crashed.
    """
    paths = [path for path in sorted(folder.rglob("*.json")) if not _is_topology(path)]
    if not paths:
        raise ConfigError("has no traces; they are files *.json", file=str(folder))
    one = partial(_replay_file, folder, spec.model_dump_json(), pace, seed)  # specs do not pickle
    found = map_in_order(one, paths, "traces", jobs or processors(), progress=progress)
    return FolderReplay(spec.name, pace, found)


def _is_topology(path: Path) -> bool:
    """True if a file contains the connections of chips that tt-npe writes for traces of several
    chips.
    """
    with path.open("rb") as file:  # a trace is a list, so most are not read further
        head = file.read(64)
        return head.lstrip().startswith(b"{") and b'"eth_chan_to_coord"' in head + file.read()


@lru_cache(maxsize=1)
def _spec_of(spec_json: str) -> ChipSpec:
    return ChipSpec.model_validate_json(spec_json)


def _replay_file(
    folder: Path, spec_json: str, pace: Pace, seed: int, path: Path
) -> TraceReplay:  # fmt: skip
    spec = _spec_of(spec_json)
    name = str(path.relative_to(folder))
    try:
        loaded = load_noc_trace(path, (spec.grid.width, spec.grid.height))
        replayed = replay(loaded, spec, pace=pace, seed=seed)
    except (ConfigError, RuntimeError) as error:  # RuntimeError: its traffic hangs on this chip
        return TraceReplay(name, problem=str(error))
    return TraceReplay(
        name,
        len(replayed.requests),
        replayed.predicted.longest_core,
        replayed.measured.longest_core,
    )
