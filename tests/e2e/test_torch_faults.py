# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""A fault ends in an error that names its rank, at every rank, or in success; nothing is left."""

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="torch is not installed")

import torch_faults  # noqa: E402

from inside import _core  # noqa: E402

HERE = Path(__file__).parent


def report_of(fault, *numbers, timeout_s=280, **variables):
    """What torch_faults.py prints of some faults; it and its ranks are killed in the end."""
    process = subprocess.Popen(
        [sys.executable, str(HERE / "torch_faults.py"), fault, *map(str, numbers)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
        env={**os.environ, "OMP_NUM_THREADS": "1", **variables},
    )  # fmt: skip
    try:
        printed, errors = process.communicate(timeout=timeout_s)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
    assert process.returncode == 0, errors[-3000:]
    return {name: said for line in printed.splitlines() for name, said in json.loads(line).items()}


@pytest.fixture(scope="module")
def reports():
    return report_of(
        "kill,symmetric,subgroup,stop,exception,silence,collectives,sizes,types,operations,roots,"
        "splits,fork,memory"
    )


def others_of(said):
    return [what for rank, what in enumerate(said) if rank != torch_faults.CULPRIT]


def check_death(said, host=""):
    assert said[torch_faults.CULPRIT] == "signal 9"
    sentence = rf"rank 1 \(pid \d+{host}\) died"
    assert all(re.search(sentence, what) for what in others_of(said))


def test_a_rank_that_is_killed_is_named_by_the_others(reports):
    check_death(reports["kill"])


def test_a_subgroup_reports_global_ranks(reports):
    sentence = r"global rank 1 \(pid \d+\) died while global rank 2 waited for all_reduce"
    assert re.search(sentence, reports["subgroup"][2])
    assert reports["subgroup"][0] == torch_faults.DONE


def test_a_rank_that_is_killed_ends_waits_on_symmetric_memory(reports):
    check_death(reports["symmetric"])


def test_a_rank_that_stands_still_is_the_straggler_of_the_others(reports):
    check_straggler(reports, "after barrier")


def check_straggler(reports, was_in):
    assert reports["stop"][1] == "stopped"
    for what in others_of(reports["stop"]):
        assert "all_reduce number 2 of 4000 bytes" in what
        assert "ended by a timeout after 1.5 s" in what
        assert "rank 1 is the straggler" in what
    lines = f"straggler:\n  rank 1: {was_in}"
    assert any(lines in what for what in others_of(reports["stop"]))


def test_a_rank_that_raises_is_named_by_the_others(reports):
    assert reports["exception"][1] == "KeyError: 'x'"
    assert all("rank 1 left the group" in what for what in others_of(reports["exception"]))


def test_a_rank_that_does_not_call_ends_the_calls_of_all(reports):
    assert all("ended by a timeout" in what for what in others_of(reports["silence"]))
    assert re.match(r"DistBackendError: rank [02] ", reports["silence"][1])


@pytest.mark.parametrize("fault", ["collectives", "sizes"])
def test_calls_that_differ_are_errors_of_all(reports, fault):
    assert all("made a different call" in what or "ended by" in what for what in reports[fault])
    assert all("rank 1" in what for what in reports[fault])


@pytest.mark.parametrize(
    ("fault", "difference"),
    [
        ("types", "with another type or operation on rank 1"),
        ("operations", "with another type or operation on rank 1"),
        ("roots", "reduce of 4000 bytes to root 1 on rank 1"),
    ],
)
def test_calls_that_look_alike_are_told_apart(reports, fault, difference):
    ends = [what for what in reports[fault] if what != torch_faults.DONE]
    assert len(ends) >= 2  # a rank that only sends has done its part of a reduce
    assert all(what.startswith("DistBackendError: ") and "rank 1" in what for what in ends)
    assert any(difference in what for what in ends)


def test_a_rank_that_alone_gives_splits_is_seen_in_the_report(reports):
    for what in reports["splits"]:
        assert "exchange of 12 bytes on rank 1" in what or (
            "rank 1: in all_to_all with splits number 2" in what
        )


def test_a_child_is_no_rank_and_its_parent_goes_on(reports):
    assert reports["fork"] == [3.0] * 3


def test_a_rank_without_memory_says_so_to_all(reports):
    assert "memory" in reports["memory"][1]
    assert all("rank 1" in what for what in others_of(reports["memory"]))


@pytest.mark.parametrize("what", ["groups", "arrays"])
def test_what_is_destroyed_leaves_nothing(what):
    for left in report_of(what, 100)[what]:
        assert left["descriptors"] == left["threads"] == 0
        assert left["mappings"] <= 4
        assert left["resident_kib"] < 4096


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to be two users")
def test_jobs_of_two_users_do_not_meet():
    said = report_of("users")["users"]
    assert said["own"] == said["other"] == [3.0] * 3
    assert "rank 1 is missing" in said["mixed"][0]
    assert "Permission denied" in said["mixed"][1]


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to be two users")
def test_another_user_neither_disturbs_nor_reaches_a_job():
    said = report_of("stranger")["stranger"]
    assert said["connections"] == 40  # at the socket where ranks come together
    assert said["descriptors"] == 0
    assert list(said["reached"].values()) == [[]] * torch_faults.RANKS
    assert said["files"] == [[]] * torch_faults.RANKS


@pytest.mark.long
def test_a_thousand_groups_leave_nothing():
    for left in report_of("groups", 1000, timeout_s=1800)["groups"]:
        assert left["descriptors"] == left["threads"] == 0
        assert left["mappings"] <= 4
        assert left["resident_kib"] < 8192


@pytest.mark.long
def test_a_thousand_kills_are_named_and_leave_nothing():
    said = report_of("kills", 1000, timeout_s=3000)["kills"]
    assert said["wrong"] == []
    assert all(more <= 0 for more in said["left"].values()), said["left"]


@pytest.mark.long
@pytest.mark.skipif("ucx" not in _core.live_transports(), reason="this build has no UCX")
def test_faults_over_the_network_are_named_as_well():
    reports = report_of(
        "kill,stop,exception,silence,collectives,sizes,fork",
        TOWPATH_TRANSPORT="ucx", TOWPATH_ADDRESS="127.0.0.1", UCX_TLS="tcp",
    )  # fmt: skip
    check_death(reports["kill"], host=r" on \S+")
    check_straggler(reports, "after barrier")
    test_a_rank_that_raises_is_named_by_the_others(reports)
    test_a_rank_that_does_not_call_ends_the_calls_of_all(reports)
    test_calls_that_differ_are_errors_of_all(reports, "collectives")
    test_calls_that_differ_are_errors_of_all(reports, "sizes")
    test_a_child_is_no_rank_and_its_parent_goes_on(reports)


@pytest.mark.parametrize(
    ("variables", "words"),
    [
        ({"TOWPATH_TRANSPORT": "carrier"}, "TOWPATH_TRANSPORT is 'carrier'; choose one of shm"),
        ({"TOWPATH_TRANSPORT": "ucx"}, "name it in TOWPATH_ADDRESS"),
        ({"TOWPATH_TRANSPORT": "ucx", "TOWPATH_ADDRESS": "192.0.2.1"}, "is not an address of this"),
    ],
    ids=["transport", "unnamed", "foreign"],
)
def test_a_way_between_hosts_that_cannot_be_is_refused(monkeypatch, tmp_path, variables, words):
    if "ucx" not in _core.live_transports() and variables["TOWPATH_TRANSPORT"] == "ucx":
        pytest.skip("this build has no UCX")
    monkeypatch.delenv("MASTER_ADDR", raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    store = torch_faults.dist.FileStore(str(tmp_path / "store"), 2)
    with pytest.raises(Exception, match=words):
        torch_faults.dist.init_process_group("towpath", store=store, rank=0, world_size=2)
