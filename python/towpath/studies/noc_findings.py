# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""What the published study of virtual channels found, held against the measurements of a run.

The study is tt-metal's tech report on virtual channels (Wormhole B0 and Blackhole). A finding is
shown when the numbers of this run bear it out, whatever we would like them to say.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby, pairwise
from statistics import mean, median
from typing import Any

from towpath.specs.sizes import format_size
from towpath.studies.noc_traffic import STALLED_MAX, ChipShape

Row = dict[str, Any]  # a point and its result

# Smaller differences do not count: such lines coincide in the study's plots.
MATERIAL = 0.05
# Beside data on the same VC a message must take so much longer for its own VC to be worth having.
_WORTH_A_VC = 1.5
# A stalled port leaves one flit per credit's round trip, which is 16 cycles; and what is half full
# still runs at full rate, but for what the stalled flows themselves carry.
_STARVED_MAX, _UNHURT_MIN = 2 / 16, 0.75


@dataclass(frozen=True)
class Finding:
    """A finding of the study.

    Attributes:
        name: short, for programs.
        claim: what the study found.
        shown: whether this run shows it too.
        numbers: numbers of this run that the verdict comes from, a clause each.
        reason: why it is so.
    """

    name: str
    claim: str
    shown: bool
    numbers: list[str]
    reason: str

    @property
    def verdict(self) -> str:
        return "shown" if self.shown else "not shown"


def findings(parts: dict[str, list[Row]], shape: ChipShape) -> list[Finding]:
    """Every finding that the run has measured something about.

    Args:
        parts: rows by part of the study, as in noc_study.study_parts().
        shape: shape of the chip.
    """
    patterns = parts.get("patterns", [])
    found = [
        no_difference(patterns, "one_to_one", _ALONE),
        no_difference(patterns, "one_to_all", _IN_TURN),
        no_gain(patterns, "all_to_all", shape),
        irregular(patterns, "all_to_all", _MEETING),
        no_difference(patterns, "one_from_one", _RESPONSES),
        no_difference(patterns, "one_from_all", _RESPONSES),
        irregular(patterns, "all_from_all", _PERTURBED),
        drop_at_few(parts.get("orders", [])),
        cure_by_turning(parts.get("orders", [])),
        own_vc_for_messages(parts.get("flow_control", [])),
        onset(parts.get("throttle", []), shape),
        starved_by_stalled(parts.get("stalled_vcs", []), shape),
        no_difference(parts.get("loopback", []), "loopback", _ALONE),
    ]
    return [finding for finding in found if finding is not None]


_ALONE = (
    "Nothing else is on the way, so the core's issue rate or the link limits the flow, and either "
    "is the same for one VC and for four."
)
_IN_TURN = (
    "The core goes on to the next destination when it has issued all for the one before, and what "
    "it issues shares one link out of its own tile: other VCs add no way out."
)
_MEETING = (
    "All masters walk the same list, so flows meet at a few destinations at a time; which of them "
    "wait, and how long, follows from small shifts in time that size and VC count change."
)
_RESPONSES = (
    "The VC that software picks carries one flit per read request. The data comes back on the VC "
    "that hardware picks for responses."
)
_PERTURBED = (
    "Requests are small, yet a shift of a few cycles changes the order in which responses leave "
    "and the VCs they get, and with that where responses of different masters collide."
)


# --- patterns -------------------------------------------------------------------------------------


def no_difference(rows: Iterable[Row], pattern: str, reason: str) -> Finding | None:
    """No VC count is better or worse than one VC."""
    changes = list(_changes(rows, pattern))
    if not changes:
        return None
    shown = all(abs(change) <= MATERIAL for change, _ in changes)
    claim = f"{_words(pattern)}: the number of VCs makes no difference"
    return Finding(pattern, claim, shown, [_extremes(changes)], reason)


