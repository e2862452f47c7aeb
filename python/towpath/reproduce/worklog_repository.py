# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Document 003: the author's own repository, compiled and run without changes."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from towpath.api.gpu_kernel import kernel
from towpath.errors import TowpathError
from towpath.reproduce.documents import checkout, file_of, names_in

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
    folder = checkout("penny")
    names = [name for name in names_in(folder, "csrc") if name.endswith((".cu", ".cuh", ".h"))]
    return {name: file_of(folder, f"csrc/{name}") for name in names}


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
