# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""A timeline as a Chrome JSON trace, which ui.perfetto.dev and chrome://tracing open."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from towpath.collectives.result import Timeline
from towpath.collectives.timeline import (
    BEGIN_PS,
    END_PS,
    TRACK,
    BlockTrack,
    LinkTrack,
    busy_per_bin_ps,
    parse_track,
    spans_array,
)

_BINS = 200  # points of a link's utilisation over the whole call
_LINKS = (1, 0)
_UTILISATION = (2, 0)
_OTHER = (3, 0)


def write_perfetto(timeline: Timeline, path: Path | str) -> None:
    """Writes the trace, event by event; compressed if the path ends in ".gz", which Perfetto can
    read.

    A process is a rank, and its threads are thread blocks. The process "links" has a thread per
    link, and "link utilisation" a counter per link. Times are microseconds with picosecond
    precision; Perfetto itself shows whole nanoseconds.
    """
    write_events(_events(timeline), path)


def write_events(events: Iterable[str], path: Path | str) -> None:
    """Writes events, each a JSON object, as one trace; compressed if the path ends in ".gz"."""
    path = Path(path)
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "wt", encoding="utf-8") as file:
        file.write('{"displayTimeUnit":"ns","traceEvents":[')
        separator = "\n"
        for event in events:
            file.write(separator + event)
            separator = ",\n"
        file.write("\n]}\n")


@dataclass(frozen=True)
class _Thread:
    """The thread on which a track's spans are drawn, and the meaning of their value."""

    process: tuple[int, int]  # sorts processes: ranks first, then links
    process_name: str
    number: int
    name: str
    argument: str


def _thread_of(text: str, index: int) -> _Thread:
    match parse_track(text):
        case BlockTrack(rank, block):
            return _Thread((0, rank), f"rank {rank}", block, f"thread block {block}", "step")
        case LinkTrack(name):
            return _Thread(_LINKS, "links", index, name, "bytes")
    return _Thread(_OTHER, "other", index, text, "value")


def _events(timeline: Timeline) -> Iterator[str]:
    threads = [_thread_of(text, index) for index, text in enumerate(timeline.tracks)]
    spans = spans_array(timeline)
    rows, rows_of_thread = stack(spans[:, [TRACK, BEGIN_PS, END_PS]])
    names = {thread.process: thread.process_name for thread in threads}
    if any(thread.process == _LINKS for thread in threads):
        names[_UTILISATION] = "link utilisation"
    # Identifiers start at 1: process and thread 0 mean "idle" to Perfetto. No two are equal.
    processes = {process: number for number, process in enumerate(sorted(names), 1)}
    for process, pid in processes.items():
        yield metadata("process_name", pid, pid, name=names[process])
        yield metadata("process_sort_index", pid, pid, sort_index=pid)
    tids: dict[tuple[int, int], int] = {}
    for track, thread in sorted(
        enumerate(threads), key=lambda item: (item[1].process, item[1].number)
    ):
        for row in range(rows_of_thread.get(track, 1)):
            tid = tids[track, row] = len(processes) + len(tids) + 1
            name = thread.name if row == 0 else f"{thread.name} ({row + 1})"
            yield metadata("thread_name", processes[thread.process], tid, name=name)
            yield metadata("thread_sort_index", processes[thread.process], tid, sort_index=tid)

    heads = [f'"pid":{processes[thread.process]},"tid":' for thread in threads]
    texts = [json.dumps(name) for name in timeline.names]
    for (track, name, begin_ps, end_ps, value), row in zip(spans.tolist(), rows, strict=True):
        yield (
            f'{{"ph":"X","name":{texts[name]},{heads[track]}{tids[track, row]},'
            f'"ts":{timestamp_us(begin_ps)},"dur":{exact_us(end_ps - begin_ps)},'
            f'"args":{{"{threads[track].argument}":{value}}}}}'
        )
    if _UTILISATION in processes:
        yield from _utilisation(threads, spans, processes[_UTILISATION])


def stack(spans: np.ndarray) -> tuple[list[int], dict[int, int]]:
    """Assigns every span to a row of its track such that no two spans in a row overlap. A reader of
    the format may drop or misplace spans that overlap without nesting.

    Args:
        spans: track, start and end of each span, in the order of their start.

    Returns:
        The row of each span, and the number of rows of each track.
    """
    ends_ps: dict[int, list[int]] = {}
    rows = []
    for track, begin_ps, end_ps in spans.tolist():
        taken = ends_ps.setdefault(track, [])
        row = next((row for row, end in enumerate(taken) if end <= begin_ps), len(taken))
        if row == len(taken):
            taken.append(end_ps)
        taken[row] = end_ps
        rows.append(row)
    return rows, {track: len(taken) for track, taken in ends_ps.items()}


def _utilisation(threads: list[_Thread], spans: np.ndarray, pid: int) -> Iterator[str]:
    """Utilization of each link over time in percent, at each change."""
    if len(spans) == 0 or spans[:, END_PS].max() == 0:
        return
    edges_ps = np.linspace(0, spans[:, END_PS].max(), _BINS + 1).astype(np.int64)
    widths_ps = np.maximum(np.diff(edges_ps), 1)
    by_track = spans[np.argsort(spans[:, TRACK], kind="stable")]
    for track, thread in enumerate(threads):
        if thread.process != _LINKS:
            continue
        first, last = np.searchsorted(by_track[:, TRACK], [track, track + 1])
        own = by_track[first:last]
        busy_ps = busy_per_bin_ps(own[:, BEGIN_PS], own[:, END_PS], edges_ps)
        percents = np.rint(100 * busy_ps / widths_ps).astype(int).tolist()
        name = json.dumps(thread.name)
        previous = None
        for time_ps, percent in zip(edges_ps.tolist(), [*percents, 0], strict=True):
            if percent != previous:
                yield (
                    f'{{"ph":"C","name":{name},"pid":{pid},"tid":{pid},'
                    f'"ts":{timestamp_us(time_ps)},"args":{{"percent":{percent}}}}}'
                )
            previous = percent


def metadata(name: str, pid: int, tid: int, /, **arguments: str | int) -> str:
    """An event that names or orders a process or a thread."""
    event = {"ph": "M", "name": name, "pid": pid, "tid": tid, "args": arguments}
    return json.dumps(event, separators=(",", ":"))


def exact_us(time_ps: int) -> str:
    """Microseconds with picosecond precision."""
    return f"{time_ps // 1_000_000}.{time_ps % 1_000_000:06d}"


def timestamp_us(time_ps: int) -> str:
    """The exact time plus a femtosecond. Perfetto cuts float(text) * 1000 to whole nanoseconds, so
    1.001 would become 1,000 ns, and a span would seem to start before the end of its predecessor.
    """
    return exact_us(time_ps) + "001"
