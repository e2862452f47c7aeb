# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Winners for those who run them: a file for NCCL's tuner plugin, and MSCCL XML.

The first is what NCCL's example plugin reads (NVIDIA/nccl, plugins/tuner/example). It takes any
name that it does not know for all-reduce, or for a ring, so only what NCCL has is written. Sizes
are those of the whole array there as here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from io import StringIO
from pathlib import Path

from towpath.errors import ConfigError
from towpath.schedules.msccl_xml import ScheduleFormatError, dump_schedule
from towpath.schedules.schedule_source import ScheduleSource
from towpath.tuning.collective import Timing, Tuning

_NCCL_COLLECTIVES = {
    "all_reduce": "allreduce",
    "all_gather": "allgather",
    "reduce_scatter": "reducescatter",
    "broadcast": "broadcast",
    "reduce": "reduce",
}
_COLUMNS = "collective_type,min_bytes,max_bytes,algorithm,protocol,channels,nNodes,nRanks"


def check_nccl(collective: str) -> None:
    """Raises:
    ConfigError: NCCL's tuner has no such collective.
    """
    if collective not in _NCCL_COLLECTIVES:
        allowed = ", ".join(_NCCL_COLLECTIVES)
        raise ConfigError(f"--csv is not for {collective}; NCCL's tuner knows {allowed}")


def nccl_algorithm(source: ScheduleSource) -> str | None:
    """NCCL's name for the algorithm, if NCCL has it.

    >>> nccl_algorithm(ScheduleSource(algorithm="tree_all_reduce"))
    'tree'
    """
    word = (source.algorithm or "").split("_")[0]
    return word if word in ("ring", "tree") else None


def nccl_lines(tuning: Tuning) -> Iterator[str]:
    """A line per range of sizes: the choice among what NCCL can run."""
    yield f"# {tuning.collective} on {tuning.where}, {tuning.kind} by towpath tune"
    yield f"# {_COLUMNS}"
    overall = {timing.size_bytes: timing for timing in tuning.winners()}
    winners = tuning.winners(lambda source: nccl_algorithm(source) is not None)
    for first, last_bytes in ranges(winners):
        source = first.source
        best = overall[first.size_bytes]
        if nccl_algorithm(best.source) is None:
            yield (
                f"# {first.size_bytes} bytes: {best.source.algorithm} takes {best.time_us:.4g} us, "
                f"this {first.time_us:.4g} us"
            )
        yield ",".join(map(str, (
            _NCCL_COLLECTIVES[tuning.collective], first.size_bytes, last_bytes,
            nccl_algorithm(source), source.protocol.lower(), source.channels, source.hosts,
            source.ranks,
        )))  # fmt: skip


def ranges(winners: list[Timing]) -> Iterator[tuple[Timing, int]]:
    """Neighbouring sizes of one winner as one: its first timing, and the last byte of the range,
    which reaches up to the next size that was measured."""
    begin = 0
    for index, timing in enumerate(winners):
        is_last = index + 1 == len(winners)
        if is_last or winners[index + 1].source != timing.source:
            last = timing.size_bytes if is_last else winners[index + 1].size_bytes - 1
            yield winners[begin], last
            begin = index + 1


def check_xml(folder: Path, collective: str) -> None:
    """Ranges of sizes of two runs would overlap. Said before minutes of work.

    Raises:
        ConfigError: the folder has schedules of an earlier run, or is none.
    """
    if folder.exists() and not folder.is_dir():
        raise ConfigError("--xml is a folder, and this is a file", file=str(folder))
    name = re.compile(rf"{collective}-\d+-\d+\.xml")
    earlier = sorted(file.name for file in folder.glob("*.xml") if name.fullmatch(file.name))
    if earlier:
        raise ConfigError(
            f"--xml finds {earlier[0]} of an earlier run; allowed is a folder without schedules "
            f"of {collective}",
            file=str(folder),
        )


def write_xml(tuning: Tuning, folder: Path) -> Iterator[str]:
    """Writes a file per range of sizes: the choice among what MSCCL can hold. Yields a sentence
    where that is another than the choice among all.

    Args:
        tuning: whose winners to write.
        folder: made if it is not there.

    Raises:
        ConfigError: MSCCL can hold none of the candidates.
    """
    winners = tuning.winners(_fits_msccl)
    if not winners:
        raise ConfigError("--xml has nothing to write: MSCCL can hold none of the candidates")
    folder.mkdir(parents=True, exist_ok=True)
    overall = {timing.size_bytes: timing.source for timing in tuning.winners()}
    for timing in winners:
        if timing.source != overall[timing.size_bytes]:
            yield f"at {timing.size_bytes} bytes MSCCL cannot hold the choice, so --xml has another"
    for first, last_bytes in ranges(winners):
        schedule = first.source.schedule()
        schedule.size_bytes_min, schedule.size_bytes_max = first.size_bytes, last_bytes
        dump_schedule(schedule, folder / f"{tuning.collective}-{first.size_bytes}-{last_bytes}.xml")


@lru_cache(maxsize=4096)
def _fits_msccl(source: ScheduleSource) -> bool:
    if source.columns > 0:
        return False  # ranks are on a mesh, and there is no word for where
    try:
        dump_schedule(source.schedule(), StringIO())
    except ScheduleFormatError:
        return False
    return True
