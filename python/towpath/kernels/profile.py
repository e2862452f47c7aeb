# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Records of a run of kernels as arrays: the activities of blocks over time, live or simulated."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from towpath.kernels.profile_verdict import ProfileVerdict

# Records of each kind that are kept; older ones are dropped, and the profile says how many.
RECORDS_MAX = 200_000

NOBODY, SEVERAL = -1, -2  # peers

# Columns of Recorded.spans. A peer is a PE or one of the above; the words are those whose change
# ended a wait, in the symmetric heap of the block's PE.
TRACK, ACTIVITY, NAME, PEER, CALLS, BEGIN_PS, END_PS, SIZE_BYTES, WORDS, WORDS_BYTES = range(10)
# Further columns of Recorded.transfers, whose begin is column 5 as well. Targets and signals are
# offsets in the heap of the peer.
DONE_PS, LANDED_PS, MOVED_BYTES, TARGET, TARGET_BYTES, SIGNAL, SIGNAL_BYTES = range(6, 13)
# Columns of Recorded.work.
(
    WORK_PE, WORK_STREAM, WORK_NAME, WORK_QUEUED_PS, WORK_BEGIN_PS, WORK_END_PS, WORK_BYTES,
    WORK_BLOCKS, WORK_THREADS, WORK_IS_KERNEL,
) = range(10)  # fmt: skip
# Columns of Recorded.tracks; the time of each activity follows, in picoseconds.
TRACK_PE, TRACK_STREAM, TRACK_BLOCK, TRACK_IS_KERNEL, TRACK_SPANS, TRACK_TIMES = range(6)


@dataclass(frozen=True)
class LinkUse:
    """One direction of a wire of the simulated machine.

    Attributes:
        name: "node0/gpu3 > node0/nvswitch".
        kind: "nvlink", "pcie", "network" or "socket".
        rate_bytes_per_s: maximum rate.
        size_bytes: number of bytes carried.
        busy_ps: time for which it was occupied.
        carried_bytes: bytes carried per interval of Recorded.interval_ps, from time 0.
    """

    name: str
    kind: str
    rate_bytes_per_s: int
    size_bytes: int
    busy_ps: int
    carried_bytes: np.ndarray


@dataclass(frozen=True)
class Recorded:
    """The records of a run; all times are picoseconds since its start.

    Attributes:
        where: the machine, or "this host".
        is_live: True if times are from this host's clock.
        pes: number of PEs.
        activities: the names of activities, by number.
        names: the name of a call or a kernel, and its place in the source or "", by number.
        spans: one row per activity of a block, with the columns above; the rows of a block have no
            gaps.
        transfers: one row for each put, get, signal and atomic operation.
        work: one row for each kernel, copy and call on a stream.
        tracks: one row for the blocks of one index on one stream of a PE.
        dropped: number of spans, transfers and pieces of work for which there was no room.
        links: links that carried data; empty for a live run.
        interval_ps: interval of `LinkUse.carried_bytes`.
        latency_ps: by sender and receiver, the minimum time from a signal's start until its waiter
            continues; None for a live run.
        end_ps: end of the last host program.
        hosts: the host of each PE; None for a live run.
        proxy_message_ps: time for which each transfer to another host occupies the proxy of its PE;
            0 if there is no proxy.
    """

    where: str
    is_live: bool
    pes: int
    activities: Sequence[str]
    names: Sequence[tuple[str, str]]
    spans: np.ndarray
    transfers: np.ndarray
    work: np.ndarray
    tracks: np.ndarray
    dropped: tuple[int, int, int]
    end_ps: int
    links: Sequence[LinkUse] = field(default_factory=list)
    interval_ps: int = 1
    latency_ps: np.ndarray | None = None
    hosts: np.ndarray | None = None
    proxy_message_ps: int = 0

    @cached_property
    def verdict(self) -> ProfileVerdict:
        """The breakdown of time, with a verdict."""
        from towpath.kernels.profile_verdict import judge

        return judge(self)

    @property
    def dropped_sentence(self) -> str:
        """The records that the trace leaves out; "" if it is complete."""
        spans, transfers, _ = self.dropped
        if spans + transfers == 0:
            return ""
        kept = len(self.spans), len(self.transfers)
        return (
            f"The trace keeps the last {kept[0]:,} of {kept[0] + spans:,} spans and the last "
            f"{kept[1]:,} of {kept[1] + transfers:,} transfers; sums of time are of all."
        )


