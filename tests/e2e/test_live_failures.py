# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""A live run that goes wrong ends at once, for all ranks, and says whose fault it was.

A table of failures: what one of eight ranks does, before or after it has joined the group, and what
the others say of it. None of them leaves anything behind.
"""

import os
import random
import re
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import failing_ranks
import numpy as np
import pytest

from inside import _core
from inside.live import LiveCall, LiveError, LiveOptions, measure_calls, measuring_ranks
from inside.schedules import ScheduleSource
from towpath import RankError, TransportError, launch

RANKS = 4
RING = ScheduleSource(collective="all_reduce", algorithm="ring_all_reduce", ranks=RANKS, channels=2)
ENOUGH = LiveOptions(iterations=100, warmup=0, timeout_s=20)  # times 2,000 calls: minutes


def children():
    """Processes that this one has started and not buried, by command line."""
    found = {}
    for task in Path("/proc/self/task").iterdir():
        for pid in (task / "children").read_text().split():
            found[pid] = Path(f"/proc/{pid}/cmdline").read_bytes()
    return found


def left_behind():
    """What a live run may leave: files in shared memory, sockets with a name, processes.

    UCX of the ranks in other tests, which run beside these, has files of its own there.
    """
    sockets = Path("/proc/net/unix").read_text()
    return (
        sorted(name for name in os.listdir("/dev/shm") if not name.startswith("ucx_shm")),
        sorted(set(re.findall(rf"@towpath/\d+/{os.getpid()}-\S+", sockets))),
        children(),
    )


@pytest.fixture(autouse=True)
def nothing_is_left_behind():
    before = left_behind()
    yield
    assert left_behind() == before


# --- one of eight ranks fails --------------------------------------------------------------------

MANY = 8
CULPRIT = 5
JOINED = {
    # what it does: (its reason as the launcher gives it, what the others say of it)
    "raise_key_error": (r"failed \(KeyError: 'x'\)", r"failed \(KeyError: 'x'\)"),
    "raise_memory_error": (r"ran out of memory \(.+\)", r"ran out of memory \(.+\)"),
    "exit_0": ("exited early with status 0", "exited early with status 0"),
    "exit_3": ("exited early with status 3", "exited early with status 3"),
    "end_at_once": ("exited early with status 5", "died"),
    "interrupt": (r"was interrupted \(SIGINT\)", r"was interrupted \(SIGINT\)"),
    "terminate": (r"was interrupted \(SIGTERM\)", r"was interrupted \(SIGTERM\)"),
    "die": ("was killed by SIGKILL", "died"),
    "return_early": ("left", "left"),
    "stop": ("is stopped", "is stopped|was stopped"),
}


@pytest.mark.parametrize("fail", JOINED)
def test_a_rank_that_fails_is_named_with_its_reason_by_all_others(fail):
    reason, said = JOINED[fail]
    with pytest.raises(RankError) as caught:
        launch(
            failing_ranks.reduce_for_ever, MANY, timeout_s=4 if fail == "stop" else 60,
            arguments=(CULPRIT, getattr(failing_ranks, fail)),
        )  # fmt: skip
    error = caught.value
    assert error.rank == CULPRIT
    assert re.search(reason, error.reason), error.reason
    assert sorted(error.others) == [rank for rank in range(MANY) if rank != CULPRIT]
    for sentence in error.others.values():
        assert re.search(rf"rank {CULPRIT} \(pid \d+\) ({said})", sentence), sentence
        assert "\n" not in sentence
        for innocent in error.others:
            assert not re.search(
                rf"rank {innocent} \(pid \d+\) (left|died|is )", sentence
            ), sentence


def test_a_rank_that_returns_after_others_named_it_has_left():
    """The others' errors reach the launcher before the news that the culprit is done."""
    with pytest.raises(RankError) as caught:
        launch(failing_ranks.close_and_return_later, 3, arguments=(1, 0.5))
    assert (caught.value.rank, caught.value.reason) == (1, "left")


