# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""The questions of `towpath tune ethernet`, each with its table and the choice by the rule."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from towpath.specs.sizes import format_size
from towpath.studies.ethernet_study import plot
from towpath.studies.page import Curve, PlainTable, Plot
from towpath.studies.sweep import Point
from towpath.tuning.link_bench import (
    OPERATION_BYTES,
    PACKET_BYTES,
    PACKETS_PER_CHANNEL,
    PING_BYTES,
    SEPARATE_CHANNELS_MAX,
    WINDOW_PACKET_BYTES,
    both_ways,
    channel_counts,
    one_way,
    ping,
    ring_channels,
    round_trip,
    slot_counts,
)  # fmt: skip
from towpath.tuning.rule import choose, reaches

Value = Callable[[Point], float]  # what was measured at a point

_OUTSTANDING_BYTES = tuple(1 << power for power in range(9, 18))


@dataclass(frozen=True)
class Answer:
    """A question and its result.

    Attributes:
        title: the question.
        how: the measurements and the candidates.
        choice: the answer as text.
        table: the measurements behind the answer.
        chosen: the answer as numbers.
        plot: the table as a plot, if useful.
    """

    title: str
    how: str
    choice: str
    table: PlainTable
    chosen: dict[str, Any] = field(default_factory=dict)
    plot: Plot | None = None

    def to_dict(self) -> dict[str, Any]:
        return {
            "title": self.title, "how": self.how, "choice": self.choice, "chosen": self.chosen,
            "headings": self.table.headings, "lines": self.table.lines,
        }  # fmt: skip


def _rate(gb_per_s: float) -> str:
    return f"{gb_per_s:.2f}"


def _ranges(sizes: Sequence[int], are_meant: Sequence[bool]) -> str:
    """Sizes as text, with adjacent sizes as a range.

    >>> _ranges([1, 2, 4, 8], [True, True, False, True])
    '1 B to 2 B, 8 B'
    """
    runs: list[list[int]] = []
    is_open = False
    for size, is_meant in zip(sizes, are_meant, strict=True):
        if is_meant and is_open:
            runs[-1].append(size)
        elif is_meant:
            runs.append([size])
        is_open = is_meant
    return ", ".join(
        format_size(run[0]) + (f" to {format_size(run[-1])}" if len(run) > 1 else "")
        for run in runs
    )


def _curve(name: str, x: Iterable[int], y: Iterable[float]) -> Curve:
    return Curve(name, [float(each) for each in x], list(y))


# --- packets --------------------------------------------------------------------------------------


def packet_size(value: Value) -> Answer:
    """Packet size for both directions at once, each with the best number of channels."""
    rates = [max(value(both_ways(size, n)) for n in channel_counts(size)) for size in PACKET_BYTES]
    good = reaches(rates)
    chosen = PACKET_BYTES[choose(rates)]
    most = max(size for size, is_good in zip(PACKET_BYTES, good, strict=True) if is_good)
    lines = [
        [format_size(size), _rate(rate), f"{rate / max(rates):.1%}", "yes" if is_good else "no"]
        for size, rate, is_good in zip(PACKET_BYTES, rates, good, strict=True)
    ]
    return Answer(
        "Packet size",
        "Both directions of a link at once, merged sync words, the best of up to 30 channels in "
        "each direction as far as L1 holds them. Candidates: packet sizes, smallest first.",
        f"packets of {format_size(chosen)}; of the sizes tried, {_ranges(PACKET_BYTES, good)} "
        f"reach 95% of {_rate(max(rates))} GB/s",
        PlainTable(["packet", "GB/s both ways", "of the best", "reaches 95%"], lines),
        {"packet_bytes": chosen, "packet_bytes_max": most},
        plot("Packet size", "", "size", "GB/s both ways",
               [_curve("best number of channels", PACKET_BYTES, rates)]),
    )  # fmt: skip


def channels(value: Value) -> Answer:
    """Number of channels in each direction, for each packet size."""
    lines, chosen = [], {}
    for size in PACKET_BYTES:
        rates = [value(both_ways(size, n)) for n in channel_counts(size)]
        number = choose(rates)
        chosen[size] = channel_counts(size)[number]
        lines.append([
            format_size(size), str(chosen[size]), str(channel_counts(size)[-1]),
            _rate(rates[number]), _rate(max(rates)), format_size(size * chosen[size]),
        ])  # fmt: skip
    sizes = [size for size in (512, 1024, 2048, 4096, 8192, 16384) if size in chosen]
    words = ", ".join(f"{chosen[size]} for packets of {format_size(size)}" for size in sizes)
    return Answer(
        "Channels by packet size",
        "The same runs. Candidates: channels in each direction, fewest first; the best rate is "
        "that of the packet size.",
        f"channels in each direction: {words}",
        PlainTable(
            ["packet", "channels", "that fit", "GB/s", "best GB/s", "outstanding each way"], lines
        ),
        {"channels_of_packet_bytes": chosen},
        plot("Channels by packet size", "", "size", "channels",
               [_curve("fewest that reach 95%", chosen, map(float, chosen.values()))]),
    )  # fmt: skip


