# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""The verifier says from which size a schedule hangs; the simulator bears it out on both sides."""

import pytest

from inside import _core
from inside.collectives import Call, GpuPlace, simulated
from inside.machines import catalogue
from towpath import DeadlockError, Schedule, verify

CHUNKS = 8


def send_all_then_receive_all(protocol):
    """An all-to-all exchange of two ranks in which both send everything before they receive."""
    step, buffer = _core.StepType, _core.Buffer
    schedule = _core.Schedule("send first", _core.Collective.all_reduce, protocol, chunks=CHUNKS)
    schedule.out_of_place = True
    for rank in range(2):
        steps = [
            _core.Step(step.send, buffer.input, 0, count=CHUNKS),
            _core.Step(step.receive_reduce_copy, buffer.input, 0, buffer.output, 0, count=CHUNKS),
        ]
        block = _core.ThreadBlock(send_peer=1 - rank, receive_peer=1 - rank, steps=steps)
        schedule.add_rank(_core.RankProgram(CHUNKS, CHUNKS, 0, [block]))
    return schedule


@pytest.fixture(scope="module")
def pair():
    return GpuPlace(catalogue.load("fully-connected", ranks=2).build())


def test_simple_hangs_from_the_size_that_is_said_and_not_one_element_before(pair):
    schedule = send_all_then_receive_all(_core.Protocol.simple)
    result = verify(Schedule(schedule), size_bytes=1 << 10)
    # Two transfers of at most 2 MiB fit into the FIFO: 8 chunks need three as soon as only three
    # of them fit into one transfer, which is when a chunk is larger than 2 MiB / 4.
    assert result.hangs_from_bytes == 4 * ((2 << 20) // 4 // 4 * CHUNKS + 1)
    call = Call(schedule)
    below = simulated.invoke(
        pair, call, result.hangs_from_bytes - 4, in_place=False, with_data=True
    )
    assert below.wrong == 0
    with pytest.raises(DeadlockError, match="rank 0 .* waits for a free slot .* rank 1"):
        simulated.invoke(pair, call, result.hangs_from_bytes, in_place=False, with_data=True)
    assert verify(Schedule(schedule), size_bytes=result.hangs_from_bytes - 4).is_correct
    hanging = verify(Schedule(schedule), size_bytes=result.hangs_from_bytes)
    assert [problem.kind for problem in hanging.problems] == ["deadlock"]


def test_ll_never_hangs_because_eight_transfers_fit(pair):
    schedule = send_all_then_receive_all(_core.Protocol.ll)
    assert verify(Schedule(schedule), size_bytes=1 << 20).hangs_from_bytes is None
    outcome = simulated.invoke(pair, Call(schedule), 64 << 20, in_place=False, with_data=True)
    assert outcome.wrong == 0
