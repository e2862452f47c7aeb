# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Strangers throw bytes at each port and socket of a job for a while: no rank is harmed."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from conftest import ROOT
from inside import _core

SECONDS = 20


@pytest.mark.long
@pytest.mark.parametrize("target", ["rendezvous", "ucx", "shm"])
def test_a_fuzzer_at_a_port_harms_no_rank(target):
    if "ucx" not in _core.live_transports() and target != "shm":
        pytest.skip("this build has no UCX")
    done = subprocess.run(
        [sys.executable, str(Path(__file__).parent / "fuzz_ports.py"), target, str(SECONDS)],
        capture_output=True, text=True, timeout=300,
        env={**os.environ, "PYTHONPATH": str(ROOT / "tests")},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    tried = re.search(r"(\d+) jobs, (\d+) connections tried", done.stdout)
    assert tried and int(tried[1]) > 0 and int(tried[2]) > 20
