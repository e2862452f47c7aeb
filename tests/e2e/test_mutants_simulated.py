# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""What the verifier lets pass, the real executor computes right in every order of arrival.

The same question as tests/unit/collective/verify/verify_mutation_test.cpp asks of an interpreter,
asked of the executor on the simulated cluster with random delays.
"""

import copy
import random
from dataclasses import replace

import pytest

from conftest import schedule_files
from inside import _core
from inside.collectives import Call, GpuPlace, simulated
from inside.machines import catalogue
from inside.schedules import algorithms_within, load_schedule
from towpath import DeadlockError

SEEDS = 4


def originals():
    made = [
        _core.make_schedule(name, ranks=ranks, channels=2, protocol=protocol)
        for collective in _core.COLLECTIVES
        for name in algorithms_within(collective, (_core.Reach.fifo,))
        for ranks, protocol in ((3, _core.Protocol.simple), (4, _core.Protocol.ll))
    ]
    return made + [load_schedule(file) for file in schedule_files()]


def change(step, chance):
    """One step, re-addressed, without its dependency, of another length or of another kind."""
    changed = copy.copy(step)
    way = chance.choice(["source_chunk", "destination_chunk", "dependency", "count", "type"])
    if way == "dependency":
        changed.depends_on_block = changed.depends_on_step = _core.NONE
    elif way == "type":
        changed.type = chance.choice(list(_core.StepType))
    else:
        setattr(changed, way, max(getattr(step, way) + chance.choice([-8, -1, 1, 8]), 0))
    return changed


def mutate(schedule, chance):
    """A copy in which one step is dropped, swapped with the next one, or changed."""
    mutant = copy.copy(schedule)
    ranks = mutant.ranks
    rank = chance.randrange(len(ranks))
    blocks = ranks[rank].blocks
    block = chance.choice([b for b, each in enumerate(blocks) if each.steps])
    steps = blocks[block].steps
    place = chance.randrange(len(steps))
    way = chance.choice(["drop", "swap", "change", "change"])
    if way == "drop":
        del steps[place]
    elif way == "swap":
        other = (place + 1) % len(steps)
        steps[place], steps[other] = steps[other], steps[place]
    else:
        steps[place] = change(steps[place], chance)
    blocks[block].steps = steps
    ranks[rank].blocks = blocks
    mutant.ranks = ranks
    return mutant


def goes_wrong(place, call, size_bytes, chance):
    """Whether any of some random orders of arrival gives wrong data or a standstill."""
    for in_place in (False, True):
        if not (call.schedule.in_place if in_place else call.schedule.out_of_place):
            continue
        for seed in range(SEEDS):
            try:
                outcome = simulated.invoke(
                    replace(place, jitter_ns=chance.choice([0, 3_000, 30_000])), call, size_bytes,
                    in_place=in_place, with_data=True, seed=seed,
                )  # fmt: skip
            except DeadlockError:
                return True
            if outcome.wrong:
                return True
    return False


def check_mutants(count, seed):
    chance = random.Random(seed)
    place = GpuPlace(catalogue.load("dgx-h100", hosts=1).build())
    schedules = originals()
    passed = exposed = 0
    for _ in range(count):
        call = Call(mutate(chance.choice(schedules), chance))
        size_bytes = chance.choice([1 << 12, 1 << 16, 1 << 20])
        try:
            verdict = _core.verify(call.schedule, call.elements(size_bytes), 4)
        except ValueError:
            continue  # a structure that cannot even be cut
        kinds = {finding.kind.name for finding in verdict.findings}
        if "structure" in kinds:
            continue
        is_wrong = goes_wrong(place, call, size_bytes, chance)
        exposed += is_wrong
        if verdict.is_correct():
            passed += 1
            assert not is_wrong, f"{call.schedule.name} at {size_bytes} bytes passed the verifier"
        elif kinds == {"wrong_data"}:
            assert is_wrong, f"{call.schedule.name} at {size_bytes} bytes: {verdict.findings[0]}"
    assert passed > count // 20
    assert exposed > count // 4


def test_a_mutant_that_passes_the_verifier_computes_right():
    check_mutants(30, seed=3)


@pytest.mark.long
def test_a_thousand_mutants_in_random_orders():
    check_mutants(1_000, seed=4)
