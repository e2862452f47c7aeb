# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""The server of simulated times that a program on virtual GPUs asks."""

import socket
import threading

import pytest

import towpath
from inside.nccl import TimeServer


class Rank:
    def __init__(self, name):
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(10)
        self._socket.connect(f"\0{name}")
        self._file = self._socket.makefile("rw")

    def ask(self, line):
        self._file.write(f"{line}\n")
        self._file.flush()
        return self._file.readline().strip()

    def close(self):
        self._file.close()
        self._socket.close()


@pytest.fixture
def asked():
    return []


@pytest.fixture
def ranks(asked):
    def time_us(collective, size_bytes, ranks, nodes, messages=1):
        asked.append((collective, size_bytes, ranks, nodes))
        if collective == "reduce":
            raise towpath.ConfigError("reduce has no time\nhere")
        return size_bytes * messages / 1000

    with TimeServer(time_us) as server:
        both = [Rank(server.name) for _ in range(2)]
        yield both
        for rank in both:
            rank.close()


def test_a_call_ends_on_all_ranks_when_the_last_of_them_has_begun(ranks):
    assert ranks[0].ask("begin 7:0 1000") == "ok"
    assert ranks[1].ask("begin 7:0 5000") == "ok"
    ends = [rank.ask("end 7:0 all_reduce 64000 2 1 1000") for rank in ranks]
    assert ends == ["69000", "69000"]


def test_each_size_is_simulated_once(ranks, asked):
    for number in range(3):
        for rank in ranks:
            rank.ask(f"begin 7:{number} 0")
        for rank in ranks:
            rank.ask(f"end 7:{number} all_gather 64 2 1 0")
    assert asked == [("all_gather", 64, 2, 1)]


def test_a_message_takes_the_time_of_all_messages_on_the_busier_link(ranks):
    sender, receiver = ranks
    sender.ask("begin 7:0:0>1 1000 64000 1")
    sender.ask("begin 7:0:0>1:sent 1000 64000 1")
    # The receiver is late, and gets three times as much in this kernel.
    assert sender.ask("end 7:0:0>1:sent send_recv 64000 8 1 1000") == "65000"
    receiver.ask("begin 7:0:0>1 5000 192000 3")
    assert receiver.ask("end 7:0:0>1 send_recv 64000 8 1 5000") == "197000"


def test_ranks_begin_calls_while_another_one_is_simulated():
    is_simulated, may_end = threading.Event(), threading.Event()

    def time_us(collective, size_bytes, ranks, nodes):
        is_simulated.set()
        assert may_end.wait(10)
        return 1.0

    with TimeServer(time_us) as server:
        one, other = (Rank(server.name) for _ in range(2))
        ends = []
        thread = threading.Thread(
            target=lambda: ends.append(one.ask("end 7:0 all_reduce 64 1 1 0"))
        )
        thread.start()
        assert is_simulated.wait(10)
        assert other.ask("begin 7:1 0") == "ok"
        may_end.set()
        thread.join()
        assert ends == ["1000"]
        one.close()
        other.close()


def test_a_call_without_a_time_is_one_line_with_the_reason(ranks):
    assert ranks[0].ask("end 7:0 reduce 64 2 1 0") == "error reduce has no time here"
    assert ranks[0].ask("end 7:1 broadcast 1000 2 1 5") == "1005"
