# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Ranks over the network: right data, who may join, and a peer, a host or a cable that fails.

Hosts are network namespaces of this one, which need the right to make them; tests skip without.
"""

import contextlib
import os
import random
import secrets
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from inside import _core

if "ucx" not in _core.live_transports():
    pytest.skip("this build has no transport ucx: libucx-dev is missing", allow_module_level=True)

RANK = Path(__file__).parent / "ucx_rank.py"
# Ranks of one host use the network, too.
OVER_TCP = {**os.environ, "UCX_TLS": "tcp", "TOWPATH_UCX_SHARED_MEMORY": "0"}
SHARING = {**os.environ, "UCX_TLS": "tcp"}


def line_of(process):
    """The next line of a process; one that says nothing for 90 s is killed, and said nothing."""
    timer = threading.Timer(90, process.kill)
    timer.start()
    try:
        return process.stdout.readline().strip()
    finally:
        timer.cancel()


class Rank:
    """A process that is a rank, and the lines that it prints."""

    def __init__(
        self, job, rank, ranks, *, token="hush", timeout_s=20, inside=(), environment=OVER_TCP
    ):
        self.process = subprocess.Popen(
            [*inside, sys.executable, RANK, job, str(rank), str(ranks), token, str(timeout_s)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment,
        )  # fmt: skip

    def line(self):
        return line_of(self.process)

    def reduce(self, times):
        print(times, file=self.process.stdin, flush=True)

    def end(self):
        if self.process.stdin is not None and not self.process.stdin.closed:
            with contextlib.suppress(BrokenPipeError):
                self.process.stdin.close()
        return self.process.wait(timeout=30)


@contextlib.contextmanager
def started(ranks):
    try:
        yield ranks
    finally:
        for rank in ranks:
            rank.process.kill()
            rank.process.wait()
            rank.process.stdout.close()
            with contextlib.suppress(BrokenPipeError):
                rank.process.stdin.close()


def free_address(host="127.0.0.1"):
    is_ipv6 = ":" in host
    with socket.socket(socket.AF_INET6 if is_ipv6 else socket.AF_INET) as probe:
        probe.bind((host, 0))
        return f"{f'[{host}]' if is_ipv6 else host}:{probe.getsockname()[1]}"


def test_ranks_reduce_and_leave():
    job = free_address()
    with started([Rank(job, rank, 3) for rank in range(3)]) as ranks:
        assert [rank.line() for rank in ranks] == ["ready"] * 3
        for rank in ranks:
            rank.reduce(5)
        assert [rank.line() for rank in ranks] == ["right"] * 3
        assert [rank.end() for rank in ranks] == [0] * 3


def test_ranks_of_one_host_need_no_address_and_no_token():
    job = f"test-{secrets.token_hex(8)}"
    with started([Rank(job, rank, 2, token="") for rank in range(2)]) as ranks:
        assert [rank.line() for rank in ranks] == ["ready"] * 2
        assert [rank.end() for rank in ranks] == [0] * 2


def test_an_address_may_be_of_ipv6():
    try:
        job = free_address("::1")
    except OSError as error:
        pytest.skip(f"this host has no IPv6: {error}")
    with started([Rank(job, rank, 2) for rank in range(2)]) as ranks:
        assert [rank.line() for rank in ranks] == ["ready"] * 2
        assert [rank.end() for rank in ranks] == [0] * 2


def test_an_address_needs_a_token():
    with started([Rank(free_address(), 0, 2, token="")]) as ranks:
        assert "needs a token, a secret that only its ranks share" in ranks[0].line()


def test_who_does_not_know_the_token_is_refused_and_keeps_nobody_from_joining():
    job = free_address()
    with started([Rank(job, 0, 2, timeout_s=10)]) as ranks:
        stranger = Rank(job, 1, 2, token="guess", timeout_s=5)
        ranks.append(stranger)
        assert stranger.line().startswith("disagreement 0 rank 1 ")
        ranks.append(Rank(job, 1, 2, timeout_s=10))
        assert [ranks[0].line(), ranks[2].line()] == ["ready"] * 2


def test_noise_at_the_rendezvous_keeps_nobody_from_joining():
    job = free_address()
    host, port = job.split(":")
    with started([Rank(job, 0, 2, timeout_s=10)]) as ranks, contextlib.ExitStack() as strangers:
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline:
            with contextlib.suppress(OSError):
                for noise in (b"", b"GET / HTTP/1.1\r\n\r\n", secrets.token_bytes(5000)):
                    stranger = socket.create_connection((host, int(port)), timeout=1)
                    strangers.enter_context(stranger)
                    stranger.sendall(noise)
                break
            time.sleep(0.01)
        ranks.append(Rank(job, 1, 2, timeout_s=10))
        assert [rank.line() for rank in ranks] == ["ready"] * 2


def test_a_missing_rank_is_named():
    with started([Rank(free_address(), 0, 3, timeout_s=0.5)]) as ranks:
        line = ranks[0].line()
        assert line.startswith("timeout 1 ")
        assert "of 3 ranks, ranks 1, 2 are missing" in line


def test_two_of_one_number_are_refused():
    job = free_address()
    with started([Rank(job, rank, 3, timeout_s=10) for rank in (0, 1, 1)]) as ranks:
        lines = [rank.line() for rank in ranks]
        assert all("rank 1 is there twice" in line for line in lines), lines


def kill_one_rank(seed):
    """Kills one of three ranks while they reduce; the two others name it."""
    chance = random.Random(seed)
    victim = chance.randrange(3)
    job = free_address()
    with started([Rank(job, rank, 3, timeout_s=60) for rank in range(3)]) as ranks:
        assert [rank.line() for rank in ranks] == ["ready"] * 3
        for rank in ranks:
            rank.reduce(1_000_000)
        time.sleep(chance.uniform(0, 0.3))
        ranks[victim].process.kill()
        for number, rank in enumerate(ranks):
            if number != victim:
                line = rank.line()
                # Not a deadline: who died is known before.
                assert line.startswith(f"peer_died {victim} rank {victim} (pid "), (seed, line)
                assert rank.end() == 0


def test_a_killed_rank_is_named_by_all_others():
    kill_one_rank(0)


@pytest.mark.long
def test_a_hundred_kills_in_a_row():
    for seed in range(100):
        kill_one_rank(seed)


def test_a_stopped_rank_is_named_when_the_time_is_up():
    job = free_address()
    with started([Rank(job, rank, 2, timeout_s=1) for rank in range(2)]) as ranks:
        assert [rank.line() for rank in ranks] == ["ready"] * 2
        os.kill(ranks[1].process.pid, signal.SIGSTOP)
        ranks[0].reduce(1)
        line = ranks[0].line()
        assert line.startswith("timeout 1 "), line
        assert "does not answer: it is stopped, in another call, or cut off" in line


# --- hosts ----------------------------------------------------------------------------------------


def ip(*words):
    subprocess.run(["ip", *words], check=True, capture_output=True)


@pytest.fixture
def hosts():
    """Two network namespaces with a cable between them: their names and addresses."""
    names = [f"towpath-{secrets.token_hex(3)}" for _ in range(2)]
    try:
        for name in names:
            ip("netns", "add", name)
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"network namespaces cannot be made here: {error}")
    try:
        cable = [f"tp{secrets.token_hex(4)}" for _ in names]
        ip("link", "add", cable[0], "type", "veth", "peer", "name", cable[1])
        for number, (name, end) in enumerate(zip(names, cable, strict=True), start=1):
            ip("link", "set", end, "netns", name)
            ip("-n", name, "link", "set", end, "name", "cable")
            ip("-n", name, "addr", "add", f"10.77.0.{number}/24", "dev", "cable")
            ip("-n", name, "link", "set", "cable", "up")
            ip("-n", name, "link", "set", "lo", "up")
        yield names
    finally:
        for name in names:
            subprocess.run(["ip", "netns", "delete", name], check=False, capture_output=True)


def ranks_of(hosts, timeout_s=20):
    job = "10.77.0.1:29500"
    return [
        Rank(job, rank, 2, timeout_s=timeout_s, inside=("ip", "netns", "exec", host))
        for rank, host in enumerate(hosts)
    ]


def disturb(hosts, *how):
    """Delays or loses what a host sends; skips where the kernel cannot."""
    for host in hosts:
        done = subprocess.run(
            ["ip", "netns", "exec", host, "tc", "qdisc", "add", "dev", "cable", "root", "netem",
             *how],
            check=False, capture_output=True, text=True,
        )  # fmt: skip
        if done.returncode != 0:
            pytest.skip(f"the kernel cannot disturb a cable here: {done.stderr.strip()}")


def test_two_hosts_reduce(hosts):
    with started(ranks_of(hosts)) as ranks:
        assert [rank.line() for rank in ranks] == ["ready"] * 2
        for rank in ranks:
            rank.reduce(5)
        assert [rank.line() for rank in ranks] == ["right"] * 2
        assert [rank.end() for rank in ranks] == [0] * 2


def sharing_ranks_of(hosts, ranks=4):
    """Half of them on each host."""
    return [
        Rank("10.77.0.1:29500", rank, ranks, environment=SHARING,
             inside=("ip", "netns", "exec", hosts[rank * 2 // ranks]))
        for rank in range(ranks)
    ]  # fmt: skip


def memories_mapped_by(rank):
    """The inodes of the ranks' memories that a process has mapped."""
    maps = Path(f"/proc/{rank.process.pid}/maps").read_text()
    return {line.split()[4] for line in maps.splitlines() if "/memfd:towpath" in line}


