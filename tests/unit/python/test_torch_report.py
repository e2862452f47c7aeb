# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""The account of what communication costs, without ranks."""

from types import SimpleNamespace

import pytest

pytest.importorskip("torch", reason="torch is not installed")

from inside.torch import (  # noqa: E402
    Account,  # noqa: E402
    Simulation,
    _with_shares,
)


def call(work, name="all_reduce", size_bytes=8):
    return SimpleNamespace(kind="begin", work=work, name=name, size_bytes=size_bytes)


def test_a_call_that_is_waited_for_at_once_is_exposed():
    account = Account()
    account.begin(call(1), ("all_reduce", 4), 10.0)
    account.wait(1)
    account.wait(1)
    (row,) = account.report("m").rows
    assert (row.calls, row.time_us, row.exposed_us) == (1, 10.0, 10.0)
    assert account.now_us == 10.0


def test_computation_hides_what_happens_meanwhile():
    account = Account()
    account.begin(call(1), ("all_reduce", 4), 10.0)
    account.compute(7e-6)
    account.wait(1)
    report = account.report("m")
    assert report.exposed_us == pytest.approx(3.0)
    assert report.time_us == pytest.approx(10.0)
    assert report.compute_us == pytest.approx(7.0)


def test_collectives_follow_each_other_and_messages_go_beside_them():
    account = Account()
    account.begin(call(1), ("all_reduce", 4), 10.0)
    account.begin(call(2), ("all_reduce", 4), 10.0)
    account.begin(call(3, "send"), ("send", 2), 5.0)
    account.begin(call(4, "recv"), ("recv", 2), 5.0)
    account.wait(4)
    account.wait(3)
    assert account.now_us == 5.0
    account.wait(2)
    assert account.now_us == 20.0


def test_calls_in_a_block_are_spread_over_its_time():
    events = [
        SimpleNamespace(kind="open", seconds=3.0), call(1), call(2), SimpleNamespace(kind="close"),
        SimpleNamespace(kind="compute", seconds=1.0),
    ]  # fmt: skip
    shares = [(event.kind, share) for event, share in _with_shares(events)]
    assert shares == [("begin", 1.0), ("begin", 1.0), ("close", 1.0), ("compute", 0.0)]


def test_a_message_from_any_rank_is_timed_from_another_one(monkeypatch):
    simulation = object.__new__(Simulation)
    pairs = []
    monkeypatch.setattr(simulation, "_own_rank", lambda ranks: 0)
    monkeypatch.setattr(simulation, "time_us", lambda name, size, ranks: pairs.append(ranks) or 1.0)
    receive = {"name": "recvAnySource", "size_bytes": 8, "ranks": [0, 3, 5]}
    key, _ = simulation._begun(SimpleNamespace(**receive, peer=-1))
    simulation._begun(SimpleNamespace(**receive, peer=2))
    assert key == ("recvAnySource", 2)
    assert pairs == [[0, 3], [0, 5]]


def test_a_program_without_collectives_says_so_in_place_of_a_table():
    account = Account()
    account.compute(1e-3)
    assert str(account.report("dgx-h100")) == (
        "communication on dgx-h100, simulated: no collective among two or more ranks was called"
    )


def test_calls_of_one_rank_alone_are_no_communication():
    account = Account()
    account.begin(call(1, "all_reduce", 100), ("all_reduce", 1), 0.0)
    assert "no collective among two or more ranks" in str(account.report("dgx-h100"))


def test_the_table_has_a_row_per_collective_the_most_expensive_first():
    account = Account()
    account.begin(call(1, "broadcast", 100), ("broadcast", 4), 1.0)
    account.begin(call(2, "all_reduce", 1_000_000), ("all_reduce", 8), 2.5)
    lines = str(account.report("dgx-h100")).splitlines()
    assert lines[0] == "communication on dgx-h100, simulated"
    assert lines[2].split() == ["all_reduce", "8", "1", "1,000,000", "2.5", "0.0"]
    assert lines[3].split() == ["broadcast", "4", "1", "100", "1.0", "0.0"]
