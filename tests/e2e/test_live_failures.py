# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""A live run that goes wrong ends at once, for everybody, and says whose fault it was."""

import os
import random
import signal
import time
from dataclasses import replace

import pytest

from towpath.collectives.live import (
    LiveCall,
    LiveError,
    LiveGroup,
    LiveOptions,
    last_words,
    measure_calls,
)
from towpath.schedules.schedule_source import ScheduleSource

RANKS = 4
RING = ScheduleSource(collective="all_reduce", algorithm="ring_all_reduce", ranks=RANKS, channels=2)
ENOUGH = LiveOptions(iterations=100, warmup=0, timeout_s=20)  # times 2,000 calls: minutes


def shared_memory_files():
    return sorted(os.listdir("/dev/shm"))


def kill_one_rank(seed):
    """Kills a rank in the middle of a run; returns what the others said and how long it took."""
    chance = random.Random(seed)
    victim = chance.randrange(RANKS)
    size_bytes = chance.choice([64, 64 << 10, 4 << 20])
    with LiveGroup([[LiveCall(RING, (size_bytes,))] * 2_000] * RANKS, ENOUGH) as group:
        # The first rows say that everybody is in the middle of it.
        for seen, (_, message) in enumerate(group.messages(30), start=1):
            assert message is not None and "error" not in message, message
            if seen >= 2 * RANKS:
                break
        time.sleep(chance.uniform(0, 0.05))
        dead_pid = group.processes[victim].pid
        killed = time.monotonic()
        os.kill(dead_pid, signal.SIGKILL)
        words = last_words(group)
        for rank, process in enumerate(group.processes):
            assert process.wait(timeout=30) == (-signal.SIGKILL if rank == victim else 1)
        took_s = time.monotonic() - killed
    return victim, dead_pid, words, took_s


def check_kills(seeds):
    before = shared_memory_files()
    slowest_s = 0.0
    for seed in seeds:
        victim, dead_pid, words, took_s = kill_one_rank(seed)
        assert sorted(words) == sorted(set(range(RANKS)) - {victim}), words
        for rank, sentence in words.items():
            assert f"rank {victim} (pid {dead_pid}) died while rank {rank} waited for" in sentence
            assert "\n" not in sentence
        # The promise of the product: everybody knows within a second.
        assert took_s < 1.0
        slowest_s = max(slowest_s, took_s)
    assert shared_memory_files() == before
    print(f"slowest of {len(seeds)} kills: {slowest_s:.3f} s")


def test_the_others_name_a_killed_rank_and_what_they_waited_for():
    check_kills(range(3))


@pytest.mark.long
def test_a_hundred_kills_in_a_row():
    check_kills(range(100, 200))


OTHER_WISHES = {
    "size": LiveCall(RING, (8192,)),
    "type": LiveCall(RING, (4096,), type_name="int32"),
    "operation": LiveCall(RING, (4096,), operation="max"),
    "collective": LiveCall(replace(RING, collective="all_gather", algorithm=None), (4096,)),
    "schedule": LiveCall(replace(RING, channels=1), (4096,)),
}
SAYS = {
    "size": ("4096 bytes", "8192 bytes"),
    "type": ("float32", "int32"),
    "operation": ("sum", "max"),
    "collective": ("all_reduce of", "all_gather of"),
    "schedule": ("schedule 'ring_all_reduce' (", "schedule 'ring_all_reduce' ("),
}


@pytest.mark.parametrize("wish", OTHER_WISHES)
def test_ranks_that_disagree_all_hear_both_sides(wish):
    common = LiveCall(RING, (4096,))
    calls_of_rank = [[common], [common], [OTHER_WISHES[wish]], [common]]
    with LiveGroup(calls_of_rank, LiveOptions(1, 0, timeout_s=20)) as group:
        words = last_words(group)
    assert sorted(words) == list(range(RANKS))
    mine, theirs = SAYS[wish]
    for rank, sentence in words.items():
        assert mine in sentence and theirs in sentence, sentence
        assert "rank 2 wants" in sentence
        assert f"rank {rank} wants" in sentence


def test_a_rank_that_never_comes_is_named():
    stopped = LiveOptions(1, 0, timeout_s=2)
    calls = [LiveCall(RING, (4096,))]
    with LiveGroup([calls] * RANKS, stopped) as group:
        os.kill(group.processes[3].pid, signal.SIGSTOP)
        words = last_words(group)
    assert words
    assert all("rank 3" in sentence or "rank 0" in sentence for sentence in words.values()), words


def test_a_failed_run_raises_one_error_with_every_reason():
    wrong = LiveCall(replace(RING, ranks=RANKS + 1), (4096,))
    with pytest.raises(LiveError, match="is for 5 ranks, not 4"):
        list(measure_calls([wrong], RANKS, LiveOptions(1, 0, timeout_s=20)))
