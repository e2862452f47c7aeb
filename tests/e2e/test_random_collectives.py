# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Random collectives: right, or refused by all ranks before anything was written."""

from collections import Counter

import pytest

import random_collectives
import towpath
from inside import _core

HAS_UCX = "ucx" in _core.live_transports()
# The transport, and $TOWPATH_UCX_SHARED_MEMORY: without it as between hosts.
WAYS = {"shm": ("shm", "1"), "ucx": ("ucx", "1"), "ucx between hosts": ("ucx", "0")}


def is_harmless(case, outcomes):
    """A difference without a meaning: that of an empty call, or of names for one schedule."""
    if case.what_differs == "form":
        return True
    is_small = case.call.elements == 0 or case.what_differs in ("algorithm", "refusal")
    return is_small and all(outcome.verdict == "right" and not outcome.kind for outcome in outcomes)


def judged(case, outcomes):
    """What a case was: "right", "refused", "named" or "alone"; else a word about the fault."""
    verdicts = {outcome.verdict for outcome in outcomes}
    if case.odd is None or is_harmless(case, outcomes):
        return verdicts.pop() if verdicts in ({"right"}, {"refused"}) else "not alike"
    innocent = outcomes[: case.odd] + outcomes[case.odd + 1 :]
    if outcomes[case.odd].verdict == "refused":
        is_told = {each.kind for each in innocent} == {"peer_died"}
        return "alone" if is_told else "not told of a refusal"
    if not verdicts <= {"right", "told"}:
        return "written, or refused"
    kinds = {each.kind for each in outcomes}
    if "disagreement" not in kinds or not kinds <= {"disagreement", "peer_died"}:
        return "not told"
    is_named = all(f"rank {case.odd}" in each.sentence for each in innocent)
    return "named" if is_named else "an innocent rank is blamed"


def run(way, ranks, seed, calls, monkeypatch):
    """How often there was what, and the cases that are none of it."""
    transport, maps = WAYS[way]
    monkeypatch.setenv("TOWPATH_UCX_SHARED_MEMORY", maps)
    has_memory = transport == "shm"  # for schedules with one-sided steps
    of_ranks = towpath.launch(
        random_collectives.run, ranks, timeout_s=300,
        arguments=(transport, has_memory, seed, calls),
    )  # fmt: skip
    counts, faults = Counter(), []
    for number, outcomes in enumerate(zip(*of_ranks, strict=True)):
        case = random_collectives.drawn_case(f"{seed}-{number}", ranks, has_memory)
        said = judged(case, outcomes)
        counts[said] += 1
        if said not in ("right", "refused", "named", "alone"):
            faults.append((said, f"{seed}-{number}", case, outcomes))
    return counts, faults


@pytest.mark.parametrize("way", WAYS)
def test_some_random_collectives(way, monkeypatch):
    if not HAS_UCX and way != "shm":
        pytest.skip("this build has no UCX")
    counts, faults = run(way, 3, f"few {way}", 60, monkeypatch)
    assert faults == [], counts
    assert counts["right"] > 20 and counts["named"] > 3


@pytest.mark.long
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("ranks", [2, 3, 4])
def test_random_collectives_are_right_or_refused_by_all(way, ranks, monkeypatch):
    """Over all ways and numbers of ranks: 5,040."""
    if not HAS_UCX and way != "shm":
        pytest.skip("this build has no UCX")
    counts, faults = run(way, ranks, f"many {way} {ranks}", 560, monkeypatch)
    print(way, ranks, dict(counts))
    assert faults == [], counts