def packets_per_channel(value: Value, channels_of: dict[int, int]) -> Answer:
    """Number of packets needed to use the channels."""
    lines, chosen = [], {}
    for size, number in channels_of.items():
        rates = [value(both_ways(size, number, packets=n)) for n in PACKETS_PER_CHANNEL]
        chosen[size] = PACKETS_PER_CHANNEL[choose(rates)]
        total = chosen[size] * number
        lines.append([
            format_size(size), str(number), str(chosen[size]), str(total),
            format_size(total * size), _rate(rates[choose(rates)]), _rate(rates[0]),
        ])  # fmt: skip
    least, most = min(chosen.values()), max(chosen.values())
    span = f"{least}" if least == most else f"{least} to {most}"
    return Answer(
        "Packets for these channels",
        f"Both directions at once with the channels chosen above and 1 to "
        f"{PACKETS_PER_CHANNEL[-1]} packets over each. Candidates: packets per channel, fewest "
        "first.",
        f"{span} packets over each channel, depending on the packet size",
        PlainTable(
            ["packet", "channels", "packets each", "packets", "bytes each way", "GB/s",
             "GB/s with one each"], lines,
        ),
        {"packets_per_channel_of_packet_bytes": chosen},
    )  # fmt: skip


# --- bytes outstanding ----------------------------------------------------------------------------


def outstanding(value: Value) -> Answer:
    """The smallest number of bytes that keeps a link busy."""
    windows = [
        (size * (slots - 1), value(one_way(size, slots)))  # a slot is always free
        for size in WINDOW_PACKET_BYTES for slots in slot_counts(size)
    ]  # fmt: skip
    pairs = [
        (size * n, value(both_ways(size, n))) for size in PACKET_BYTES for n in channel_counts(size)
    ]
    one_rates, both_rates = (
        [_best_within(limit, rates) for limit in _OUTSTANDING_BYTES] for rates in (windows, pairs)
    )
    one, both = (_OUTSTANDING_BYTES[choose(rates)] for rates in (one_rates, both_rates))
    lines = [
        [format_size(limit), _rate(a), f"{a / max(one_rates):.1%}", _rate(b),
         f"{b / max(both_rates):.1%}"]
        for limit, a, b in zip(_OUTSTANDING_BYTES, one_rates, both_rates, strict=True)
    ]  # fmt: skip
    return Answer(
        "Bytes outstanding",
        "Bytes sent and not yet answered, in each direction: packets times slots in use one way, "
        "packets times channels both ways; the best packet size within the limit. Candidates: "
        "limits, lowest first.",
        f"{format_size(one)} where data goes one way, {format_size(both)} in each direction where "
        "it goes both ways",
        PlainTable(["at most", "GB/s one way", "of the best", "GB/s both ways", "of the best"],
                   lines),
        {"one_way_bytes": one, "both_ways_bytes": both},
        plot("Bytes outstanding", "", "size", "GB/s",
               [_curve("one way", _OUTSTANDING_BYTES, one_rates),
                _curve("both ways together", _OUTSTANDING_BYTES, both_rates)]),
    )  # fmt: skip


def _best_within(limit_bytes: int, rates: list[tuple[int, float]]) -> float:
    return max((rate for size_bytes, rate in rates if size_bytes <= limit_bytes), default=0.0)


def under_way(value: Value, line_gb_per_s: float) -> Answer:
    """Bytes on a link during the travel of a packet; a value without a choice."""
    rate = max(
        value(one_way(size, slots)) for size in WINDOW_PACKET_BYTES for slots in slot_counts(size)
    )
    lines, most = [], 0.0
    for size in PING_BYTES:
        there_and_back_ns = value(ping(size))
        one_way_ns = (there_and_back_ns - size / line_gb_per_s) / 2
        most = max(most, one_way_ns)
        lines.append([
            format_size(size), f"{there_and_back_ns:.0f}", f"{one_way_ns:.0f}",
            format_size(round(one_way_ns * rate)), format_size(round(2 * one_way_ns * rate)),
        ])  # fmt: skip
    covered = 1 << (round(most * rate) - 1).bit_length()
    return Answer(
        "Bytes that hide the latency of a send",
        "A packet there and its answer back over one link; one way is half of that without the "
        f"packet's own time on the line. While it lasts, a link carries {_rate(rate)} GB/s, the "
        "best rate one way. Nothing is chosen: the largest product, as a power of two.",
        f"{format_size(covered)} for one way of up to {most:.0f} ns",
        PlainTable(["packet", "there and back (ns)", "one way (ns)", "bytes in one way",
                    "in there and back"], lines),
        {"one_way_ns_max": most, "covering_bytes": covered},
    )  # fmt: skip


# --- sync words -----------------------------------------------------------------------------------


_SYNC_WORDS = ("separate", "merged")


