# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Winners for those who run them: a file for NCCL's tuner plugin, and MSCCL XML.

The first is what NCCL's example plugin reads (NVIDIA/nccl, plugins/tuner/example). It takes any
name that it does not know for all-reduce, or for a ring, so only what NCCL has is written. Sizes
are those of the whole array there as here.
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
    """What goes into a file for NCCL besides the winners.

    Attributes:
        errors: the model's error near each size, in words; None where nothing was measured near it.
        own: what NCCL would run by itself, from each of these sizes on.
    """

    errors: Mapping[int, str | None]
    own: Mapping[int, TunerLine]


def check_nccl(collective: str) -> None:
    """Raises:
    ConfigError: NCCL's tuner has no such collective.
    """
    if collective not in NCCL_COLLECTIVES:
        allowed = ", ".join(NCCL_COLLECTIVES)
        raise ConfigError(f"--csv is not for {collective}; NCCL's tuner knows {allowed}")


def nccl_algorithm(source: ScheduleSource) -> str | None:
    """NCCL's name for the algorithm, if NCCL has it.

    >>> nccl_algorithm(ScheduleSource(algorithm="tree_all_reduce"))
    'tree'
    """
    word = (source.algorithm or "").removesuffix(f"_{source.collective}")
    return word if word in ALGORITHMS else None


def nccl_lines(tuning: Tuning, advice: NcclAdvice | None = None) -> Iterator[str]:
    """A line per range of sizes: the choice among what NCCL can run.

    Args:
        tuning: whose winners to write.
        advice: where the model's error is known, and what NCCL would run elsewhere. With it, sizes
            whose error is not known get what NCCL would run by itself: the example plugin gives one
            channel to a size that no line fits. Without it, winners only.
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
    """A line per size that something is known of, a comment, and the timing behind it."""
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
    """Neighbours that say the same as one."""
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
