# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""The choice of a library as plain text."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

from towpath.pages.text import format_time

if TYPE_CHECKING:
    from towpath.collectives.nccl.explanation import CandidateTime, Explanation

_REFUSED_SHOWN = 8


def explanation_text(found: Explanation) -> Iterator[str]:
    """An explanation as lines of text."""
    choice, library = found.choice, found.library.upper()
    yield f"{found.collective} of {found.size_bytes} bytes on {found.where}"
    channels = f"{choice.channels} channel{'' if choice.channels == 1 else 's'}"
    if choice.channels < choice.channels_max:
        channels += f" (of {choice.channels_max}: the others would get too little)"
    yield f"{library} runs {choice.name}, {channels}, {choice.threads} threads each"
    if choice.is_tuned:
        yield "because the tuner file says so"
    yield f"limited by {found.limit}"
    yield ""
    yield f"{'candidate':<22} {library + ' says':>12} {'latency':>10} {'GB/s':>8} {'simulated':>11}"
    for candidate in found.candidates:
        yield _candidate_line(candidate)
    others = found.candidates[1:2]
    for candidate in others:
        if not math.isnan(found.candidates[0].time_us):
            more = candidate.time_us / found.candidates[0].time_us - 1
            yield f"next best: {candidate.name}, {more:+.0%} by {library}'s model"
    if choice.refused:
        yield ""
        yield "not considered:"
        reasons: dict[str, list[str]] = {}
        for refused in choice.refused:
            reasons.setdefault(refused.reason, []).append(
                f"{refused.algorithm}/{refused.protocol.lower()}"
            )
        for reason, names in reasons.items():
            shown = ", ".join(names[:_REFUSED_SHOWN])
            yield f"  {shown}{', ...' if len(names) > _REFUSED_SHOWN else ''}: {reason}"
    yield ""
    yield "what its log has, with NCCL_DEBUG=INFO and NCCL_DEBUG_SUBSYS=INIT,GRAPH,TUNING:"
    for line in found.log:
        yield f"  {line}"
    yield ""
    for sentence in found.notes:
        yield f"note: {sentence}"


def _candidate_line(candidate: CandidateTime) -> str:
    texts = [
        "-" if value is None or math.isnan(value) else text
        for value, text in (
            (candidate.time_us, f"{format_time(candidate.time_us)} us"),
            (candidate.latency_us, f"{candidate.latency_us or 0:.1f} us"),
            (candidate.bandwidth_gb_per_s, f"{candidate.bandwidth_gb_per_s or 0:.1f}"),
            (candidate.simulated_us, f"{format_time(candidate.simulated_us or 0)} us"),
        )
    ]
    first, second, third, fourth = texts
    return f"{candidate.name:<22} {first:>12} {second:>10} {third:>8} {fourth:>11}"