def test_a_core_file_of_a_rank_omits_the_arrays_of_all_ranks():
    """Writing terabytes of empty reservations would keep a failed rank alive for minutes."""
    largest = launch(failing_ranks.largest_mapping_in_a_core_file, RANKS)
    assert all(0 < size_bytes < 1 << 28 for size_bytes in largest), largest


NOT_JOINED = {
    "raise_key_error": r"failed \(KeyError: 'x'\)",
    "exit_0": "exited early with status 0",
    "end_at_once": "exited early with status 5",
    "interrupt": r"was interrupted \(SIGINT\)",
    "die": "was killed by SIGKILL",
}


@pytest.mark.parametrize("fail", NOT_JOINED)
@pytest.mark.parametrize("culprit", [0, CULPRIT])
def test_a_rank_that_fails_before_it_joins_is_named_by_all_others(fail, culprit):
    loaded = failing_ranks.FailsWhenLoaded(culprit, getattr(failing_ranks, fail))
    begin = time.monotonic()
    with pytest.raises(RankError) as caught:
        launch(failing_ranks.reduce_after_loading, MANY, timeout_s=300, arguments=(loaded,))
    error = caught.value
    assert time.monotonic() - begin < 150  # long before the ranks' own deadline
    assert error.rank == culprit
    assert re.search(NOT_JOINED[fail], error.reason)
    assert sorted(error.others) == [rank for rank in range(MANY) if rank != culprit]
    for sentence in error.others.values():
        assert re.search(rf"rank {culprit}\b.* ({NOT_JOINED[fail]})", sentence), sentence


def test_a_signal_reaches_a_rank_that_waits(tmp_path):
    """From outside, while all ranks wait in the core."""
    program = f"""
import sys
sys.path.insert(0, {str(Path(__file__).parent)!r})
import failing_ranks
from towpath import launch
if __name__ == "__main__":
    launch(failing_ranks.wait_for_nobody, 3, arguments=({str(tmp_path)!r},))
"""
    script = tmp_path / "program.py"
    script.write_text(program)
    process = subprocess.Popen([sys.executable, script], stderr=subprocess.PIPE, text=True)
    pids = _pids(tmp_path, 3)
    os.kill(pids[0], signal.SIGINT)
    _, told = process.communicate(timeout=60)
    assert process.returncode == 1
    assert re.search(r"Error: rank 0 \(pid \d+\) was interrupted \(SIGINT\)", told)


def _pids(folder, ranks):
    """Of the ranks of wait_for_nobody, once all are there."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        texts = [(folder / str(rank)) for rank in range(ranks)]
        if all(path.is_file() and path.read_text() for path in texts):
            return [int(path.read_text()) for path in texts]
        time.sleep(0.01)
    raise AssertionError("the ranks did not start")


# --- the launcher fails --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("number", "code"), [("SIGINT", 130), ("SIGTERM", -15), ("SIGKILL", -9), ("SIGHUP", -1)]
)
def test_nothing_survives_a_launcher_that_ends(number, code):
    command = [
        sys.executable, "-m", "towpath", "run", "all_reduce", "--live", "8", "--sizes",
        "1K", "--iterations", "100000000", "--warmup", "0",
    ]  # fmt: skip
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        preexec_fn=_heed_signals,
    ) as process:  # fmt: skip
        try:
            ranks = []
            deadline = time.monotonic() + 60
            while len(ranks) < 8 and time.monotonic() < deadline:
                ranks = _descendants(process.pid)
                time.sleep(0.01)
            assert len(ranks) == 8
            time.sleep(1)  # some of them are joined by now, whatever the host does
            os.kill(process.pid, getattr(signal, number))
            _, told = process.communicate(timeout=60)  # ends when no rank has the pipe either
        finally:
            process.kill()
    assert process.returncode == code
    assert "Traceback" not in told and "Error" not in told, told
    for pid in ranks:
        assert _is_gone(pid), pid


def _heed_signals():
    """What starts this suite, as a shell in the background or nohup, may make it ignore signals."""
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


def _descendants(pid):
    try:
        tasks = list(Path(f"/proc/{pid}/task").iterdir())
        return [int(child) for task in tasks for child in (task / "children").read_text().split()]
    except OSError:
        return []


def _is_gone(pid):
    """Ended; a zombie that this container's first process does not bury has ended, too."""
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            return True
        if state == "Z":
            return True
        time.sleep(0.01)
    return False


