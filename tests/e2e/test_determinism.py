# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""The same run is the same run: twice, and beside another one."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from inside import _core
from inside.collectives import Call, GpuPlace, simulated
from inside.machines import catalogue
from inside.schedules import ScheduleSource


@pytest.fixture(scope="module")
def two_hosts():
    return GpuPlace(catalogue.load("dgx-h100").build())


def run(place, protocol="Simple", seed=1, jitter_ns=0.0):
    source = ScheduleSource(
        collective="all_reduce", ranks=16, channels=8, protocol=protocol, hosts=2
    )
    trace = _core.Trace(keeps_records=False)
    return simulated.invoke(
        replace(place, jitter_ns=jitter_ns), Call(source.schedule()), 1 << 20, in_place=False,
        with_data=True, trace=trace, seed=seed,
    )  # fmt: skip


def test_the_same_run_twice_gives_the_same_trace_hash(two_hosts):
    first, second = run(two_hosts), run(two_hosts)
    assert first.trace_hash == second.trace_hash
    assert first.time_us == second.time_us
    assert first.events == second.events


def test_another_run_gives_another_hash(two_hosts):
    assert run(two_hosts).trace_hash != run(two_hosts, protocol="LL").trace_hash
    late = [run(two_hosts, seed=seed, jitter_ns=500).trace_hash for seed in (1, 2)]
    assert late[0] != late[1]


def test_jitter_never_changes_the_data(two_hosts):
    for seed in range(4):
        assert run(two_hosts, seed=seed, jitter_ns=5_000).wrong == 0


@pytest.mark.long
def test_jitter_of_twenty_kinds_never_changes_the_data(two_hosts):
    for seed in range(4, 24):
        assert run(two_hosts, seed=seed, jitter_ns=5_000).wrong == 0


def test_simulations_run_side_by_side_in_one_process(two_hosts):
    alone = {protocol: run(two_hosts, protocol).trace_hash for protocol in ("Simple", "LL")}
    with ThreadPoolExecutor(2) as threads:
        together = {
            protocol: [threads.submit(run, two_hosts, protocol) for _ in range(2)]
            for protocol in alone
        }
        for protocol, futures in together.items():
            assert {future.result().trace_hash for future in futures} == {alone[protocol]}
