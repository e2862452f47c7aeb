# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""The imitated choices of NCCL against NCCL itself on random machines.

`$TOWPATH_NCCL_SOURCE` names NCCL's repository, `$TOWPATH_RANDOM_MACHINES` how many machines.
"""

import os
from collections import Counter
from pathlib import Path

import pytest

import towpath
from inside.nccl import Assumptions, Question, build, choose, decide, facts_of, host_facts, host_of
from random_nccl_machines import random_machine

pytestmark = pytest.mark.long
RELEASE = "2.30.7"
COLLECTIVES = ("all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce")
CALLS = [(collective, 1 << power) for collective in COLLECTIVES for power in range(10, 32, 2)]


def compared(built, seed, folder):
    """Pairs of NCCL's choice and the imitated one for each call, or why there is none."""
    text, generation, cpu, hosts = random_machine(seed)
    file = folder / f"{seed}.yaml"
    file.write_text(text)
    spec = towpath.load(str(file), hosts=hosts).spec
    assumptions = Assumptions(generation, cpu)
    gpus = spec.gpus_per_host
    if gpus * hosts < 2:
        return "one rank"
    found = host_facts(spec, gpus, assumptions)
    host = host_of(found.topology, found.generation, found.cpu)
    try:
        itself = decide(built, Question(host, hosts, CALLS, is_replicated=True))
    except towpath.ConfigError as error:
        return f"NCCL does not decide: {error}"
    try:
        communicator = facts_of(spec, gpus, None, assumptions).communicator
        imitated = [choose(communicator, *call) for call in CALLS]
    except towpath.ConfigError as error:
        return f"not imitated: {error}"
    return list(zip(itself.decisions, imitated, strict=True))


def test_most_choices_on_random_machines_are_nccl_s(tmp_path):
    source = os.environ.get("TOWPATH_NCCL_SOURCE")
    if not source:
        pytest.skip("TOWPATH_NCCL_SOURCE names no repository of NCCL")
    built = build(Path(source), RELEASE)
    counts: Counter[str] = Counter()
    seeds = range(int(os.environ.get("TOWPATH_RANDOM_MACHINES", "40")))
    for seed in seeds:
        pairs = compared(built, seed, tmp_path)
        if isinstance(pairs, str):
            counts[pairs.split(":", 1)[0]] += 1
            print(f"seed {seed}: {pairs}")
            continue
        same = sum((a.algorithm, a.protocol) == (b.algorithm, b.protocol) for a, b in pairs)
        channels = sum(
            (a.algorithm, a.protocol, a.channels) == (b.algorithm, b.protocol, b.channels)
            for a, b in pairs
        )
        counts["calls"] += len(pairs)
        counts["same choice"] += same
        counts["same channels"] += channels
        counts["machines"] += 1
        if same < len(pairs):
            one, other = next(
                (a, b) for a, b in pairs if (a.algorithm, a.protocol) != (b.algorithm, b.protocol)
            )
            print(
                f"seed {seed}: {len(pairs) - same} choices differ, {one.collective} of "
                f"{one.size_bytes} B is {one.name} by NCCL and {other.name} imitated"
            )
    print(dict(counts))
    assert counts["machines"] >= len(seeds) / 2, dict(counts)
    assert counts["same choice"] >= 0.9 * counts["calls"], dict(counts)
