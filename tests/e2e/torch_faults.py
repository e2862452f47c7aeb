# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""What happens to ranks of the torch backend that meet a fault; test_torch_faults.py asks.

Usage: PYTHONPATH=tests/support python tests/e2e/torch_faults.py FAULT [NUMBER]

Prints a line of JSON: for each rank what its program returned, or the sentence of its error, or
"signal 9". Ranks are forked from one process that has imported torch, so that many cost little.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import resource
import select
import signal
import socket
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist
import torch.distributed._symmetric_memory as symm_mem

import towpath.torch  # noqa: F401: registers the backend
from inside.torch import load_extension

RANKS = 3
CULPRIT = 1
JOIN_S = 60.0
CALL_S = 1.5
LIMIT_S = 90.0
NOBODY = 65534  # another user than root
DONE = "this rank's part is done"

Body = Callable[[int, Callable[[object], None]], object]


def call() -> object:
    """One collective."""
    values = torch.ones(1000)
    dist.all_reduce(values)
    return values[0].item()


def joined(rank: int, ranks: int, store: str) -> None:
    """This rank is in the group, and its calls have a short deadline."""
    dist.init_process_group(
        "towpath", store=dist.FileStore(store, ranks), rank=rank, world_size=ranks,
        timeout=timedelta(seconds=JOIN_S),
    )  # fmt: skip
    dist.barrier()
    dist.group.WORLD._get_backend(torch.device("cpu")).set_timeout(timedelta(seconds=CALL_S))


def run_rank(rank: int, ranks: int, store: str, body: Body, pipe: int) -> None:
    """A forked rank; never returns."""
    try:
        joined(rank, ranks, store)
        said = body(rank, lambda what: say(pipe, what))
    except Exception as error:
        said = f"{type(error).__name__}: {error}"
    say(pipe, said)
    if dist.is_initialized():
        dist.destroy_process_group()
    os._exit(0)


def say(pipe: int, what: object) -> None:
    """A line to the process that asked."""
    os.write(pipe, (json.dumps(what) + "\n").encode())


