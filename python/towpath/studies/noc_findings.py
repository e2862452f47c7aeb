# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Findings of the published study of virtual channels, compared with the measurements of a run.

The study is tt-metal's tech report on virtual channels (Wormhole B0 and Blackhole). A finding is
shown if the numbers of this run support it, and refuted if they do not. If the measured points are
not conclusive, it is not tested.
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
# A stalled port leaves one flit per credit's round trip, which is 16 cycles, and what the stalled
# flows themselves still move; what is half full still runs at full rate, but for the same.
_STARVED = 1 / 16
_STARVED_MAX, _UNHURT_MIN = 2 * _STARVED, 0.75
# With fewer transactions, how much a reduced point may be off.
_AGREEMENT = 0.05
# Beyond these sizes the study saw four transactions lose bandwidth, by the bytes of a flit.
DROP_BEYOND_BYTES = {32: 4096, 64: 2048}


@dataclass(frozen=True)
class Finding:
    """A finding of the study.

    Attributes:
        name: short name for programs.
        claim: finding of the study.
        shown: True if this run also shows it; None if its points are not conclusive.
        numbers: numbers of this run behind the verdict, one clause each.
        reason: cause of the effect, or the reason for the missing verdict.
    """

    name: str
    claim: str
    shown: bool | None
    numbers: list[str]
    reason: str

    @property
    def verdict(self) -> str:
        if self.shown is None:
            return "not tested"
        return "shown" if self.shown else "refuted"


