# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""The profile of kernels as a Chrome JSON trace, for ui.perfetto.dev."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from towpath.kernels.profile import (
    ACTIVITY,
    BEGIN_PS,
    CALLS,
    END_PS,
    LANDED_PS,
    MOVED_BYTES,
    NAME,
    PEER,
    SEVERAL,
    SIZE_BYTES,
    TRACK,
    TRACK_BLOCK,
    TRACK_IS_KERNEL,
    TRACK_PE,
    TRACK_STREAM,
    WORK_BEGIN_PS,
    WORK_BLOCKS,
    WORK_BYTES,
    WORK_END_PS,
    WORK_NAME,
    WORK_PE,
    WORK_QUEUED_PS,
    WORK_STREAM,
    WORK_THREADS,
    Recorded,
)
from towpath.kernels.profile_causes import as_seen, ended_by
from towpath.pages.perfetto import exact_us, metadata, stack, timestamp_us, write_events
from towpath.pages.text import kind_name

_LINKS_MAX = 64  # counters of single links


def write_kernel_trace(recorded: Recorded, path: Path | str) -> None:
    """Writes the trace; compressed if the path ends in ".gz", which Perfetto can read.

    A process is a PE. Its threads are its streams, its blocks, what each block has in flight, and
    what arrives. An arrow leads from the start of a transfer to its arrival, and on to the wait
    that it ended. The process "links" has counters in GB/s.
    """
    write_events(_Trace(recorded).events(), path)