# --- what is not a failure -----------------------------------------------------------------------


def test_a_healthy_run_goes_on_for_as_long_as_it_makes_progress():
    """One size that takes several times what the launcher waits for a sign of progress."""
    options = LiveOptions(iterations=10**8, warmup=0, timeout_s=60, beat_s=0.05, silence_s=3.0)
    with measuring_ranks([[LiveCall(RING, (64,))]] * RANKS, options) as group:
        seen = set()
        end = None
        for rank, message in group.reports(options.silence_s):
            assert "index" not in message  # the first row is hours away
            seen.add(rank)
            if len(seen) == RANKS:
                end = end or time.monotonic() + 2.5 * options.silence_s
                if time.monotonic() > end:
                    break
        assert end is not None and time.monotonic() > end


def test_ranks_that_all_stop_are_given_up():
    options = LiveOptions(iterations=10**8, warmup=0, timeout_s=60, beat_s=0.02, silence_s=1.0)
    with measuring_ranks([[LiveCall(RING, (64,))]] * RANKS, options) as group:
        reports = group.reports(options.silence_s)
        seen = {next(reports)[0]}
        while len(seen) < RANKS:
            seen.add(next(reports)[0])
        for process in group.processes:
            os.kill(process.pid, signal.SIGSTOP)
        with pytest.raises(LiveError, match="the ranks showed no progress for 1 s"):
            list(reports)


def test_a_rank_that_computes_for_long_is_not_a_failure():
    assert launch(failing_ranks.compute, 2, timeout_s=30, arguments=(1.5,)) == [0, 1]


def test_what_a_rank_prints_is_not_taken_for_a_message(capfd, monkeypatch):
    results = launch(failing_ranks.print_and_reduce, 3)
    assert results == [[3, 3, 3]] * 3
    printed = capfd.readouterr().out
    assert printed.count("a rank prints") == 3 and printed.count("so does a library") == 3


