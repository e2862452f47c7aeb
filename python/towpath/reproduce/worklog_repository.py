# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Document 003: the author's own repository, compiled and run without changes."""

from __future__ import annotations

import os
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from towpath.api.gpu_kernel import kernel
from towpath.errors import TowpathError
from towpath.reproduce.documents import CannotRun

Result = dict[str, Any]
_PROGRAMS = Path(__file__).parent / "programs"
_MACHINE = "dgx-h100"
# Kind, PEs, nodes, routes, threads.
_RUNS = {
    "ring_simple": (0, 8, 1, 1, 256),
    "ring_standard": (1, 8, 1, 1, 256),
    "ring_standard_16": (1, 16, 2, 8, 64),
    "oneshot": (2, 8, 1, 1, 256),
    "twoshot": (3, 8, 1, 1, 256),
}


def _sources() -> dict[str, str]:
    """Names and texts of the CUDA sources of the checkout."""
    place = os.environ.get("TOWPATH_PENNY_REPOSITORY")
    if not place:
        raise CannotRun("penny", "$TOWPATH_PENNY_REPOSITORY does not name a checkout of Penny")
    folder = Path(place) / "csrc"
    if folder.is_dir():
        return {path.name: path.read_text(encoding="utf-8") for path in folder.iterdir()}

    def shown(path: str) -> str:
        found = subprocess.run(
            ["git", "-C", place, "show", f"HEAD:csrc/{path}"],
            capture_output=True,
            text=True,
            check=False,
        )
        if found.returncode != 0:
            raise ValueError(f"{place} is not a checkout of Penny")
        return found.stdout

    names = [line for line in shown("").splitlines() if line.endswith((".cu", ".cuh", ".h"))]
    return {name: shown(name) for name in names}


def repository() -> Result:
    """Each source compiled on its own, and the all-reduces of the factory run with data."""
    sources = _sources()
    compiled: list[str] = []
    failed: list[str] = []
    found: Result = {}
    with tempfile.TemporaryDirectory(prefix="towpath-") as name:
        folder = Path(name)
        for file, text in sources.items():
            (folder / file).write_text(text, encoding="utf-8")
        flags = [f"-I{folder}", f"-I{_PROGRAMS / 'torch_stand_in'}", "-w"]
        for file in sorted(file for file in sources if file.endswith(".cu")):
            try:
                kernel(folder / file, flags=flags).compile(live=True)
                compiled.append(file)
            except TowpathError as error:
                failed.append(f"{file}: {str(error).splitlines()[0]}")
        own = kernel(_PROGRAMS / "worklog_repository.cu", flags=flags)
        for case, (kind, pes, nodes, routes, threads) in _RUNS.items():
            arguments = [str(value) for value in (kind, nodes, routes, 1, threads)]
            try:
                ran = own.run(_MACHINE, pes, arguments=arguments)
                found[case] = [ran.status == 0, f"{pes} PEs, 128 KiB, {ran.time_us:.1f} us"]
            except TowpathError as error:
                found[case] = [False, str(error)]
    right = [case for case in _RUNS if found[case][0]]
    return {
        "runs": [
            len(compiled) >= 7 and len(right) == len(_RUNS),
            f"{len(compiled)} of 8 sources compile, {len(right)} of {len(_RUNS)} all-reduces "
            f"are right; {'; '.join(failed)}",
        ],
    }
