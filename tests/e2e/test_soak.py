# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Repeated use takes no more memory, descriptors, threads or files; soak.py runs for longer."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import soak

from conftest import ROOT
from inside import _core

SECONDS = 120
# Above what the allocator moves, below 2,000 rounds that each leave 128 bytes.
MEMORY_KIB = 240


@pytest.mark.long
@pytest.mark.parametrize("way", soak.WAYS)
def test_repeated_use_does_not_grow(way):
    if way.endswith("ucx") and "ucx" not in _core.live_transports():
        pytest.skip("this build has no UCX")
    done = subprocess.run(
        [sys.executable, str(Path(__file__).parent / "soak.py"), way, str(SECONDS)],
        capture_output=True, text=True, timeout=1200,
        env={**os.environ, "PYTHONPATH": f"{ROOT}/tests:{ROOT}/tests/support"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    grown = re.findall(r"^growth .*?(-?\d+) (-?\d+) (-?\d+) (-?\d+) (-?\d+)$", done.stdout, re.M)
    assert grown, done.stdout
    for rounds, memory_kib, *others in (map(int, each) for each in grown):
        assert rounds > 0 and memory_kib < MEMORY_KIB, done.stdout
        assert max(others) <= 0, done.stdout
