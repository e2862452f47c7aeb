# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Breakdown of the time of kernels, compared with the minimum set by links and latency."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from towpath.kernels.profile import (
    ACTIVITY,
    BEGIN_PS,
    CALLS,
    END_PS,
    NAME,
    PEER,
    TRACK,
    TRACK_IS_KERNEL,
    TRACK_PE,
    TRACK_TIMES,
    WORK_BEGIN_PS,
    WORK_END_PS,
    Recorded,
)
from towpath.kernels.profile_causes import (
    IN_FLIGHT,
    NOTICED_LATE,
    UNKNOWN,
    Blame,
    blames,
    ended_by,
    longest_chain,
    waits_of,
)

# What blocks do, in words that follow "the blocks".
WORDS = {
    "put": "put", "get": "get", "signal": "send signals", "atomic": "change words of peers",
    "compute": "compute, load and store", "quiet": "wait in quiet and fence",
    "wait": "wait for signals", "collective": "are in barriers and collectives of PEs",
    "sync": "wait for their own threads", "turn": "wait for their turn on a core of this host",
}  # fmt: skip
_CAUSES = {**WORDS, IN_FLIGHT: "have transfers in flight", "not started": "have not started",
           NOTICED_LATE: "have sent the signal, which is seen late",
           UNKNOWN: "are unknown"}  # fmt: skip
_ADVICE = {
    "put": "let more blocks or threads put: within a host, they copy the bytes themselves",
    "get": "put instead of get, or let more blocks or threads get",
    "signal": "send fewer signals, each with a larger packet",
    "atomic": "change words of peers less often",
    "compute": "let more blocks or threads work, with wider loads and stores",
    "quiet": "send the signal with the put (put_signal) instead of after a quiet",
    "wait": "start the next put before the last has arrived",
    "collective": "wait for the peers that are needed instead of for all",
    "sync": "give the threads of a block equal work, and use fewer barriers",
    "turn": "use fewer blocks: they share one core for each PE here",
    IN_FLIGHT: "have more packets on the way at a time: more blocks, or several puts before a wait",
    "not started": "launch the kernels of all PEs together",
    NOTICED_LATE: "use no more PEs and blocks than the host has idle cores to look for signals",
    UNKNOWN: "wait for words that a put or a signal changes",
}
_NOBODYS = (IN_FLIGHT, NOTICED_LATE, UNKNOWN)  # causes that are not the work of a PE's blocks
_LINK_IS_IDLE = 0.01  # share of its bandwidth below which nothing is said of it
_LINK_IS_LIMIT = 0.7  # share of its bandwidth from which a link is called the limit
_CHAIN_IS_LIMIT = 0.6  # share of the time
_PROXY_IS_LIMIT = 0.6  # share of the time
_CULPRIT_SHARE = 0.4  # of all waiting
_CULPRIT_WORK = 1.5  # times what the others work


@dataclass(frozen=True)
class PeTime:
    """Time of the blocks of one PE.

    Attributes:
        pe: number of the PE.
        blocks: number of rows of blocks that its kernels used.
        time_us: total time of its blocks, in microseconds.
        shares: part of that time for each activity with a nonzero time, greatest first.
        waits_for: the PE that ended most of its waiting, or None.
        waits_for_share: part of its waiting that this PE ended.
    """

    pe: int
    blocks: int
    time_us: float
    shares: dict[str, float]
    waits_for: int | None
    waits_for_share: float


@dataclass(frozen=True)
class CallTime:
    """A call in the source, summed over all blocks.

    Attributes:
        name: the function; the kernel's name for time in which blocks compute.
        place: "ring.cu:12"; "" if it is not a call.
        activity: the activity of blocks in it.
        share: part of all block time.
    """

    name: str
    place: str
    activity: str
    share: float


@dataclass(frozen=True)
class BusyLink:
    """A link compared with its bandwidth.

    Attributes:
        name: "node0/gpu3 > node0/nvswitch".
        kind: "nvlink", "pcie", "network" or "socket".
        size_bytes: number of bytes carried.
        share: part of the bytes that it could have carried while kernels ran.
        least_us: time of the bytes at its rate, in microseconds.
    """

    name: str
    kind: str
    size_bytes: int
    share: float
    least_us: float


