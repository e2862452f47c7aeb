# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""The example of a host program of TT-Metalium, on both chips."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROGRAM = ROOT / "build" / "example_metalium"


@pytest.mark.skipif(not PROGRAM.is_file(), reason="needs the C++ examples; run make build")
@pytest.mark.parametrize("machine", ["wormhole", "blackhole"])
def test_example_doubles_every_word(machine: str) -> None:
    ran = subprocess.run(
        [str(PROGRAM)],
        cwd=ROOT,
        env={**os.environ, "TOWPATH_MACHINE": machine},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.startswith("8192 words, 0 wrong, ")