def recorded_simulation(where: str, pes: int, core: dict[str, Any]) -> Recorded:
    """Creates the records of PEs in one simulation.

    Args:
        where: the machine.
        pes: number of PEs.
        core: the return value of `SimulatedPes.profile()`.
    """
    _complete(core["transfers"], core["work"])
    links = [LinkUse(f"{first} > {last}", *rest) for first, last, *rest in core["links"]]
    return Recorded(
        where=where, is_live=False, pes=pes, activities=core["activities"], names=core["names"],
        spans=core["spans"], transfers=core["transfers"], work=core["work"],
        tracks=core["tracks"], dropped=tuple(core["dropped"]), links=links,
        interval_ps=core["interval_ps"], latency_ps=core["latency_ps"], end_ps=core["end_ps"],
        hosts=core["hosts"], proxy_message_ps=core["proxy_message_ps"],
    )  # fmt: skip


def recorded_live(parts: Sequence[dict[str, Any]]) -> Recorded:
    """Creates the records of processes of this host, which share one clock.

    Args:
        parts: the records of each PE's process.
    """
    names: list[tuple[str, str]] = []
    numbers: dict[tuple[str, str], int] = {}
    tables: dict[str, list[np.ndarray]] = {key: [] for key in ("spans", "transfers", "work")}
    tracks: list[np.ndarray] = []
    for part in parts:
        first_track = sum(len(each) for each in tracks)
        new = np.array([_number(numbers, names, tuple(name)) for name in part["names"]], np.int64)
        for key, rows in tables.items():
            own = part[key].copy()
            column = WORK_NAME if key == "work" else NAME
            own[:, column] = new[own[:, column]] if len(own) else own[:, column]
            if key != "work":
                own[:, TRACK] += first_track
            rows.append(own)
        tracks.append(part["tracks"])
    spans, transfers, work = (np.concatenate(rows) for rows in tables.values())
    _complete(transfers, work)
    begin_ps = _first_ps(spans, transfers, work)
    spans[:, [BEGIN_PS, END_PS]] -= begin_ps
    transfers[:, [BEGIN_PS, DONE_PS, LANDED_PS]] -= begin_ps
    work[:, [WORK_QUEUED_PS, WORK_BEGIN_PS, WORK_END_PS]] -= begin_ps
    dropped = np.sum([part["dropped"] for part in parts], axis=0).tolist()
    ends_ps = [*spans[:, END_PS].tolist(), *work[:, WORK_END_PS].tolist(), 0]
    return Recorded(
        where="this host", is_live=True, pes=len(parts), activities=parts[0]["activities"],
        names=names, spans=spans, transfers=transfers, work=work, tracks=np.concatenate(tracks),
        dropped=(dropped[0], dropped[1], dropped[2]), end_ps=max(ends_ps),
    )  # fmt: skip


def _number(
    numbers: dict[tuple[str, str], int], names: list[tuple[str, str]], name: tuple[str, str]
) -> int:
    if name not in numbers:
        numbers[name] = len(names)
        names.append(name)
    return numbers[name]


def _complete(transfers: np.ndarray, work: np.ndarray) -> None:
    """Gives spans that had not ended at the end of the run an end equal to their start."""
    for table, columns in ((transfers, (BEGIN_PS, DONE_PS, LANDED_PS)),
                           (work, (WORK_QUEUED_PS, WORK_BEGIN_PS, WORK_END_PS))):  # fmt: skip
        for before, after in zip(columns, columns[1:], strict=False):
            table[:, after] = np.where(table[:, after] == 0, table[:, before], table[:, after])


def _first_ps(spans: np.ndarray, transfers: np.ndarray, work: np.ndarray) -> int:
    columns = (spans[:, BEGIN_PS], transfers[:, BEGIN_PS], work[:, WORK_QUEUED_PS])
    return min((int(column.min()) for column in columns if len(column)), default=0)