def no_gain(rows: Iterable[Row], pattern: str, shape: ChipShape) -> Finding | None:
    """More VCs bring nothing on the whole, and cost bandwidth somewhere."""
    changes = list(_changes(rows, pattern))
    if not changes:
        return None
    per_count = []
    for vcs in sorted({row["vcs"] for _, row in changes}):
        own = [change for change, row in changes if row["vcs"] == vcs]
        per_count.append(f"{vcs} VCs {_percent(mean(own))}")
    no_benefit = median(change for change, _ in changes) <= MATERIAL
    has_loss = min(change for change, _ in changes) < -MATERIAL
    reason = (
        "A router picks a VC first and a port for it afterwards; where the picked VC is blocked, "
        "the cycle is lost though another could have moved. And all VCs of a port share "
        f"{shape.pool_flits} flits of buffer, of which one may hold {shape.pool_flits_per_vc_max}: "
        "with the dateline VC of each, n VCs are 2 n that compete for what three fill."
    )
    claim = f"{_words(pattern)}: several VCs bring no bandwidth, and in places cost some"
    numbers = [f"in the mean {', '.join(per_count)}", _extremes(changes)]
    return Finding(f"{pattern}_loss", claim, no_benefit and has_loss, numbers, reason)


def irregular(rows: Iterable[Row], pattern: str, reason: str) -> Finding | None:
    """Bandwidth does not simply rise with the size, or VC counts help here and hurt there.

    Sizes are compared only where as many transactions went to each destination.
    """
    own = _of_pattern(rows, pattern)
    changes = list(_changes(own, pattern))
    if not changes:
        return None
    dips = [
        (after["bandwidth_bytes_per_cycle"] / before["bandwidth_bytes_per_cycle"] - 1, after)
        for curve in _curves(own)
        for before, after in pairwise(curve)
        if before["per_destination"] == after["per_destination"]
    ]
    deep = [dip for dip in dips if dip[0] < -MATERIAL]
    both_ways = (
        min(change for change, _ in changes) < -MATERIAL
        and max(change for change, _ in changes) > MATERIAL
    )
    if deep:
        change, row = min(deep, key=lambda dip: dip[0])
        dipping = (
            f"in {len(deep)} of {len(dips)} cases, at worst {_percent(change)} ({_where(row)})"
        )
    else:
        dipping = f"in none of {len(dips)} cases"
    claim = f"{_words(pattern)}: bandwidth varies irregularly with size and VC count"
    numbers = [f"a larger size loses bandwidth {dipping}", _extremes(changes)]
    return Finding(f"{pattern}_irregular", claim, bool(deep) or both_ways, numbers, reason)


def _of_pattern(rows: Iterable[Row], pattern: str) -> list[Row]:
    return [row for row in rows if row["pattern"] == pattern]


def _changes(rows: Iterable[Row], pattern: str) -> Iterator[tuple[float, Row]]:
    """Relative change of bandwidth against one VC, at the same NoC and size."""
    own = _of_pattern(rows, pattern)
    one = {_place(row): row["bandwidth_bytes_per_cycle"] for row in own if row["vcs"] == 1}
    for row in own:
        if row["vcs"] > 1 and _place(row) in one:
            yield row["bandwidth_bytes_per_cycle"] / one[_place(row)] - 1, row


def _place(row: Row) -> tuple[int, int]:
    return row["noc"], row["size_bytes"]


def _curves(rows: Iterable[Row]) -> Iterator[list[Row]]:
    """Rows of one NoC and VC count, by size."""

    def curve(row: Row) -> tuple:
        return row["noc"], row["vcs"], row.get("turned", False)

    ordered = sorted(rows, key=lambda row: (*curve(row), row["size_bytes"]))
    for _, own in groupby(ordered, key=curve):
        yield list(own)


# --- follow-ups -----------------------------------------------------------------------------------


def drop_at_few(rows: Iterable[Row]) -> Finding | None:
    """With few transactions per destination, bandwidth falls beyond some size."""
    drops = [(*_drop(curve), curve[0]["pattern"]) for curve in _order_curves(rows, turned=False)]
    if not drops:
        return None
    shown = any(loss > MATERIAL for loss, *_ in drops)
    numbers = [
        f"{_words(pattern)}, NoC {low['noc']}: {_rate(peak)} at {_size(peak)}, "
        + (f"down to {_rate(low)} at {_size(low)}" if loss > MATERIAL else "no drop beyond")
        for loss, peak, low, pattern in drops
    ]
    reason = (
        "A master sends all it has for a destination before it goes on. With few and large "
        "transactions, masters that began together stay together: they queue for one destination "
        "after the other, and the links elsewhere idle."
    )
    claim = "Four transactions per destination: bandwidth drops beyond a few KiB per transaction"
    return Finding("drop_at_four", claim, shown, numbers, reason)


