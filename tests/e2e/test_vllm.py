# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""vLLM as it comes, with Towpath between its ranks. Skipped where it is not installed."""

import importlib.util
import json
import os
import re
import signal
import subprocess
import sys

import pytest

from conftest import ROOT

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(
        importlib.util.find_spec("vllm") is None,
        reason="vLLM is not installed; benchmarks/live/vllm/install.sh does it",
    ),
]


def served(communicator, ranks, **environment):
    """What benchmarks/live/vllm/serve.py measured, and what it printed besides."""
    process = subprocess.Popen(
        [sys.executable, str(ROOT / "benchmarks" / "live" / "vllm" / "serve.py"), communicator,
         "--ranks", str(ranks), "--batches", "1"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
        env={**os.environ, "TOWPATH_VLLM": "", **environment},
    )  # fmt: skip
    try:
        printed, errors = process.communicate(timeout=900)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
    assert process.returncode == 0, errors[-3000:]
    (line,) = (line for line in printed.splitlines() if line.startswith("{"))
    return json.loads(line), errors


def test_tokens_are_those_of_its_own_communicator():
    own, _ = served("own", 2)
    ours, _ = served("towpath", 2, TOWPATH_VLLM="live")
    assert (own["classes"], ours["classes"]) == (["CpuCommunicator"], ["TowpathCommunicator"])
    assert own["digest"] == ours["digest"]
    assert own["tokens"] == ours["tokens"] == 256


def test_it_prints_what_communication_costs_on_a_described_machine():
    _, printed = served("towpath", 2, TOWPATH_VLLM="dgx-h100:1")
    assert "communication on dgx-h100, simulated" in printed
    row = re.search(r"all_reduce +2 +(\d+) ", printed)
    assert row is not None, printed[-3000:]
    assert int(row[1]) > 17 * 64