def test_ranks_of_a_host_share_memory_and_others_do_not(hosts):
    with started(sharing_ranks_of(hosts)) as ranks:
        assert [rank.line() for rank in ranks] == ["ready"] * 4
        for rank in ranks:
            rank.reduce(5)
        assert [rank.line() for rank in ranks] == ["right"] * 4
        mapped = [memories_mapped_by(rank) for rank in ranks]
        assert mapped[0] == mapped[1] and mapped[2] == mapped[3]
        assert [len(each) for each in mapped] == [2] * 4 and not mapped[0] & mapped[2]
        assert [rank.end() for rank in ranks] == [0] * 4


def test_a_killed_rank_is_named_on_its_host_and_on_the_other(hosts):
    with started(sharing_ranks_of(hosts)) as ranks:
        assert [rank.line() for rank in ranks] == ["ready"] * 4
        for rank in ranks:
            rank.reduce(1_000_000)
        time.sleep(0.3)
        ranks[2].process.kill()
        for number in (0, 1, 3):
            line = ranks[number].line()
            assert line.startswith("peer_died 2 rank 2 (pid "), (number, line)


def torch_ranks_of(hosts, *words):
    master = "10.77.0.1"
    return [
        subprocess.Popen(
            ["ip", "netns", "exec", host, sys.executable, RANK.with_name("torch_host.py"), *words],
            stdout=subprocess.PIPE, text=True,
            env={**OVER_TCP, "TOWPATH_TRANSPORT": "ucx", "MASTER_ADDR": master,
                 "MASTER_PORT": "29501", "RANK": str(rank), "WORLD_SIZE": "2",
                 "OMP_NUM_THREADS": "1"},
        )
        for rank, host in enumerate(hosts)
    ]  # fmt: skip