def cure_by_turning(rows: Iterable[Row]) -> Finding | None:
    """Beginning at different destinations and VCs gives back what the drop took."""
    rows = list(rows)

    def point(row: Row) -> tuple[int, int, str]:
        return *_place(row), row["pattern"]

    turned = {
        point(row): row["bandwidth_bytes_per_cycle"]
        for curve in _order_curves(rows, turned=True)
        for row in curve
    }
    numbers, regained = [], []
    for plain in _order_curves(rows, turned=False):
        changes = [
            turned[point(row)] / row["bandwidth_bytes_per_cycle"] - 1
            for row in plain
            if point(row) in turned
        ]
        if len(changes) < len(plain):
            continue
        loss, peak, low = _drop(plain)
        after = turned[point(low)]
        if loss > MATERIAL:
            regained.append(after >= (1 - MATERIAL) * peak["bandwidth_bytes_per_cycle"])
        numbers.append(
            f"{_words(low['pattern'])}, NoC {low['noc']}: "
            + (f"{_rate(low)} at {_size(low)} become {after:.3g}; " if loss > MATERIAL else "")
            + f"over all sizes {_percent(min(changes))} to {_percent(max(changes))}, "
            f"{_percent(median(changes))} median"
        )
    if not numbers:
        return None
    claim = "Randomising destination and VC per master takes the drop away"
    reason = (
        "Masters that begin elsewhere in the list load all destinations at once, each with one "
        "flow at a time. A single master competes with no other."
    )
    return Finding("cure_by_order", claim, bool(regained) and all(regained), numbers, reason)


def _order_curves(rows: Iterable[Row], *, turned: bool) -> list[list[Row]]:
    """A curve per pattern and NoC, of the sizes that have all their transactions."""
    whole = [
        row
        for row in rows
        if row["turned"] == turned and row["per_destination"] == row["asked_per_destination"]
    ]
    patterns = dict.fromkeys(row["pattern"] for row in whole)
    return [curve for pattern in patterns for curve in _curves(_of_pattern(whole, pattern))]


def _drop(curve: list[Row]) -> tuple[float, Row, Row]:
    """The largest loss from a size to a larger one, with the rows of both."""

    def rate(row: Row) -> float:
        return row["bandwidth_bytes_per_cycle"]

    peak = curve[0]
    worst = (0.0, peak, peak)
    for row in curve:
        if rate(row) >= rate(peak):
            peak = row
        worst = max(worst, (1 - rate(row) / rate(peak), peak, row), key=lambda drop: drop[0])
    return worst if worst[0] > 0 else (0.0, peak, peak)


def own_vc_for_messages(rows: Iterable[Row]) -> Finding | None:
    """Small messages beside data are faster on a VC of their own."""
    latency = {
        (row["noc"], row["message"], row["placement"]): row["latency_median_cycles"] for row in rows
    }
    places = [
        (noc, message)
        for noc, message in sorted({(noc, message) for noc, message, _ in latency})
        if {(noc, message, "own_vc"), (noc, message, "data_vc")} <= latency.keys()
    ]
    if not places:
        return None
    shown = all(
        latency[noc, message, "data_vc"] >= _WORTH_A_VC * latency[noc, message, "own_vc"]
        for noc, message in places
    )
    numbers = [
        f"{message.replace('_', ' ')}, NoC {noc}: {latency[(noc, message, 'own_vc')]:,} cycles on "
        f"its own VC, {latency[(noc, message, 'data_vc')]:,} on the data's"
        + (
            f", {latency[(noc, message, 'alone')]:,} without data"
            if (noc, message, "alone") in latency
            else ""
        )
        for noc, message in places
    ]
    reason = (
        "Within a VC nothing overtakes: a message behind a packet waits until the whole packet has "
        "moved on. On its own VC it only takes turns with the data, flit by flit."
    )
    claim = "Flow-control messages should have a VC apart from data (medians)"
    return Finding("own_vc", claim, shown, numbers, reason)


