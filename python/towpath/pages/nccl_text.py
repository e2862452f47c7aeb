# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""The decisions of NCCL itself as plain text, and the changes from a release to another."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from towpath.pages.text import format_time, table_text
from towpath.studies.page import PlainTable

if TYPE_CHECKING:
    from towpath.collectives.nccl_itself.answer import DecisionRow, NcclAnswer
    from towpath.collectives.nccl_itself.decide import Decisions

_RANKS_SHOWN = 32
_KINDS_SHOWN = 4
_ALGORITHMS = ("tree", "ring", "collnet_direct", "collnet_chain", "nvls", "nvls_tree", "pat")
_PROTOCOLS = ("LL", "LL128", "Simple")


def answer_text(answer: NcclAnswer) -> Iterator[str]:
    """The decisions of a release, in lines."""
    found = answer.decisions
    collective = found.decisions[0].collective
    yield f"{collective} on {answer.where}: decided by NCCL {found.release} itself"
    yield ""
    yield from table_text(_decision_table(answer.rows))
    yield ""
    channels = f"{found.channels} channels"
    yield f"{channels}, {found.nvls_channels} for the switch" if found.nvls_channels else channels
    yield from _grouped("ring", found.rings, found.ranks)
    yield from _grouped("tree (the parent of each rank)", _of_ranks(found), found.ranks)
    yield ""
    yield from table_text(_cost_table(answer, collective))
    for warning in found.warnings:
        yield f"NCCL warns: {warning}"
    for sentence in answer.notes:
        yield f"note: {sentence}"


def _decision_table(rows: Sequence[DecisionRow]) -> PlainTable:
    lines = []
    for row in rows:
        one = row.decision
        apart = row.disagreement
        lines.append((
            str(one.size_bytes), one.name, str(one.channels), str(one.threads),
            format_time(one.estimate_us),
            "-" if row.simulated_us is None else format_time(row.simulated_us),
            "-" if apart is None else f"{100 * apart:+.0f}",
        ))  # fmt: skip
    headings = ("bytes", "runs", "channels", "threads", "NCCL us", "simulated us", "apart %")
    return PlainTable(headings, tuple(lines), "")


def _cost_table(answer: NcclAnswer, collective: str) -> PlainTable:
    lines = []
    for algorithm in _ALGORITHMS:
        cells = []
        for protocol in _PROTOCOLS:
            cost = answer.decisions.costs.get((collective, algorithm, protocol))
            shown = "-" if cost is None else f"{cost.latency_us:.1f}/{cost.bandwidth_gb_per_s:.1f}"
            cells.append(shown)
        if any(cell != "-" for cell in cells):
            lines.append((algorithm, *cells))
    title = "NCCL's costs: latency in us / bandwidth in GB/s"
    return PlainTable(("algorithm", *_PROTOCOLS), tuple(lines), title)


def _of_ranks(found: Decisions) -> list[tuple[int, ...]]:
    """The trees, cut after the ranks that ran: in a replicated run, the ranks of the first node."""
    return [tree[: found.ranks_run] for tree in found.trees]


def _grouped(kind: str, orders: Sequence[tuple[int, ...]], ranks: int) -> Iterator[str]:
    """Channels with the same order, in a line."""
    channels: dict[tuple[int, ...], list[int]] = {}
    for channel, order in enumerate(orders):
        channels.setdefault(order, []).append(channel)
    for order, numbers in list(channels.items())[:_KINDS_SHOWN]:
        shown = " ".join(map(str, order[:_RANKS_SHOWN]))
        more = " ..." if ranks > _RANKS_SHOWN else ""
        yield f"{kind} of channels {_ranges(numbers)}: {shown}{more}"
    if len(channels) > _KINDS_SHOWN:
        yield f"({len(channels) - _KINDS_SHOWN} more kinds of channels)"


def _ranges(numbers: Sequence[int]) -> str:
    parts: list[list[int]] = []
    for number in numbers:
        if parts and parts[-1][-1] == number - 1:
            parts[-1][1:] = [number]
        else:
            parts.append([number])
    return ",".join("-".join(map(str, part)) for part in parts)


def changes_text(answers: Sequence[NcclAnswer]) -> Iterator[str]:
    """The differences between releases, from each to the next, in lines."""
    for number, (old, new) in enumerate(zip(answers, answers[1:], strict=False)):
        if number:
            yield ""
        yield from _change_text(old, new)


def _change_text(old: NcclAnswer, new: NcclAnswer) -> Iterator[str]:
    before, after = old.decisions, new.decisions
    releases = f"NCCL {before.release} to {after.release}"
    collective = before.decisions[0].collective
    yield f"{collective} on {old.where}: changes from {releases}"
    lines = []
    for was, now in zip(old.rows, new.rows, strict=True):
        one, other = was.decision, now.decision
        if (one.name, one.channels) == (other.name, other.channels):
            continue
        lines.append((
            str(one.size_bytes),
            f"{one.name} x {one.channels}", format_time(one.estimate_us), _simulated(was),
            f"{other.name} x {other.channels}", format_time(other.estimate_us), _simulated(now),
        ))  # fmt: skip
    if lines:
        headings = (
            "bytes", before.release, "NCCL us", "simulated us", after.release, "NCCL us",
            "simulated us",
        )  # fmt: skip
        yield from table_text(PlainTable(headings, tuple(lines), ""))
    else:
        yield f"the same algorithm, protocol and channels at all {len(old.rows)} sizes"
    yield from _structure_changes(old, new)


def _structure_changes(old: NcclAnswer, new: NcclAnswer) -> Iterator[str]:
    before, after = old.decisions, new.decisions
    for word, was, now in (
        ("channels", before.channels, after.channels),
        ("channels for the switch", before.nvls_channels, after.nvls_channels),
    ):
        if was != now:
            yield f"{word}: {was} -> {now}"
    for word, orders, others in (
        ("rings", before.rings, after.rings), ("trees", before.trees, after.trees),
    ):  # fmt: skip
        if orders != others:
            yield f"other {word}: --nccl with one release prints them"
    for key in sorted(set(before.costs) | set(after.costs)):
        cost, other = before.costs.get(key), after.costs.get(key)
        if key[0] != before.decisions[0].collective or cost == other:
            continue
        texts = [
            "none"
            if each is None
            else f"{each.latency_us:.1f} us, {each.bandwidth_gb_per_s:.1f} GB/s"
            for each in (cost, other)
        ]
        if texts[0] != texts[1]:
            yield f"cost of {key[1]}/{key[2]}: {texts[0]} -> {texts[1]}"


def _simulated(row: DecisionRow) -> str:
    return "-" if row.simulated_us is None else format_time(row.simulated_us)