def sync_words(value: Value, hops: int) -> Answer:
    """Sync words behind the packet in the same command, or in a separate command."""
    names = _SYNC_WORDS
    lines, chosen = [], {}
    curves: dict[str, list[float]] = {name: [] for name in names}
    for size in PACKET_BYTES:
        counts = [n for n in channel_counts(size) if n <= SEPARATE_CHANNELS_MAX]
        rates = [
            max(value(both_ways(size, n, merged=is_merged)) for n in counts)
            for is_merged in (False, True)
        ]
        most = max(value(both_ways(size, n)) for n in channel_counts(size))
        chosen[size] = names[choose(rates)]
        for name, rate in zip(names, rates, strict=True):
            curves[name].append(rate)
        lines.append([
            f"{format_size(size)} both ways", *(f"{_rate(rate)} GB/s" for rate in rates),
            f"{rates[1] / rates[0] - 1:+.1%}", chosen[size], f"{_rate(most)} GB/s",
        ])  # fmt: skip
    words = [_sync_words_by_size([choice == "merged" for choice in chosen.values()])]
    result: dict[str, Any] = {"sync_of_packet_bytes": chosen}
    if hops:
        line, sentence, numbers = _sync_words_in_ring(value, hops)
        lines.append(line)
        words.append(sentence)
        result |= numbers
    return Answer(
        "Sync words",
        "Behind the packet in the same command, or as a command of their own, with the best of "
        f"up to {SEPARATE_CHANNELS_MAX} channels in each direction, which is what separate ones "
        "can have; the last column is what merged ones reach with more. Candidates: separate, as "
        "the interface does by default, then merged.",
        "; ".join(words),
        PlainTable(["packet", "separate", "merged", "merged is faster by", "choice",
                    "merged, up to 30 channels"], lines),
        result,
        plot("Sync words", "", "size", "GB/s both ways",
               [_curve(f"{name}, up to {SEPARATE_CHANNELS_MAX} channels", PACKET_BYTES, rates)
                for name, rates in curves.items()]),
    )  # fmt: skip


def _sync_words_in_ring(value: Value, hops: int) -> tuple[list[str], str, dict[str, Any]]:
    """A small packet around the ring: a line of the table, the choice as text and as numbers."""
    times = [value(round_trip(16, merged=is_merged)) for is_merged in (False, True)]
    choice = _SYNC_WORDS[choose([1 / time for time in times])]
    per_hop = [f"{time / hops:.0f} ns" for time in times]
    faster = f"{times[0] / times[1] - 1:+.1%}"
    line = ["16 B round the ring, per hop", *per_hop, faster, choice, ""]
    sentence = (
        f"{choice} for a packet round the ring, {per_hop[1]} per hop merged against {per_hop[0]}"
    )
    ring_ns = dict(zip(_SYNC_WORDS, times, strict=True))
    return line, sentence, {"sync_in_ring": choice, "ring_ns": ring_ns}


def _sync_words_by_size(are_merged: list[bool]) -> str:
    if not any(are_merged):
        return "separate ones do for a stream"
    if all(are_merged):
        return "merged for packets of any size"
    sizes = _ranges(PACKET_BYTES, are_merged)
    return f"merged for a stream of packets of {sizes}, separate ones do for others"


# --- small operations -----------------------------------------------------------------------------


def small_operations(value: Value) -> Answer:
    """One operation through all chips of a ring, cut into packets that travel at the same time."""
    lines, chosen = [], {}
    for size in OPERATION_BYTES:
        counts = ring_channels(size)
        times = [value(round_trip(size // n, n)) for n in counts]
        number = choose([1 / time for time in times])
        chosen[size] = counts[number]
        padding = [""] * (len(ring_channels(OPERATION_BYTES[-1])) - len(counts))
        lines.append([
            format_size(size), *(f"{time / 1000:.2f}" for time in times), *padding,
            str(counts[number]), format_size(size // counts[number]),
        ])  # fmt: skip
    words = ", ".join(
        f"{n} of {format_size(size // n)} for {format_size(size)}" for size, n in chosen.items()
    )
    headings = [f"{n} channel{'s' if n > 1 else ''} (us)"
                for n in ring_channels(OPERATION_BYTES[-1])]  # fmt: skip
    return Answer(
        "Small operations",
        "An operation's bytes once round the ring through all chips, as one packet or as several "
        "over as many channels. Candidates: channels, fewest first.",
        f"channels and packets: {words}",
        PlainTable(["operation", *headings, "channels", "packet"], lines),
        {"channels_of_operation_bytes": chosen},
    )


# --- all of them ----------------------------------------------------------------------------------


def answers(value: Value, line_gb_per_s: float, hops: int) -> list[Answer]:
    """The answers from `steady_points`; `hops` is the number of hops around the ring, 0 without
    one.
    """
    found = [
        packet_size(value), outstanding(value), under_way(value, line_gb_per_s),
        sync_words(value, hops), channels(value),
    ]  # fmt: skip
    return [*found, small_operations(value)] if hops else found


def packet_count_points(channels_of: dict[int, int]) -> list[Point]:
    """The points for packets_per_channel, after the choice of channels."""
    return [
        both_ways(size, number, packets=n)
        for size, number in channels_of.items()
        for n in PACKETS_PER_CHANNEL
    ]