def onset(rows: Iterable[Row], shape: ChipShape) -> Finding | None:
    """The load from which cores no longer get through what they offer."""
    numbers, found = [], []
    for (noc, vcs), own in _throttle_curves(rows):
        late = [row for row in own if _is_late(row)]
        first = late[0] if late else None
        found.append(first is not None and first is not own[0])
        most = max(own, key=lambda row: row["bandwidth_bytes_per_cycle"])
        begin = (
            f"from {first['offered_bytes_per_cycle']:.3g} B/cycle per core on "
            f"({first['offered_bytes_per_cycle'] / shape.flit_bytes:.0%} of a link)"
            if first is not None
            else "never"
        )
        numbers.append(
            f"NoC {noc}, {vcs} VC{'s' if vcs > 1 else ''}: behind {begin}, at most {_rate(most)}, "
            f"latency {own[0]['latency_median_cycles']:,} cycles at the least load and "
            f"{own[-1]['latency_median_cycles']:,} at the most"
        )
    if not found:
        return None
    claim = "Throttled injection finds the onset of saturation of the shared buffers, all to all"
    reason = (
        "Below it a packet finds room in the next router's pool when it arrives. Beyond it packets "
        f"stand in the pools of {shape.pool_flits} flits, block the VCs behind them, and more "
        "offered load only lengthens the wait."
    )
    return Finding("onset", claim, all(found), numbers, reason)


def _throttle_curves(rows: Iterable[Row]) -> Iterator[tuple[tuple[int, int], list[Row]]]:
    """Rows by (NoC, VC count), each by offered load."""

    def curve(row: Row) -> tuple[int, int]:
        return row["noc"], row["vcs"]

    ordered = sorted(rows, key=lambda row: (*curve(row), row["offered_bytes_per_cycle"]))
    for key, own in groupby(ordered, key=curve):
        yield key, list(own)


def _is_late(row: Row) -> bool:
    return row["bandwidth_bytes_per_cycle"] < (1 - MATERIAL) * row["offered_bytes_per_cycle"]


def starved_by_stalled(rows: Iterable[Row], shape: ChipShape) -> Finding | None:
    """Two stalled VCs leave a third its full rate; three leave a sixteenth."""
    rate = {row["stalled"]: row["bandwidth_bytes_per_cycle"] for row in rows}
    if not {0, STALLED_MAX - 1, STALLED_MAX} <= rate.keys():
        return None
    share = {stalled: rate[stalled] / rate[0] for stalled in rate}
    shown = share[STALLED_MAX] <= _STARVED_MAX and share[STALLED_MAX - 1] >= _UNHURT_MIN
    numbers = [f"none stalled: {rate[0]:.3g} B/cycle"]
    numbers += [
        f"{stalled} stalled: {share[stalled]:.1%} of that" for stalled in sorted(share) if stalled
    ]
    filled = STALLED_MAX * shape.pool_flits_per_vc_max
    reason = (
        f"Three stalled VCs take {filled} of the {shape.pool_flits} flits of each port's pool on "
        "their way, which makes it full. Any other VC is left with the one flit that is its own, "
        "and sends the next when the credit for it is back. Two leave room for a third."
    )
    claim = "Three stalled VCs slow every other down to 1/16; with two stalled it runs on"
    return Finding("stalled_vcs", claim, shown, numbers, reason)


# --- words ----------------------------------------------------------------------------------------


def _words(pattern: str) -> str:
    return pattern.replace("_", "-").capitalize()


def _percent(change: float) -> str:
    return f"{round(change, 3) + 0.0:+.1%}"  # no minus before a zero


def _rate(row: Row) -> str:
    return f"{row['bandwidth_bytes_per_cycle']:.3g} B/cycle"


def _size(row: Row) -> str:
    return format_size(row["size_bytes"])


def _where(row: Row) -> str:
    return f"NoC {row['noc']}, {_size(row)}, {row['vcs']} VC{'s' if row['vcs'] > 1 else ''}"


def _extremes(changes: list[tuple[float, Row]]) -> str:
    low = min(changes, key=lambda change: change[0])
    high = max(changes, key=lambda change: change[0])
    return (
        f"against one VC, from {_percent(low[0])} ({_where(low[1])}) to {_percent(high[0])} "
        f"({_where(high[1])}) in {len(changes)} cases"
    )