@pytest.fixture
def with_torch():
    pytest.importorskip("torch", reason="torch is not installed")


def test_torch_runs_on_two_hosts(hosts, with_torch):
    processes = torch_ranks_of(hosts)
    try:
        told = [process.communicate(timeout=240)[0] for process in processes]
    finally:
        for process in processes:
            process.kill()
    assert told == ["right\n"] * 2
    assert [process.returncode for process in processes] == [0, 0]


def test_torch_names_a_killed_rank_of_another_host(hosts, with_torch):
    processes = torch_ranks_of(hosts, "wait")
    try:
        assert [line_of(process) for process in processes] == ["right"] * 2
        processes[1].kill()
        line = line_of(processes[0])
    finally:
        for process in processes:
            process.kill()
            process.communicate()
    assert line.startswith("rank 1 (pid ") and " died while rank 0 waited for barrier" in line, line


@pytest.mark.parametrize("how", [("delay", "5ms", "3ms"), ("loss", "2%")], ids=lambda how: how[0])
def test_two_hosts_reduce_over_a_bad_cable(hosts, how):
    disturb(hosts, *how)
    with started(ranks_of(hosts, timeout_s=30)) as ranks:
        assert [rank.line() for rank in ranks] == ["ready"] * 2
        for rank in ranks:
            rank.reduce(2)
        assert [rank.line() for rank in ranks] == ["right"] * 2


def test_a_cut_cable_ends_the_wait_of_both_hosts(hosts):
    with started(ranks_of(hosts, timeout_s=2)) as ranks:
        assert [rank.line() for rank in ranks] == ["ready"] * 2
        for rank in ranks:
            rank.reduce(1_000_000)
        time.sleep(0.3)
        ip("-n", hosts[0], "link", "set", "cable", "down")
        for number, rank in enumerate(ranks):
            kind, peer, *_ = rank.line().split()
            assert (kind in ("timeout", "peer_died"), peer) == (True, str(1 - number))


def test_a_vanished_host_ends_the_wait_of_the_other(hosts):
    with started(ranks_of(hosts, timeout_s=2)) as ranks:
        assert [rank.line() for rank in ranks] == ["ready"] * 2
        ip("-n", hosts[1], "link", "delete", "cable")
        ranks[0].reduce(1)
        kind, peer, *_ = ranks[0].line().split()
        assert (kind in ("timeout", "peer_died"), peer) == (True, "1")