def outcomes(body: Body, ranks: int = RANKS, run: Callable[..., None] = run_rank) -> list[object]:
    """What became of each rank; none is left."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o777)
        pids, pipes = [], []
        for rank in range(ranks):
            reads, writes = os.pipe()
            pid = os.fork()
            if pid == 0:
                for pipe in (*pipes, reads):
                    os.close(pipe)
                run(rank, ranks, f"{folder}/store", body, writes)
            os.close(writes)
            pids.append(pid)
            pipes.append(reads)
        end = time.monotonic() + LIMIT_S
        said = [first_line(pipe, end) for pipe in pipes]
        codes = [exit_code(pid) for pid in pids]
        for pipe in pipes:
            os.close(pipe)
        return [
            f"signal {-code}" if what is None else what
            for what, code in zip(said, codes, strict=True)
        ]


def first_line(pipe: int, end: float) -> object:
    """What a rank said first; None where it ended, or the time did, before that."""
    readable, _, _ = select.select([pipe], [], [], max(0.0, end - time.monotonic()))
    text = os.read(pipe, 1 << 16) if readable else b""
    return json.loads(text.splitlines()[0]) if text else None


def exit_code(pid: int) -> int:
    """Of a rank that ends; one that has stopped is killed."""
    _, status = os.waitpid(pid, os.WUNTRACED)
    if os.WIFSTOPPED(status):
        os.kill(pid, signal.SIGKILL)
        _, status = os.waitpid(pid, 0)
    return os.waitstatus_to_exitcode(status)


# --- faults: each a function of the rank -----------------------------------------------------


def a_kill(rank, say):
    if rank == CULPRIT:
        os.kill(os.getpid(), signal.SIGKILL)
    return call()


def a_kill_in_a_subgroup(rank, say):
    """Ranks 1 and 2 are ranks 0 and 1 of their group."""
    group = dist.new_group([CULPRIT, 2])
    dist.barrier()
    if rank == CULPRIT:
        os.kill(os.getpid(), signal.SIGKILL)
    if rank == 2:
        dist.all_reduce(torch.ones(1000), group=group)
    return DONE


def a_stop(rank, say):
    if rank == CULPRIT:
        say("stopped")
        os.kill(os.getpid(), signal.SIGSTOP)
    return call()


def an_exception(rank, say):
    if rank == CULPRIT:
        raise KeyError("x")
    return call()


def a_rank_that_never_calls(rank, say):
    if rank == CULPRIT:
        time.sleep(2.5 * CALL_S)
        call()  # what the others sent is there
    return call()


def other_collectives(rank, say):
    if rank == CULPRIT:
        dist.broadcast(torch.ones(1000), src=CULPRIT)
    return call()


def other_sizes(rank, say):
    if rank == CULPRIT:
        dist.all_reduce(torch.ones(10))
    return call()


def other_types(rank, say):
    dist.all_reduce(torch.ones(1000, dtype=torch.int32 if rank == CULPRIT else torch.float32))
    return DONE


def other_operations(rank, say):
    operation = dist.ReduceOp.MAX if rank == CULPRIT else dist.ReduceOp.SUM
    dist.all_reduce(torch.ones(1000), op=operation)
    return DONE


def other_roots(rank, say):
    dist.reduce(torch.ones(1000), dst=CULPRIT if rank == CULPRIT else 0)
    return DONE


def splits_of_one_rank(rank, say):
    splits = [[1] * RANKS] * 2 if rank == CULPRIT else [None, None]
    dist.all_to_all_single(torch.empty(RANKS), torch.ones(RANKS), *splits)
    return DONE


def a_kill_beside_symmetric_memory(rank, say):
    handle = symm_mem.rendezvous(symm_mem.empty(10), dist.group.WORLD)
    handle.barrier()
    if rank == CULPRIT:
        os.kill(os.getpid(), signal.SIGKILL)
    return handle.barrier()


def a_fork_after_init(rank, say):
    """A child that calls gets an error; its parent goes on."""
    pid = os.fork()
    if pid == 0:
        try:
            call()
        except Exception:
            os._exit(7)
        os._exit(0)
    _, status = os.waitpid(pid, 0)
    assert os.waitstatus_to_exitcode(status) == 7, status
    return call()


def full_memory(rank, ranks, store, body, pipe):
    """A rank that may not have the memory of its share of the group."""
    global JOIN_S
    JOIN_S = 8.0
    if rank == CULPRIT:
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        limit = pages * resource.getpagesize() + (1 << 20)
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    run_rank(rank, ranks, store, body, pipe)


def held_by_this_process() -> dict[str, int]:
    """Descriptors, threads, mappings and memory."""
    status = Path("/proc/self/status").read_text()
    fields = dict(line.split(":", 1) for line in status.splitlines())
    return {
        "descriptors": len(os.listdir("/proc/self/fd")),
        "threads": int(fields["Threads"]),
        "mappings": len(Path("/proc/self/maps").read_text().splitlines()),
        "resident_kib": int(fields["VmRSS"].split()[0]),
    }


def many_groups(number):
    """What this process holds more after so many groups were made and destroyed."""

    def body(rank, say):
        for turn in range(number + 5):
            if turn == 5:
                before = held_by_this_process()
            group = dist.new_group()
            values = torch.ones(10)
            dist.all_reduce(values, group=group)
            assert values[0] == 2
            dist.destroy_process_group(group)
        after = held_by_this_process()
        return {what: after[what] - before[what] for what in before}

    return outcomes(body, ranks=2)


def many_arrays(number):
    """What this process holds more after so many symmetric tensors were made and let go."""

    def body(rank, say):
        for turn in range(number + 5):
            if turn == 5:
                before = held_by_this_process()
            handle = symm_mem.rendezvous(tensor := symm_mem.empty(100_000), dist.group.WORLD)
            tensor.fill_(rank)
            handle.barrier()
        after = held_by_this_process()
        return {what: after[what] - before[what] for what in before}

    return outcomes(body, ranks=2)


def many_kills(number):
    """Which of so many groups did not name the rank that was killed, and what is left of them."""
    wrong = []
    before = held_by_this_process()
    for turn in range(number):
        culprit = turn % RANKS

        def body(rank, say, culprit=culprit, turn=turn):
            if rank == culprit:
                time.sleep(turn % 7 * 1e-4)
                os.kill(os.getpid(), signal.SIGKILL)
            for _ in range(1_000_000):
                call()
            return "nothing"

        said = outcomes(body)
        is_named = all(
            what == "signal 9" if rank == culprit
            else isinstance(what, str) and f"rank {culprit} " in what and "died" in what
            for rank, what in enumerate(said)
        )  # fmt: skip
        if not is_named:
            wrong.append(said)
    after = held_by_this_process()
    left = {what: after[what] - before[what] for what in ("descriptors", "threads", "mappings")}
    return {"wrong": wrong, "left": left}


def jobs_of_two_users():
    """Two jobs at once, of two users; and a third process that tries to join the other's job."""

    def as_nobody(rank, ranks, store, body, pipe):
        os.setgid(NOBODY)
        os.setuid(NOBODY)
        run_rank(rank, ranks, store, body, pipe)

    def body(rank, say):
        return [call() for _ in range(200)][-1]

    reads, writes = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.write(writes, json.dumps(outcomes(body, run=as_nobody)).encode())
        os._exit(0)
    own = outcomes(body)
    other = json.loads(os.read(reads, 1 << 16))
    os.waitpid(pid, 0)

    def half_as_nobody(rank, ranks, store, body, pipe):
        global JOIN_S
        JOIN_S = 8.0
        (as_nobody if rank == CULPRIT else run_rank)(rank, ranks, store, body, pipe)

    return {"own": own, "other": other, "mixed": outcomes(body, ranks=2, run=half_as_nobody)}


