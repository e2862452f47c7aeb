# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Logs that NCCL itself writes, with one planted fault each, compared with NCCL on the machine."""

import json
import os
from pathlib import Path

import pytest

from conftest import towpath_command

pytestmark = pytest.mark.slow
RELEASE = "2.28.9"


@pytest.fixture(scope="module")
def build():
    source = os.environ.get("TOWPATH_NCCL_SOURCE")
    if source is None or not Path(source).is_dir():
        pytest.skip("TOWPATH_NCCL_SOURCE names no repository of NCCL")
    towpath_command("nccl", "build", source, "--release", RELEASE)


def faults(folder, *words):
    """Causes that the doctor names for a log of NCCL on a machine with changes."""
    log = folder / "job.log"
    command = ["explain", "all_reduce", "--machine", "dgx-h100", "--hosts", "2", "--sizes", "64M"]
    towpath_command(*command, "--nccl", RELEASE, "--log", str(log), *words)
    options = ("--machine", "dgx-h100", "--hosts", "2", "--json")
    text = towpath_command("doctor", str(log), *options).stdout
    found = json.loads(text)["results"][0]
    assert any("NCCL 2.28.9 itself" in note for note in found["notes"]), found["notes"]
    return {each["cause"] for each in found["findings"] if each["is_fault"]}


def test_a_log_without_a_fault_is_healthy(build, tmp_path):
    assert faults(tmp_path) == set()


@pytest.mark.parametrize(
    ("cause", "words"),
    [
        ("p2p_disable", ["--env", "NCCL_P2P_DISABLE=1"]),
        ("variable", ["--env", "NCCL_SHM_DISABLE=1"]),
        ("algorithm", ["--env", "NCCL_MAX_NCHANNELS=4"]),
        ("algorithm", ["--env", "NCCL_MAX_CTAS=2"]),
        ("adapter_missing", ["--without", "nic3"]),
        ("adapter_missing", ["--without", "nic0", "--without", "nic1"]),
        ("adapter_missing", ["--without", "nic7"]),
        ("adapter_missing", ["--without", "nic2", "--without", "nic4", "--without", "nic6"]),
        ("algorithm", ["--env", "NCCL_MAX_NCHANNELS=8"]),
        ("algorithm", ["--env", "NCCL_MAX_CTAS=6"]),
    ],
)
def test_the_planted_fault_is_named(build, tmp_path, cause, words):
    assert cause in faults(tmp_path, *words)