@dataclass(frozen=True)
class BusyProxy:
    """The proxy of a PE, which passes its transfers to an adapter one after the other.

    Attributes:
        pe: number of the PE.
        transfers: number of puts, gets, signals and atomic operations to other hosts.
        least_us: their minimum time in the proxy, in microseconds.
    """

    pe: int
    transfers: int
    least_us: float


@dataclass(frozen=True)
class ProfileVerdict:
    """Breakdown of the time of kernels, and its lower bounds.

    Attributes:
        time_us: time in microseconds during which kernels or work of streams ran on any PE.
        total_us: time from the start to the end of the last host program.
        shares: part of all block time for each activity with a nonzero time, greatest first.
        pes: the same by PE, with the PE that it waits for.
        calls: the same by call in the source, for the recorded spans.
        links: links with the highest load relative to their rate, the busiest first; empty for a
            live run.
        rounds: number of transfers in the longest chain in which each waits for the previous one.
        bytes_bound_us: minimum time for the bytes of the busiest link; None for a live run.
        latency_bound_us: minimum time of the longest chain; None for a live run.
        proxy: the CPU proxy with the most transfers; None if no proxy was used.
        causes: by PE and activity, its part in all waiting, greatest first. If the sender of a
            signal itself waits, the cause of that wait counts.
        sentences: the limit of the run, and advice.
    """

    time_us: float
    total_us: float
    shares: dict[str, float]
    pes: list[PeTime]
    calls: list[CallTime]
    links: list[BusyLink]
    rounds: int
    bytes_bound_us: float | None
    latency_bound_us: float | None
    proxy: BusyProxy | None
    causes: dict[tuple[int, str], float]
    sentences: list[str]

    @property
    def bound_us(self) -> float | None:
        """The greatest of the bounds, in microseconds; None for a live run."""
        if self.bytes_bound_us is None or self.latency_bound_us is None:
            return None
        proxy_us = 0.0 if self.proxy is None else self.proxy.least_us
        return max(self.bytes_bound_us, self.latency_bound_us, proxy_us)

    @property
    def text(self) -> str:
        """The sentences as one text."""
        return " ".join(self.sentences)


def judge(recorded: Recorded) -> ProfileVerdict:
    """The verdict on a run."""
    causes = ended_by(recorded)
    rounds, chain_ps = longest_chain(recorded, causes)
    time_ps = _covered_ps(recorded.work[:, [WORK_BEGIN_PS, WORK_END_PS]])
    links = _busiest(recorded, time_ps)
    waited = _sum_of(_of_kernels(recorded, blames(recorded, causes)))
    found = ProfileVerdict(
        time_us=time_ps / 1e6,
        total_us=recorded.end_ps / 1e6,
        shares=_shares(recorded, _kernel_tracks(recorded)),
        pes=_by_pe(recorded, causes),
        calls=_by_call(recorded),
        links=links,
        rounds=rounds,
        bytes_bound_us=None if recorded.is_live else max((x.least_us for x in links), default=0.0),
        latency_bound_us=None if recorded.is_live else chain_ps / 1e6,
        proxy=_proxy(recorded),
        causes=_parts(waited),
        sentences=[],
    )
    found.sentences.extend(_sentences(found))
    return found


def _covered_ps(intervals: np.ndarray) -> int:
    """Total time during which at least one of the intervals lasts."""
    covered_ps, until_ps = 0, -1
    for begin_ps, end_ps in intervals[np.argsort(intervals[:, 0], kind="stable")].tolist():
        covered_ps += max(end_ps - max(begin_ps, until_ps), 0)
        until_ps = max(until_ps, end_ps)
    return covered_ps


def _kernel_tracks(recorded: Recorded) -> np.ndarray:
    tracks = recorded.tracks
    kernels = tracks[tracks[:, TRACK_IS_KERNEL] == 1]
    return kernels if len(kernels) else tracks


def _of_kernels(recorded: Recorded, found: dict[int, Blame]) -> list[Blame]:
    """The waits in kernels; all waits if kernels do not wait."""
    is_kernel = recorded.tracks[:, TRACK_IS_KERNEL]
    own = [blame for row, blame in found.items() if is_kernel[recorded.spans[row, TRACK]]]
    return own or list(found.values())


def _shares(recorded: Recorded, tracks: np.ndarray) -> dict[str, float]:
    times_ps = tracks[:, TRACK_TIMES:].sum(axis=0)
    return _parts(dict(zip(recorded.activities, times_ps.tolist(), strict=True)))