def connect_to_jobs(number: int) -> tuple[int, int]:
    """Connects so often to a group that is coming together, each time with a message.

    Returns:
        How many connections there were, and how many descriptors came through them.
    """
    end = time.monotonic() + LIMIT_S
    while time.monotonic() < end:
        names = re.findall(r"@(towpath/0/torch-\S+)", Path("/proc/net/unix").read_text())
        if names:
            break
        time.sleep(0.01)
    connections = descriptors = 0
    for turn in range(number):
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as connection:
            connection.settimeout(0.05)
            with contextlib.suppress(OSError):
                connection.connect(f"\0{names[0]}")
                connections += 1
                connection.send(bytes(turn))
                descriptors += len(socket.recv_fds(connection, 1 << 12, 8)[1])
    return connections, descriptors


def shared_files() -> set[str]:
    """Ours; other tests may have theirs."""
    return {name for name in os.listdir("/dev/shm") if "towpath" in name}


def reached_of(pid: int) -> list[str]:
    """By what means this process can look into that one."""
    means = {
        "its descriptors": lambda: list(Path(f"/proc/{pid}/fd").iterdir()),
        "its mappings": lambda: Path(f"/proc/{pid}/maps").read_text(),
        "its mapped files": lambda: list(Path(f"/proc/{pid}/map_files").iterdir()),
        "its memory": lambda: Path(f"/proc/{pid}/mem").open("rb+"),
        "a signal": lambda: os.kill(pid, signal.SIGURG),
    }
    reached = []
    for what, try_it in means.items():
        with contextlib.suppress(PermissionError):
            try_it()
            reached.append(what)
    return reached


def a_stranger() -> dict[str, object]:
    """A process of another user beside a job: at its socket, then at its processes."""
    may_come, lets_come = os.pipe()
    may_look, lets_look = os.pipe()
    may_end, lets_end = os.pipe()
    reads, writes = os.pipe()
    parent = os.getpid()
    before = shared_files()
    pid = os.fork()
    if pid == 0:
        try:
            os.setgid(NOBODY)
            os.setuid(NOBODY)
            tried = connect_to_jobs(40)
            os.write(lets_come, b"x")
            os.read(may_look, RANKS)
            children = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
            pids = [int(each) for each in children if int(each) != os.getpid()]
            reached = {each: reached_of(each) for each in pids}
            os.write(writes, json.dumps([*tried, reached]).encode())
            os.write(lets_end, b"x" * RANKS)
        finally:
            os._exit(0)
    os.close(writes)  # who reads is told when the stranger is gone

    def with_a_late_rank(rank, ranks, store, body, pipe):
        if rank == CULPRIT:
            os.read(may_come, 1)
        run_rank(rank, ranks, store, body, pipe)

    def body(rank, say):
        call()
        if rank == 0:
            os.write(lets_look, b"x")
        os.read(may_end, 1)
        call()
        return sorted(shared_files() - before)

    said = outcomes(body, run=with_a_late_rank)
    connections, descriptors, reached = json.loads(os.read(reads, 1 << 16))
    os.waitpid(pid, 0)
    return {
        "connections": connections, "descriptors": descriptors, "reached": reached, "files": said,
    }  # fmt: skip


FAULTS = {
    "kill": lambda: outcomes(a_kill),
    "symmetric": lambda: outcomes(a_kill_beside_symmetric_memory),
    "subgroup": lambda: outcomes(a_kill_in_a_subgroup),
    "stop": lambda: outcomes(a_stop),
    "exception": lambda: outcomes(an_exception),
    "silence": lambda: outcomes(a_rank_that_never_calls),
    "collectives": lambda: outcomes(other_collectives),
    "sizes": lambda: outcomes(other_sizes),
    "types": lambda: outcomes(other_types),
    "operations": lambda: outcomes(other_operations),
    "roots": lambda: outcomes(other_roots),
    "splits": lambda: outcomes(splits_of_one_rank),
    "fork": lambda: outcomes(a_fork_after_init),
    "memory": lambda: outcomes(lambda rank, say: call(), run=full_memory),
    "users": jobs_of_two_users,
    "stranger": a_stranger,
    "groups": many_groups,
    "arrays": many_arrays,
    "kills": many_kills,
}


def main() -> None:
    torch.set_num_threads(1)
    load_extension()
    faults = sys.argv[1].split(",")
    numbers = [int(word) for word in sys.argv[2:]]
    for fault in faults:
        print(json.dumps({fault: FAULTS[fault](*numbers)}), flush=True)


if __name__ == "__main__":
    main()