def findings(parts: dict[str, list[Row]], shape: ChipShape) -> list[Finding]:
    """Every finding for which the run has measurements.

    Args:
        parts: rows by part of the study, in the form of noc_study.study_parts().
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
        reduced_points(parts.get("agreement", [])),
        *drops_at_few(parts.get("orders", []), shape),
        *cures_by_turning(parts.get("orders", [])),
        own_vc_for_messages(parts.get("flow_control", [])),
        *classes_apart(parts.get("classes", [])),
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


_NO_CHANGES = "No point has as many transactions as VCs, and one like it a single VC."
_SIZES_MIN = 3

# --- patterns -------------------------------------------------------------------------------------


def no_difference(rows: Iterable[Row], pattern: str, reason: str) -> Finding | None:
    """No VC count is better or worse than one VC."""
    own = _of_pattern(rows, pattern)
    if not own:
        return None
    claim = f"{_words(pattern)}: the number of VCs makes no difference"
    changes = list(_changes(own, pattern))
    if not changes:
        return Finding(pattern, claim, None, [], _NO_CHANGES)
    shown = all(abs(change) <= MATERIAL for change, _ in changes)
    return Finding(pattern, claim, shown, [_extremes(changes)], reason)


def no_gain(rows: Iterable[Row], pattern: str, shape: ChipShape) -> Finding | None:
    """More VCs give no gain overall, and reduce bandwidth in some cases."""
    own_rows = _of_pattern(rows, pattern)
    if not own_rows:
        return None
    name = f"{pattern}_loss"
    claim = f"{_words(pattern)}: several VCs bring no bandwidth, and in places cost some"
    changes = list(_changes(own_rows, pattern))
    if not changes:
        return Finding(name, claim, None, [], _NO_CHANGES)
    share_bytes = shape.pool_flits_per_vc_max * shape.flit_bytes
    if all(row["size_bytes"] <= share_bytes for _, row in changes):
        why = (
            f"No packet was longer than the {share_bytes} bytes of the shared buffer that one VC "
            "may hold, so that none could stand in several routers."
        )
        return Finding(name, claim, None, [_extremes(changes)], why)
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
    numbers = [f"in the mean {', '.join(per_count)}", _extremes(changes)]
    return Finding(name, claim, no_benefit and has_loss, numbers, reason)


def irregular(rows: Iterable[Row], pattern: str, reason: str) -> Finding | None:
    """Bandwidth does not simply rise with the size, or VC counts help in some cases and hurt in
    others.
    """
    own = _of_pattern(rows, pattern)
    if not own:
        return None
    name = f"{pattern}_irregular"
    claim = f"{_words(pattern)}: bandwidth varies irregularly with size and VC count"
    changes = list(_changes(own, pattern))
    if not changes:
        return Finding(name, claim, None, [], _NO_CHANGES)
    if len({row["size_bytes"] for row in own}) < _SIZES_MIN:
        why = f"A curve has to have {_SIZES_MIN} sizes before it can be called irregular."
        return Finding(name, claim, None, [_extremes(changes)], why)
    dips = [
        (after["bandwidth_bytes_per_cycle"] / before["bandwidth_bytes_per_cycle"] - 1, after)
        for curve in _curves(own)
        for before, after in pairwise(curve)
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
    numbers = [f"a larger size loses bandwidth {dipping}", _extremes(changes)]
    return Finding(name, claim, bool(deep) or both_ways, numbers, reason)


def reduced_points(rows: Iterable[Row]) -> Finding | None:
    """Points with fewer transactions than requested agree with points with more."""
    most: dict[tuple, Row] = {}
    least: dict[tuple, Row] = {}
    for row in rows:
        place = (row["pattern"], *_place(row), row["vcs"])
        for kept, is_further in ((most, 1), (least, -1)):
            other = kept.setdefault(place, row)
            if is_further * (row["per_destination"] - other["per_destination"]) > 0:
                kept[place] = row
    changes = [
        (
            most[place]["bandwidth_bytes_per_cycle"] / row["bandwidth_bytes_per_cycle"] - 1,
            row,
            most[place]["per_destination"],
        )
        for place, row in least.items()
        if most[place] is not row
    ]
    if not changes:
        return None
    numbers = [
        f"{_words(row['pattern'])}, {_where(row)}: {more} instead of {row['per_destination']} "
        f"transactions change bandwidth by {_percent(change)}"
        for change, row, more in changes
    ]
    shown = all(abs(change) <= _AGREEMENT for change, *_ in changes)
    claim = "Fewer transactions per destination, to fit a point's budget, give the same bandwidth"
    reason = (
        "Flows of all masters meet within the first few packets. On one VC what holds then holds "
        "on; what is left is the rise at the beginning and the masters that end late. Several VCs "
        "that compete for the pools of a router go on to fill them for as long as they send: where "
        "more transactions were slower here, reduced points are upper bounds."
    )
    return Finding("reduced_points", claim, shown, numbers, reason)


def _of_pattern(rows: Iterable[Row], pattern: str) -> list[Row]:
    return [row for row in rows if row["pattern"] == pattern]


def _changes(rows: Iterable[Row], pattern: str) -> Iterator[tuple[float, Row]]:
    """Relative change of bandwidth compared with one VC, at the same NoC and size.

    Points with fewer transactions than VCs are left out, because some of their VCs are unused.
    """
    own = _of_pattern(rows, pattern)
    one = {_place(row): row["bandwidth_bytes_per_cycle"] for row in own if row["vcs"] == 1}
    for row in own:
        if 1 < row["vcs"] <= row["per_destination"] and _place(row) in one:
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


def drops_at_few(rows: Iterable[Row], shape: ChipShape) -> Iterator[Finding]:
    """With few transactions per destination, bandwidth on NoC 0 falls beyond the size at which the
    study saw it. A drop elsewhere does not count. By pattern.
    """
    beyond_bytes = DROP_BEYOND_BYTES.get(shape.flit_bytes, 4096)
    curves = _order_curves(rows, turned=False)
    for pattern in dict.fromkeys(curve[0]["pattern"] for curve in curves):
        found = {
            curve[0]["noc"]: beyond(curve, beyond_bytes)
            for curve in curves
            if curve[0]["pattern"] == pattern
        }
        change = found.get(0, (None, ""))[0]
        shown = None if change is None else change < -MATERIAL
        reason = _TOGETHER if shown else _NOBODY_ELSE if pattern == "one_to_all" else _NO_DROP
        reason = reason if shown is not None else f"No point of NoC 0 is beyond {beyond_bytes} B."
        claim = (
            f"{_words(pattern)}, four transactions per destination: bandwidth drops beyond "
            f"{format_size(beyond_bytes)} per transaction"
        )
        numbers = [text for _, text in found.values() if text]
        yield Finding(f"{pattern}_drop_at_four", claim, shown, numbers, reason)


def beyond(curve: list[Row], beyond_bytes: int) -> tuple[float | None, str]:
    """Change from the rate at a size to the mean of larger ones, and its text. None: no sizes."""
    at = next((row for row in curve if row["size_bytes"] == beyond_bytes), None)
    larger = [row["bandwidth_bytes_per_cycle"] for row in curve if row["size_bytes"] > beyond_bytes]
    if at is None or not larger:
        return None, ""
    change = mean(larger) / at["bandwidth_bytes_per_cycle"] - 1
    loss, peak, low = _drop(curve)
    largest = (
        f"the largest drop is from {_rate(peak)} at {_size(peak)} to {_rate(low)} at {_size(low)}"
        if loss > MATERIAL
        else "no larger size is slower than a smaller one"
    )
    return change, (
        f"NoC {at['noc']}: {_rate(at)} at {_size(at)}, {mean(larger):.3g} B/cycle beyond in the "
        f"mean ({_percent(change)}); {largest}"
    )


_TOGETHER = (
    "A master sends all it has for a destination before it goes on. With few and large "
    "transactions, masters that began together stay together: they queue for one destination "
    "after the other, and the links elsewhere idle."
)
_NOBODY_ELSE = (
    "A single master has nobody to queue behind: its packets leave one after the other over the "
    "link out of its tile, whichever destination is next, and larger ones only hide the issue. "
    "tt-metal's later table (noc_estimator: one to all, 220 transactions to 55 cores) has no drop "
    "either."
)
_NO_DROP = "Masters did not stay together long enough to queue for one destination."


def cures_by_turning(rows: Iterable[Row]) -> Iterator[Finding]:
    """Starting at different destinations and VCs recovers the loss of the drop; by NoC.

    A curve without a drop is not conclusive.
    """
    rows = list(rows)
    turned = {
        _turned_place(row): row["bandwidth_bytes_per_cycle"]
        for curve in _order_curves(rows, turned=True)
        for row in curve
    }
    for plain in _order_curves(rows, turned=False):
        pattern, noc = plain[0]["pattern"], plain[0]["noc"]
        both = [row for row in plain if _turned_place(row) in turned]
        if len(both) < len(plain):
            continue
        loss, peak, low = _drop(plain)
        changes = [
            turned[_turned_place(row)] / row["bandwidth_bytes_per_cycle"] - 1 for row in plain
        ]
        after = turned[_turned_place(low)]
        over_all = (
            f"over all sizes {_percent(min(changes))} to {_percent(max(changes))}, "
            f"{_percent(median(changes))} median"
        )
        claim = (
            f"{_words(pattern)}, NoC {noc}: randomising destination and VC per master takes the "
            "drop away"
        )
        name = f"{pattern}_cure_noc_{noc}"
        if loss <= MATERIAL:
            why = _NOBODY_ELSE if pattern == "one_to_all" else _NO_DROP
            yield Finding(name, claim, None, [f"no drop; {over_all}"], why)
            continue
        shown = after >= (1 - MATERIAL) * peak["bandwidth_bytes_per_cycle"]
        numbers = [f"{_rate(low)} at {_size(low)} become {after:.3g}; {over_all}"]
        yield Finding(name, claim, shown, numbers, _SPREAD if shown else _CROSSING)


def _turned_place(row: Row) -> tuple[str, int, int]:
    return row["pattern"], *_place(row)


_SPREAD = (
    "Masters that begin elsewhere in the list load all destinations at once, each with one flow at "
    "a time."
)
_CROSSING = (
    "Masters of one column then begin 9 destinations apart, and flows to all columns and rows "
    "cross in every router on the way: what they no longer lose at the destinations they lose "
    "among each other, on several VCs in buffers that three fill. Before, they followed each other "
    "along the list, and along the links."
)


def _order_curves(rows: Iterable[Row], *, turned: bool) -> list[list[Row]]:
    """A curve per pattern and NoC, for the sizes with all their transactions."""
    whole = [
        row
        for row in rows
        if row["turned"] == turned and row["per_destination"] == row["asked_per_destination"]
    ]
    patterns = dict.fromkeys(row["pattern"] for row in whole)
    return [curve for pattern in patterns for curve in _curves(_of_pattern(whole, pattern))]


def _drop(curve: list[Row]) -> tuple[float, Row, Row]:
    """The largest loss from a size to a larger one, with both rows."""

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
    """Small messages next to data are faster on a separate VC."""
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


_CLASSES = {
    "dram": (
        "dram_apart",
        "Data to DRAM and to L1 should have different VCs",
        "A DRAM channel takes less than a link brings. Packets for it fill their VC up to the "
        "sender; on the same VC those for L1 stand behind them, though the link is idle.",
    ),
    "ethernet": (
        "ethernet_together",
        "Data to Ethernet tiles and to L1 should have the same VC",
        "Both take as much as a link brings, so the link itself is what is shared, and it is full "
        "either way.",
    ),
    "debug": (
        "debug_together",
        "Debug data to where production data goes should not have a VC of its own",
        "Both end at the same core, whose link is full either way: a VC more is only one more that "
        "waits in the shared buffers.",
    ),
}


def classes_apart(rows: Iterable[Row]) -> Iterator[Finding]:
    """Gain of two classes of traffic from separate VCs, compared with the study's
    recommendation.
    """
    rows = list(rows)
    for other, (name, claim, reason) in _CLASSES.items():
        gains, numbers = [], []
        for noc in sorted({row["noc"] for row in rows if row["other"] == other}):
            placed = {
                row["placement"]: row for row in rows if row["other"] == other and row["noc"] == noc
            }
            if placed.keys() != {"own_vc", "data_vc"}:
                continue
            own, same = placed["own_vc"], placed["data_vc"]
            gains.append(own["bandwidth_bytes_per_cycle"] / same["bandwidth_bytes_per_cycle"] - 1)
            to_l1, beside = (row["l1_bandwidth_bytes_per_cycle"] for row in (own, same))
            numbers.append(
                f"NoC {noc}: {_rate(own)} with a VC each ({to_l1:.3g} of it to L1), "
                f"{_rate(same)} on one VC ({beside:.3g})"
            )
        if not gains:
            continue
        shown = min(gains) > MATERIAL if other == "dram" else max(gains) <= MATERIAL
        yield Finding(name, claim, shown, numbers, reason)


def onset(rows: Iterable[Row], shape: ChipShape) -> Finding | None:
    """The load above which cores no longer deliver the offered load."""
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
    """Two stalled VCs leave a third VC its full rate; three leave a sixteenth."""
    rows = sorted(rows, key=lambda row: (row["stalled"], row["rows"]))
    rate = {row["stalled"]: row["bandwidth_bytes_per_cycle"] for row in rows}
    if not {0, STALLED_MAX - 1, STALLED_MAX} <= rate.keys():
        return None
    share = {stalled: rate[stalled] / rate[0] for stalled in rate}
    shown = share[STALLED_MAX] <= _STARVED_MAX and share[STALLED_MAX - 1] >= _UNHURT_MIN
    numbers = [f"none stalled: {rate[0]:.3g} B/cycle"]
    numbers += [
        f"{stalled} stalled: {share[stalled]:.1%} of that"
        for stalled in sorted(share)
        if 0 < stalled < STALLED_MAX
    ]
    numbers += [
        f"{STALLED_MAX} stalled, each down to 1/{2 ** (row['rows'] - 2)} of a link: "
        f"{row['bandwidth_bytes_per_cycle'] / rate[0]:.1%} of that, "
        f"{row['bandwidth_bytes_per_cycle'] / shape.flit_bytes:.3f} flits per cycle"
        for row in rows
        if row["stalled"] == STALLED_MAX
    ]
    filled = STALLED_MAX * shape.pool_flits_per_vc_max
    reason = (
        f"Three stalled VCs take {filled} of the {shape.pool_flits} flits of each port's pool on "
        "their way, which makes it full. Any other VC is left with the one flit that is its own, "
        "and sends the next when the credit for it is back, 16 cycles later. The flows here are "
        "not quite stalled: each flit that one moves on is a place in the pool that the other may "
        "take first, and the less they move, the nearer its rate is to 1/16. Two leave room for a "
        "third."
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