def _parts(times: dict) -> dict:
    """Nonzero parts as fractions of the sum, greatest first."""
    total = sum(times.values())
    order = sorted((key for key in times if times[key] > 0), key=lambda key: -times[key])
    return {key: times[key] / total for key in order}


def _sum_of(all_blames: Iterable[Blame]) -> Blame:
    total: Blame = defaultdict(float)
    for blame in all_blames:
        for who, time_ps in blame.items():
            total[who] += time_ps
    return total


def _by_pe(recorded: Recorded, causes: np.ndarray) -> list[PeTime]:
    tracks = _kernel_tracks(recorded)
    pes = recorded.tracks[:, TRACK_PE]
    waits: dict[int, dict[int, float]] = defaultdict(lambda: defaultdict(float))
    for row in waits_of(recorded).tolist():
        if causes[row] < 0:
            continue
        sender = int(pes[recorded.transfers[causes[row], TRACK]])
        waiter = int(pes[recorded.spans[row, TRACK]])
        waits[waiter][sender] += int(recorded.spans[row, END_PS] - recorded.spans[row, BEGIN_PS])
    found = []
    for pe in range(recorded.pes):
        own = tracks[tracks[:, TRACK_PE] == pe]
        parts = _parts(waits[pe])
        first = next(iter(parts), None)
        found.append(PeTime(
            pe=pe, blocks=len(own), time_us=int(own[:, TRACK_TIMES:].sum()) / 1e6,
            shares=_shares(recorded, own), waits_for=first,
            waits_for_share=parts[first] if first is not None else 0.0,
        ))  # fmt: skip
    return found


def _by_call(recorded: Recorded) -> list[CallTime]:
    is_own = np.zeros(len(recorded.tracks), dtype=bool)
    is_own[recorded.tracks[:, TRACK_IS_KERNEL] == 1] = True
    if not is_own.any():
        is_own[:] = True
    spans = recorded.spans[is_own[recorded.spans[:, TRACK]]]
    kinds, which = np.unique(spans[:, [ACTIVITY, NAME]], axis=0, return_inverse=True)
    times_ps = np.bincount(which.ravel(), spans[:, END_PS] - spans[:, BEGIN_PS], len(kinds))
    whole_ps = max(float(times_ps.sum()), 1.0)
    found = [
        CallTime(
            recorded.names[name][0],
            recorded.names[name][1],
            recorded.activities[activity],
            time_ps / whole_ps,
        )
        for (activity, name), time_ps in zip(kinds.tolist(), times_ps.tolist(), strict=True)
    ]
    return sorted(found, key=lambda call: -call.share)


def _busiest(recorded: Recorded, time_ps: int) -> list[BusyLink]:
    links = [
        BusyLink(
            link.name, link.kind, link.size_bytes,
            link.size_bytes / (link.rate_bytes_per_s * max(time_ps, 1) / 1e12),
            link.size_bytes / link.rate_bytes_per_s * 1e6,
        )
        for link in recorded.links
    ]  # fmt: skip
    return sorted(links, key=lambda link: -link.least_us)


def _proxy(recorded: Recorded) -> BusyProxy | None:
    transfers = recorded.transfers
    if recorded.hosts is None or recorded.proxy_message_ps == 0 or len(transfers) == 0:
        return None
    senders = recorded.tracks[transfers[:, TRACK], TRACK_PE]
    leaves = recorded.hosts[senders] != recorded.hosts[transfers[:, PEER]]
    counts = np.bincount(senders[leaves], transfers[leaves, CALLS], recorded.pes)
    pe = int(counts.argmax())
    count = int(counts[pe])
    return BusyProxy(pe, count, count * recorded.proxy_message_ps / 1e6) if count else None


