# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Export of winners: a file for NCCL's tuner plugin, and MSCCL XML.

The first format is that of NCCL's example plugin (NVIDIA/nccl, plugins/tuner/example). The plugin
reads any unknown name as all-reduce, or as a ring, so the file contains only names that NCCL
supports. In both, sizes are those of the whole array.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from io import StringIO
from itertools import pairwise
from pathlib import Path

from towpath.collectives.nccl.communicator import ALGORITHMS
from towpath.collectives.nccl.tuner_file import COLLECTIVES as NCCL_COLLECTIVES
from towpath.collectives.nccl.tuner_file import COLUMNS, TunerLine
from towpath.errors import ConfigError
from towpath.schedules.msccl_xml import ScheduleFormatError, dump_schedule
from towpath.schedules.schedule_source import ScheduleSource
from towpath.tuning.collective import Timing, Tuning

_BYTES_MAX = (1 << 63) - 1


@dataclass(frozen=True)
class NcclAdvice:
    """Content of a file for NCCL in addition to the winners.

    Attributes:
        errors: the model's error near each size, as text; None if there are no measurements near
            it.
        own: NCCL's own choice, from each of these sizes on.
    """

    errors: Mapping[int, str | None]
    own: Mapping[int, TunerLine]


def check_nccl(collective: str) -> None:
    """Raises:
    ConfigError: NCCL's tuner has no such collective.
    """
    if collective not in NCCL_COLLECTIVES:
        allowed = ", ".join(NCCL_COLLECTIVES)
        raise ConfigError(f"--csv does not support {collective}; choose one of {allowed}")


def nccl_algorithm(source: ScheduleSource) -> str | None:
    """NCCL's name for the algorithm, if NCCL has it.

    >>> nccl_algorithm(ScheduleSource(algorithm="tree_all_reduce"))
    'tree'
    """
    word = (source.algorithm or "").removesuffix(f"_{source.collective}")
    return word if word in ALGORITHMS else None


def nccl_lines(tuning: Tuning, advice: NcclAdvice | None = None) -> Iterator[str]:
    """A line per range of sizes: the choice among candidates that NCCL supports.

    Args:
        tuning: the tuning with the winners.
        advice: the model's error, and NCCL's own choice. If given, sizes without a known error get
            NCCL's own choice, because the example plugin gives one channel to a size without a
            matching line. If missing, the file contains only winners.
    """
    yield f"# {tuning.collective} on {tuning.where}, {tuning.kind} by towpath tune"
    yield f"# {COLUMNS}"
    overall = {timing.size_bytes: timing for timing in tuning.winners()}
    winners = tuning.winners(lambda source: nccl_algorithm(source) is not None)
    for line, comment, first in _joined(_pieces(winners, advice)):
        if first is not None:
            best = overall[first.size_bytes]
            if nccl_algorithm(best.source) is None:
                yield (
                    f"# {first.size_bytes} bytes: {best.source.algorithm} takes "
                    f"{best.time_us:.4g} us, this {first.time_us:.4g} us"
                )
        if comment:
            yield f"# {line.least_bytes} to {line.most_bytes} bytes: {comment}"
        yield line.text()


_Piece = tuple[TunerLine, str, "Timing | None"]


def _pieces(winners: list[Timing], advice: NcclAdvice | None) -> Iterator[_Piece]:
    """A line per size with a result, a comment, and the timing behind it."""
    if advice is None:
        for first, last_bytes in ranges(winners):
            yield replace(_line_of(first), most_bytes=last_bytes), "", first
        return
    by_size = {timing.size_bytes: timing for timing in winners}
    last = max(by_size, default=0)
    sizes = sorted({0, last + 1, *by_size, *advice.own})
    own = advice.own[min(advice.own)]
    tuned: Timing | None = None
    for size, following in pairwise([*sizes, _BYTES_MAX + 1]):
        own = advice.own.get(size, own)
        tuned = None if size > last else by_size.get(size, tuned)
        error = None if tuned is None else advice.errors.get(tuned.size_bytes)
        if tuned is None or error is None:
            line, comment = own, "what NCCL would run by itself; the model is not validated here"
            yield replace(line, least_bytes=size, most_bytes=following - 1), comment, None
        else:
            line = replace(_line_of(tuned), least_bytes=size, most_bytes=following - 1)
            yield line, error, tuned


def _joined(pieces: Iterator[_Piece]) -> Iterator[_Piece]:
    """Merges adjacent lines with the same content."""
    before: _Piece | None = None
    for line, comment, first in pieces:
        if before is not None:
            same = replace(line, least_bytes=before[0].least_bytes) == replace(
                before[0], most_bytes=line.most_bytes
            )
            if same and comment == before[1]:
                before = (replace(before[0], most_bytes=line.most_bytes), comment, before[2])
                continue
            yield before
        before = (line, comment, first)
    if before is not None:
        yield before


def _line_of(timing: Timing) -> TunerLine:
    source = timing.source
    algorithm = nccl_algorithm(source)
    assert algorithm is not None  # winners are among what NCCL has
    return TunerLine(
        source.collective, timing.size_bytes, timing.size_bytes, algorithm, source.protocol,
        source.channels, source.hosts, source.ranks,
    )  # fmt: skip


def ranges(winners: list[Timing]) -> Iterator[tuple[Timing, int]]:
    """Adjacent sizes of one winner as one range: its first timing, and the last byte of the range,
    which extends to the next measured size.
    """
    begin = 0
    for index, timing in enumerate(winners):
        is_last = index + 1 == len(winners)
        if is_last or winners[index + 1].source != timing.source:
            last = timing.size_bytes if is_last else winners[index + 1].size_bytes - 1
            yield winners[begin], last
            begin = index + 1


def check_xml(folder: Path, collective: str) -> None:
    """Checks that ranges of sizes of two runs would not overlap, before minutes of work.

    Raises:
        ConfigError: the folder has schedules of an earlier run, or is not a folder.
    """
    if folder.exists() and not folder.is_dir():
        raise ConfigError("--xml is a folder, and this is a file", file=str(folder))
    name = re.compile(rf"{collective}-\d+-\d+\.xml")
    earlier = sorted(file.name for file in folder.glob("*.xml") if name.fullmatch(file.name))
    if earlier:
        raise ConfigError(
            f"--xml finds {earlier[0]} of an earlier run; choose a folder without schedules of "
            f"{collective}",
            file=str(folder),
        )


def write_xml(tuning: Tuning, folder: Path) -> Iterator[str]:
    """Writes a file per range of sizes: the choice among schedules that MSCCL can express. Yields a
    sentence if this is not the choice among all candidates.

    Args:
        tuning: the tuning with the winners.
        folder: the target folder; it is created if necessary.

    Raises:
        ConfigError: MSCCL cannot express any candidate.
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