def test_a_library_that_prints_does_not_end_a_measurement(tmp_path, monkeypatch, capfd):
    (tmp_path / "sitecustomize.py").write_text(
        "import atexit, os\nprint('not a message', flush=True)\nos.write(1, b'nor this\\n')\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    rows = list(measure_calls([LiveCall(RING, (64,))], RANKS, LiveOptions(2, 0)))
    assert len(rows) == 1
    told = capfd.readouterr()
    assert "nor this" in told.err and told.out == ""


def test_a_stop_shorter_than_the_timeout_does_not_matter():
    with measuring_ranks([[LiveCall(RING, (64,))] * 40] * RANKS, ENOUGH) as group:
        rows = 0
        for seen, (_, message) in enumerate(group.reports(60)):
            if seen == 4:
                os.kill(group.processes[1].pid, signal.SIGSTOP)
                time.sleep(0.5)
                os.kill(group.processes[1].pid, signal.SIGCONT)
            rows += "index" in message
    assert rows == 40 * RANKS


# --- limits --------------------------------------------------------------------------------------


@pytest.mark.parametrize("limit", ["RLIMIT_AS, 3 << 30", "RLIMIT_FSIZE, 256 << 20"])
@pytest.mark.parametrize("where", [["--live", "2"], ["--machine", "ring"]])
def test_a_run_needs_no_more_address_space_than_it_may_have(limit, where):
    program = (
        f"import resource, sys; resource.setrlimit(resource.{limit.split(',')[0]}, "
        f"({limit.split(',')[1]},) * 2)\n"
        f"sys.argv[1:] = {['run', 'all_reduce', *where, '--sizes', '4K,1M']!r}\n"
        "from towpath.__main__ import main\nmain()"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("1048576") == 1 and "values : 0 OK" in done.stdout


def test_a_full_heap_says_so():
    with pytest.raises(RankError, match=r"heap of \d+ bytes has no room for \d+ more"):
        launch(fill_the_heap, 2)


def fill_the_heap(communicator):
    communicator.allocate(1 << 40, np.uint8)


# --- kills ---------------------------------------------------------------------------------------


def kill_one_rank(seed):
    """Kills a rank in the middle of a run; returns what the others said and how long it took."""
    chance = random.Random(seed)
    victim = chance.randrange(RANKS)
    size_bytes = chance.choice([64, 64 << 10, 4 << 20])
    calls = [LiveCall(RING, (size_bytes,))] * 2_000
    with measuring_ranks([calls] * RANKS, ENOUGH) as group:
        process = group.processes[victim]
        seen = 0
        killed = None
        # The first rows say that every rank is in the middle of it.
        with pytest.raises(LiveError) as caught:
            for _, message in group.reports(30):
                seen += "index" in message
                if seen >= 2 * RANKS and killed is None:
                    time.sleep(chance.uniform(0, 0.05))
                    assert process.poll() is None, "the victim ended before it was killed"
                    killed = time.monotonic()
                    os.kill(process.pid, signal.SIGKILL)
        assert killed is not None, f"the run failed before a rank was killed: {caught.value}"
        statuses = [process.wait(timeout=30) for process in group.processes]
        took_s = time.monotonic() - killed
        assert statuses == [-signal.SIGKILL if rank == victim else 1 for rank in range(RANKS)]
    return victim, process.pid, caught.value, took_s


def check_kills(seeds):
    slowest_s = 0.0
    for seed in seeds:
        victim, dead_pid, error, took_s = kill_one_rank(seed)
        assert error.rank == victim and error.reason == "was killed by SIGKILL"
        assert sorted(error.others) == sorted(set(range(RANKS)) - {victim}), error.others
        for rank, sentence in error.others.items():
            assert f"rank {victim} (pid {dead_pid}) died while rank {rank} waited for" in sentence
            assert "\n" not in sentence
        # The promise of the product: every rank knows within a second.
        assert took_s < 1.0
        slowest_s = max(slowest_s, took_s)
    print(f"slowest of {len(seeds)} kills: {slowest_s:.3f} s")


def test_the_others_name_a_killed_rank_and_what_they_waited_for():
    check_kills(range(3))


@pytest.mark.long
def test_a_hundred_kills_in_a_row():
    check_kills(range(100, 200))


# --- disagreement --------------------------------------------------------------------------------

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
def test_ranks_that_disagree_all_give_both_sides(wish):
    common = LiveCall(RING, (4096,))
    calls_of_rank = [[common], [common], [OTHER_WISHES[wish]], [common]]
    with (
        measuring_ranks(calls_of_rank, LiveOptions(1, 0, timeout_s=20)) as group,
        pytest.raises(LiveError) as caught,
    ):
        list(group.reports(60))
    assert sorted(caught.value.reasons) == list(range(RANKS))
    mine, theirs = SAYS[wish]
    for rank, sentence in caught.value.reasons.items():
        assert mine in sentence and theirs in sentence, sentence
        assert "rank 2 has" in sentence
        assert f"rank {rank} has" in sentence


def test_a_rank_that_never_comes_is_named():
    options = LiveOptions(1, 0, timeout_s=2)
    with (
        measuring_ranks([[LiveCall(RING, (4096,))]] * RANKS, options) as group,
        pytest.raises(LiveError) as caught,
    ):
        os.kill(group.processes[3].pid, signal.SIGSTOP)
        list(group.reports(60))
    assert caught.value.reasons
    for sentence in caught.value.reasons.values():
        assert "rank 3" in sentence or "rank 0" in sentence, sentence


def test_a_failed_run_raises_one_error_with_every_reason():
    wrong = LiveCall(replace(RING, ranks=RANKS + 1), (4096,))
    with pytest.raises(LiveError, match="is for 5 ranks, not 4"):
        list(measure_calls([wrong], RANKS, LiveOptions(1, 0, timeout_s=20)))


def test_errors_carry_kind_and_peer():
    with pytest.raises(TransportError) as caught:
        _core.connect_live("shm", f"alone-{os.getpid()}", 0, 3, timeout_s=0.05)
    assert (caught.value.kind, caught.value.peer) == ("timeout", 1)
