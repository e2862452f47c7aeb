# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""How many threads a simulation has, and that nothing depends on it."""

from __future__ import annotations

import multiprocessing
import threading

import pytest

import towpath
from inside.collectives import on_several_threads, threads_for
from towpath import ConfigError


@pytest.mark.parametrize(
    ("machine", "collective"), [("t3000", "all_reduce"), ("dgx-h100", "all_gather")]
)
def test_results_do_not_depend_on_threads(machine: str, collective: str) -> None:
    hosts = {"hosts": 4} if machine == "dgx-h100" else {}
    rows = [
        towpath.load(machine, **hosts)
        .run(collective, size_bytes="64K", algorithm=None, protocol="Simple", threads=threads)
        .row.to_dict()
        for threads in (1, 2, 5)
    ]
    assert rows[1] == rows[0]
    assert rows[2] == rows[0]


def test_the_caller_goes_before_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOWPATH_THREADS", "3")
    assert threads_for(None) == 3
    assert threads_for(2) == 2


@pytest.mark.parametrize("text", ["many", "0", "-1", "1.5"])
def test_a_variable_that_is_no_number_of_threads_is_refused(
    monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    monkeypatch.setenv("TOWPATH_THREADS", text)
    with pytest.raises(ConfigError, match=f"TOWPATH_THREADS is '{text}'; it must be the number"):
        threads_for(None)


def test_a_process_beside_others_has_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TOWPATH_THREADS", raising=False)
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.apply(threads_for, (None,)) == 1


def test_no_threads_are_refused() -> None:
    with pytest.raises(ConfigError, match="threads is 0; it must be at least 1"):
        towpath.load("t3000").run("all_reduce", size_bytes="1K", threads=0)


# --- several simulations side by side -------------------------------------------------------------


@pytest.mark.parametrize("threads", [1, 2, 5, 100])
def test_results_come_in_the_order_of_the_items(threads: int) -> None:
    assert on_several_threads(lambda item: item * item, range(40), threads) == [
        item * item for item in range(40)
    ]
    assert on_several_threads(str, [], threads) == []


def test_so_many_threads_work_at_a_time() -> None:
    everyone = threading.Barrier(3)
    on_several_threads(lambda _: everyone.wait(timeout=60), range(3), 3)


@pytest.mark.parametrize("threads", [1, 3])
def test_the_error_is_that_of_the_first_item_that_has_one(threads: int) -> None:
    def refuse(item: int) -> None:
        if item in (7, 8, 20):
            raise ConfigError(f"item {item}")

    for _ in range(20):
        with pytest.raises(ConfigError, match="item 7"):
            on_several_threads(refuse, range(30), threads)


def test_nothing_is_begun_after_an_error() -> None:
    begun = []

    def fail(item: int) -> None:
        begun.append(item)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        on_several_threads(fail, range(100), 2)
    assert len(begun) <= 2