class _Trace:
    def __init__(self, recorded: Recorded) -> None:
        self._causes = ended_by(recorded)
        self._recorded = as_seen(recorded, self._causes)
        self._tids: dict[tuple, int] = {}
        self._has_streams = len(np.unique(recorded.tracks[:, TRACK_STREAM])) > 1
        self._names = [json.dumps(text) for text, _ in recorded.names]
        self._places = [json.dumps(place) for _, place in recorded.names]

    def events(self) -> Iterator[str]:
        yield from self._processes()
        yield from self._work()
        yield from self._blocks()
        rows = yield from self._in_flight()
        yield from self._arrows(rows)
        yield from self._counters()

    def _pid(self, pe: int) -> int:
        return pe + 1  # process 0 is "idle" to Perfetto

    def _processes(self) -> Iterator[str]:
        for pe in range(self._recorded.pes):
            pid = self._pid(pe)
            yield metadata("process_name", pid, pid, name=f"PE {pe}")
            yield metadata("process_sort_index", pid, pid, sort_index=pid)
        if self._recorded.links:
            pid = self._pid(self._recorded.pes)
            yield metadata("process_name", pid, pid, name="links")
            yield metadata("process_sort_index", pid, pid, sort_index=pid)

    def _thread(self, pe: int, key: tuple, name: str) -> Iterator[str]:
        """Names a thread at its first use; `key` determines the order of the threads of a PE."""
        if (pe, key) in self._tids:
            return
        # No thread has the number of a process.
        tid = self._tids[pe, key] = self._recorded.pes + 2 + len(self._tids)
        yield metadata("thread_name", self._pid(pe), tid, name=name)
        yield metadata("thread_sort_index", self._pid(pe), tid, sort_index=_place(key))

    def _span(
        self, pe: int, key: tuple, name: str, times: tuple[int, int], arguments: dict[str, object]
    ) -> str:
        begin_ps, end_ps = times
        words = ",".join(f'"{word}":{value}' for word, value in arguments.items())
        when = f'"ts":{timestamp_us(begin_ps)},"dur":{exact_us(end_ps - begin_ps)}'
        return (
            f'{{"ph":"X","name":{name},"pid":{self._pid(pe)},"tid":{self._tids[pe, key]},'
            f'{when},"args":{{{words}}}}}'
        )

    def _work(self) -> Iterator[str]:
        work = self._recorded.work
        work = work[np.argsort(work[:, WORK_BEGIN_PS], kind="stable")]
        for row in work.tolist():
            pe, stream = row[WORK_PE], row[WORK_STREAM]
            key = (0, stream)
            yield from self._thread(pe, key, f"host, stream {stream}")
            arguments: dict[str, object] = {
                "queued_us": exact_us(row[WORK_BEGIN_PS] - row[WORK_QUEUED_PS])
            }
            if row[WORK_BLOCKS]:
                arguments |= {"blocks": row[WORK_BLOCKS], "threads_per_block": row[WORK_THREADS]}
            if row[WORK_BYTES]:
                arguments["bytes"] = row[WORK_BYTES]
            times = row[WORK_BEGIN_PS], row[WORK_END_PS]
            yield self._span(pe, key, self._names[row[WORK_NAME]], times, arguments)

    def _key(self, track: int, part: int) -> tuple[int, tuple]:
        columns = [TRACK_PE, TRACK_STREAM, TRACK_BLOCK, TRACK_IS_KERNEL]
        pe, stream, block, is_kernel = self._recorded.tracks[track, columns].tolist()
        # The library's calls on a stream come before the blocks of its kernels.
        return pe, (1, stream, block + 1 if is_kernel else 0, part)

    def _block_name(self, key: tuple) -> str:
        name = f"block {key[2] - 1}" if key[2] > 0 else "library calls"
        return name + (f", stream {key[1]}" if self._has_streams else "")

    def _blocks(self) -> Iterator[str]:
        activities = self._recorded.activities
        for row in self._recorded.spans.tolist():
            pe, key = self._key(row[TRACK], 0)
            yield from self._thread(pe, key, self._block_name(key))
            name = self._names[row[NAME]]
            if activities[row[ACTIVITY]] in ("compute", "turn"):
                name = json.dumps(activities[row[ACTIVITY]])
            arguments: dict[str, object] = {"activity": f'"{activities[row[ACTIVITY]]}"'}
            arguments |= self._details(row, row[SIZE_BYTES])
            yield self._span(pe, key, name, (row[BEGIN_PS], row[END_PS]), arguments)

    def _details(self, row: list[int], size_bytes: int) -> dict[str, object]:
        found: dict[str, object] = {}
        if size_bytes:
            found["bytes"] = size_bytes
        if row[PEER] >= 0:
            found["peer"] = row[PEER]
        elif row[PEER] == SEVERAL:
            found["peer"] = '"several"'
        if row[CALLS] > 1:
            found["calls"] = row[CALLS]
        if self._places[row[NAME]] != '""':
            found["source"] = self._places[row[NAME]]
        return found

    def _in_flight(self):
        """Transfers from their start to their arrival; returns the row of each on its thread."""
        transfers = self._recorded.transfers
        order = np.lexsort((transfers[:, LANDED_PS], transfers[:, BEGIN_PS]))
        rows, _ = stack(transfers[order][:, [TRACK, BEGIN_PS, LANDED_PS]])
        of_transfer = {}
        for index, place in zip(order.tolist(), rows, strict=True):
            row = transfers[index].tolist()
            pe, key = self._key(row[TRACK], 1 + place)
            of_transfer[index] = key
            more = f" ({place + 1})" if place else ""
            yield from self._thread(pe, key, f"{self._block_name(key)} in flight{more}")
            arguments = self._details(row, row[MOVED_BYTES])
            times = row[BEGIN_PS], row[LANDED_PS]
            yield self._span(pe, key, self._names[row[NAME]], times, arguments)
        return of_transfer

    def _arrows(self, keys: dict[int, tuple]) -> Iterator[str]:
        recorded = self._recorded
        get = recorded.activities.index("get")
        waits: dict[int, list[tuple[int, int]]] = {}
        for row in np.flatnonzero(self._causes >= 0).tolist():
            track, begin_ps, end_ps = recorded.spans[row, [TRACK, BEGIN_PS, END_PS]].tolist()
            landed_ps = int(recorded.transfers[self._causes[row], LANDED_PS])
            when_ps = min(max(landed_ps, begin_ps), end_ps - 1)
            waits.setdefault(int(self._causes[row]), []).append((when_ps, track))
        arrivals = (0, 5000)
        for index in np.argsort(recorded.transfers[:, LANDED_PS], kind="stable").tolist():
            row = recorded.transfers[index].tolist()
            if row[ACTIVITY] == get:
                continue  # it comes back to where it began
            sender, peer = int(recorded.tracks[row[TRACK], TRACK_PE]), row[PEER]
            yield from self._thread(peer, arrivals, "arrivals")
            arguments: dict[str, object] = {"from": sender, **self._details(row, row[MOVED_BYTES])}
            arguments.pop("peer", None)
            times = row[LANDED_PS], row[LANDED_PS]
            yield self._span(peer, arrivals, self._names[row[NAME]], times, arguments)
            flow = index + 1
            yield self._arrow("s", flow, (sender, keys[index]), row[BEGIN_PS])
            ended = sorted(waits.get(index, []))
            yield self._arrow("t" if ended else "f", flow, (peer, arrivals), row[LANDED_PS])
            for place, (when_ps, track) in enumerate(ended):
                phase = "f" if place + 1 == len(ended) else "t"
                yield self._arrow(phase, flow, self._key(track, 0), when_ps)

    def _arrow(self, phase: str, flow: int, where: tuple[int, tuple], time_ps: int) -> str:
        binding = ',"bp":"e"' if phase == "f" else ""
        return (
            f'{{"ph":"{phase}","cat":"transfer","name":"transfer","id":{flow}{binding},'
            f'"pid":{self._pid(where[0])},"tid":{self._tids[where]},"ts":{timestamp_us(time_ps)}}}'
        )

    def _counters(self) -> Iterator[str]:
        """Data carried in GB/s, per kind of link and for the busiest links."""
        recorded = self._recorded
        kinds: dict[str, np.ndarray] = {}
        for link in recorded.links:
            kinds[link.kind] = kinds.get(link.kind, 0) + link.carried_bytes
        busiest = sorted(recorded.links, key=lambda link: -link.size_bytes / link.rate_bytes_per_s)
        named = [(f"all {kind_name(kind)}", carried) for kind, carried in kinds.items()]
        named += [
            (f"{link.name} ({link.kind})", link.carried_bytes) for link in busiest[:_LINKS_MAX]
        ]
        pid = self._pid(recorded.pes)
        for name, carried in named:
            yield from _counter(json.dumps(name), pid, carried, recorded.interval_ps)


def _counter(name: str, pid: int, carried: np.ndarray, interval_ps: int) -> Iterator[str]:
    previous = None
    for place, size_bytes in enumerate([*carried.tolist(), 0]):
        rate = round(1000 * size_bytes / interval_ps, 3)  # bytes per picosecond are TB/s
        if rate != previous:
            time_ps = place * interval_ps
            yield (
                f'{{"ph":"C","name":{name},"pid":{pid},"tid":{pid},'
                f'"ts":{timestamp_us(time_ps)},"args":{{"GB/s":{rate}}}}}'
            )
        previous = rate


def _place(key: tuple) -> int:
    """Orders threads: streams and arrivals first, then blocks with their transfers in flight."""
    if key[0] == 0:
        return int(key[1])
    _, stream, block, part = key
    return 10_000 + (stream * 100_000 + block) * 64 + min(part, 63)
