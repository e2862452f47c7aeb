# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Errors of the core arrive in Python as one hierarchy, with their fields."""

import pytest

import towpath
from inside import _core
from inside.collectives import Call, GpuPlace
from inside.errors import DescriptionError
from towpath import (
    ConfigError,
    DeadlockError,
    HazardError,
    RunError,
    SweepError,
    TowpathError,
    TransportError,
)


@pytest.mark.parametrize(
    ("error", "builtin"),
    [
        (ConfigError("x"), ValueError),
        (DescriptionError("x"), ValueError),
        (TransportError("x"), RuntimeError),
        (DeadlockError("x"), RuntimeError),
        (HazardError("x", hazard="h", culprit="k", chip=0, core=(0, 0)), RuntimeError),
        (RunError("x"), RuntimeError),
        (SweepError("x"), RuntimeError),
    ],
)
def test_every_error_is_one_of_towpath_and_a_usual_one(error, builtin):
    assert isinstance(error, TowpathError) and isinstance(error, builtin)
    assert str(error) == "x"


def test_a_transport_error_says_what_happened_and_who_did_it():
    with pytest.raises(TransportError, match="rank 3 died") as caught:
        _core.throw_example("TransportError")
    assert (caught.value.kind, caught.value.peer) == ("peer_died", 3)


def test_a_hazard_says_which_and_where():
    with pytest.raises(HazardError, match="sender overwrites") as caught:
        _core.throw_example("HazardError")
    error = caught.value
    assert error.hazard == "source_overwritten"
    assert (error.culprit, error.chip, error.core) == ("sender", 2, (1, 3))


def test_a_deadlock_has_its_cycle():
    with pytest.raises(DeadlockError, match="a waits for b") as caught:
        _core.throw_example("DeadlockError")
    assert caught.value.cycle == ["a", "b"]


def test_a_run_that_fails_in_another_way_is_an_error_of_towpath():
    with pytest.raises(RunError, match="kernel 'a' goes on at the limit"):
        _core.throw_example("RunError")


def test_a_missing_peer_is_a_timeout_without_a_culprit():
    with pytest.raises(TransportError) as caught:
        _core.connect_live("shm", "nobody-else-comes", 0, 2, timeout_s=0.2)
    assert caught.value.kind == "timeout"
    assert caught.value.peer in (None, 1)


def crossed_sends() -> _core.Schedule:
    """Two ranks that send eight chunks each before either receives."""
    steps = [
        _core.Step(_core.StepType.send, source_chunk=0, count=8),
        _core.Step(
            _core.StepType.receive, destination=_core.Buffer.output, destination_chunk=0, count=8
        ),
    ]
    ranks = [
        _core.RankProgram(16, 16, 0, [_core.ThreadBlock(1 - rank, 1 - rank, 0, steps)])
        for rank in range(2)
    ]
    return _core.Schedule("crossed", _core.Collective.all_to_all, chunks=16, ranks=ranks)


def test_ranks_that_hang_name_the_cycle_of_waits():
    machine = towpath.load("dgx-h100", hosts=1).spec.build()
    call = Call(crossed_sends())
    plan = call.plan(64 << 20)
    with pytest.raises(DeadlockError, match="where the circle closes") as caught:
        GpuPlace(machine).run_of(plan, with_data=False).invoke(plan)
    assert len(caught.value.cycle) == 2
    assert caught.value.cycle[0].startswith("rank 0 thread block 0")
    assert "waits for a free slot from rank 1 thread block 0" in caught.value.cycle[0]
    assert caught.value.cycle[1].startswith("rank 1 thread block 0")