def _sentences(verdict: ProfileVerdict) -> list[str]:
    if not verdict.shares:
        return ["No kernel ran."]
    first, share = next(iter(verdict.shares.items()))
    call = next((call for call in verdict.calls if call.activity == first and call.place), None)
    where = f", most of it in {call.name} at {call.place}" if call is not None else ""
    found = [*_bounds(verdict), f"{share:.0%} of block time the blocks {WORDS[first]}{where}."]
    culprit = _culprit(verdict)
    if verdict.links and verdict.links[0].share >= _LINK_IS_LIMIT:
        advice = f"send fewer bytes over {verdict.links[0].name}, or spread them over other links"
    elif verdict.proxy is not None and verdict.proxy.least_us >= _PROXY_IS_LIMIT * verdict.time_us:
        proxy = verdict.proxy
        found.append(
            f"The proxy of PE {proxy.pe} hands {proxy.transfers:,} transfers to its adapter, which "
            f"takes {_time(proxy.least_us)} at least."
        )
        advice = "send fewer and larger packets to other hosts"
    elif culprit is not None:
        pe, activity, part = culprit
        found.append(
            f"PE {pe} is what the others wait for: {part:.0%} of all waiting is for what its "
            f"blocks do ({activity})."
        )
        advice = f"give PE {pe} less to do, or more blocks to do it"
    elif verdict.latency_bound_us and verdict.latency_bound_us >= _CHAIN_IS_LIMIT * verdict.time_us:
        advice = "use fewer rounds: each waits for the one before, however few bytes it moves"
    else:
        cause, part, of_what = _main_cause(verdict)
        if of_what:
            found.append(f"{part:.0%} of {of_what} is for peers that {_CAUSES[cause]}.")
        advice = _ADVICE[cause]
    found.append(f"Try this: {advice}.")
    return found


def _bounds(verdict: ProfileVerdict) -> list[str]:
    if verdict.bytes_bound_us is None or verdict.latency_bound_us is None:
        return [f"Kernels ran for {_time(verdict.time_us)} on this host."]
    found = []
    start = f"Kernels ran for {_time(verdict.time_us)}"
    if verdict.links and verdict.links[0].share < _LINK_IS_IDLE:
        found.append(f"{start}, and no link was used to more than {_LINK_IS_IDLE:.0%}.")
    elif verdict.links:
        link = verdict.links[0]
        found.append(
            f"{start}, {_ratio(verdict.time_us, link.least_us)} what the bytes over {link.name} "
            f"({link.kind}) need: it is used to {link.share:.0%}."
        )
    else:
        found.append(f"{start}, and no link carried anything.")
    if verdict.rounds > 0:
        found.append(
            f"{verdict.rounds} transfers in a row, each after the one before, take "
            f"{_time(verdict.latency_bound_us)} at least."
        )
    launches_us = verdict.total_us - verdict.time_us
    if launches_us > verdict.time_us:
        found.append(f"Outside of kernels, launches among it, {_time(launches_us)} passed.")
    return found


def _culprit(verdict: ProfileVerdict) -> tuple[int, str, float] | None:
    """The PE whose own work causes most waiting, its activity, and its part in all waiting."""
    by_pe: dict[int, float] = defaultdict(float)
    own = {who: part for who, part in verdict.causes.items() if who[1] not in _NOBODYS}
    for (pe, _), part in own.items():
        by_pe[pe] += part
    if not by_pe or len(verdict.pes) < 2:
        return None
    pe = max(by_pe, key=lambda each: by_pe[each])
    work = [_work_us(each) for each in verdict.pes]
    others = sorted(work[:pe] + work[pe + 1 :])
    usual = others[len(others) // 2]
    if by_pe[pe] < _CULPRIT_SHARE or work[pe] < _CULPRIT_WORK * usual:
        return None
    activity = max((who for who in own if who[0] == pe), key=lambda who: own[who])[1]
    return pe, activity, by_pe[pe]


def _work_us(pe: PeTime) -> float:
    """Time of its activities other than waiting, per block, in microseconds."""
    waiting = sum(pe.shares.get(name, 0.0) for name in ("wait", "collective", "sync", "turn"))
    return (1 - waiting) * pe.time_us / max(pe.blocks, 1)


def _main_cause(verdict: ProfileVerdict) -> tuple[str, float, str]:
    """The largest cause, its part, and the kind of waiting of which it is a part ("" if it is not
    waiting).
    """
    first, share = next(iter(verdict.shares.items()))
    if first not in ("wait", "collective") or not verdict.causes:
        return first, share, ""
    by_activity: dict[str, float] = defaultdict(float)
    for (_, activity), part in verdict.causes.items():
        by_activity[activity] += part
    cause = max(by_activity, key=lambda each: by_activity[each])
    return cause, by_activity[cause], "all waiting"


def _ratio(time_us: float, least_us: float) -> str:
    ratio = time_us / least_us
    return f"{ratio:,.0f}x" if ratio >= 10 else f"{ratio:.1f}x"


def _time(time_us: float) -> str:
    if time_us >= 1000:
        return f"{time_us / 1000:,.2f} ms"
    return f"{time_us:.2f} us" if time_us < 10 else f"{time_us:.1f} us"
