# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Document 003: its kernels and host functions as printed, and the project's own kernels."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from towpath.api.gpu_kernel import kernel
from towpath.errors import TowpathError
from towpath.reproduce import worklog_kernels
from towpath.reproduce.documents import document
from towpath.reproduce.worklog_times import PROGRAM, Kernels, Point
from towpath.specs import catalogue

Result = dict[str, Any]
_MACHINE = "dgx-h100"
_KIB, _MIB = 1 << 10, 1 << 20
_PROGRAMS = Path(__file__).parent / "programs"

_KERNELS = (
    "plain_exchange",
    "signal_exchange",
    "fused_exchange",
    "ring",
    "vectorised_ring",
    "simple_ring",
)


def kernels() -> Result:
    """The document's kernels, compiled as printed: data on 2, 8 and 16 PEs, live, and nvcc."""
    text = document("003")
    found: Result = {}
    with tempfile.TemporaryDirectory(prefix="towpath-") as name:
        folder = Path(name)
        (folder / "document_kernels.h").write_text(worklog_kernels.header(text), encoding="utf-8")
        own = kernel(PROGRAM, flags=[f"-I{folder}"])
        for each in _KERNELS:
            shape = ["64", "32", "4", "2"]
            status = [
                own.run(_MACHINE, pes, arguments=[each, "half", *shape]).status for pes in (2, 8)
            ]
            found[each] = [not any(status), "2 and 8 PEs, half, two calls, 0 wrong"]
        rails = own.run(
            _MACHINE,
            16,
            profile=True,
            arguments=["alternating_rings", "half", "64", "16", "2", "2", "8"],
        )
        found["alternating_rings"] = [rails.status == 0, "16 PEs, eight rings, 0 wrong"]
        one = own.run(
            _MACHINE, 16, profile=True, arguments=["vectorised_ring", "half", "256", "64", "4", "1"]
        )
        profile: Any = one.profile
        used = _adapters(profile)
        found["adapters_of_one_ring"] = [len(used), ", ".join(sorted(used))]
        found["adapters_of_all_rings"] = len(_adapters(rails.profile))
        found["profile"] = [
            bool(profile.verdict.sentences),
            " ".join(profile.verdict.sentences)[:200],
        ]
        live = own.run_live(2, arguments=["plain_exchange", "half", "64", "32", "4", "2"])
        found["live"] = [live.status == 0, "2 processes of this host"]
        found["nvcc"] = _nvcc(folder)
    found["steps"] = [len(worklog_kernels.blocks_of(text)) > 10, "kernels cut from the text"]
    return found


def _adapters(profile: Any) -> set[str]:
    """Adapters with more than a tenth of the bytes of the busiest link, so without barriers."""
    found = set()
    busiest = max((link.size_bytes for link in profile.verdict.links), default=0)
    for link in profile.verdict.links:
        if link.size_bytes > busiest / 10:
            found |= set(re.findall(r"host[0-9]+/nic[0-9]+", link.name))
    return found


def _nvcc(folder: Path) -> list[Any]:
    nvcc = shutil.which("nvcc")
    if nvcc is None:
        return [None, "nvcc is not installed"]
    include = _nvshmem_headers()
    if include is None:
        return [None, "NVSHMEM's headers are not installed (nvidia-nvshmem-cu13)"]
    made = subprocess.run(
        [
            nvcc,
            "-std=c++17",
            "-arch=sm_90",
            "-rdc=true",
            "-dc",
            f"-I{include}",
            f"-I{folder}",
            str(PROGRAM),
            "-o",
            str(folder / "kernels.o"),
        ],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    return [made.returncode == 0, made.stderr.strip()[:200] or "nvcc compiles all for sm_90"]


def _nvshmem_headers() -> Path | None:
    """The headers of $NVSHMEM_HOME, or of the package nvidia-nvshmem-cu13."""
    if home := os.environ.get("NVSHMEM_HOME"):
        return Path(home) / "include"
    place = importlib.util.find_spec("nvidia")
    for root in (place.submodule_search_locations or ()) if place else ():
        if (Path(root) / "nvshmem" / "include").is_dir():
            return Path(root) / "nvshmem" / "include"
    return None


def ring_times() -> Result:
    """Times of the document's ring kernels with data, in the best of some shapes."""
    text = document("003")
    with tempfile.TemporaryDirectory(prefix="towpath-") as name:
        own = Kernels(text, Path(name))

        def best(kind: str, size: int) -> float:
            return own.best_us(
                [
                    Point(kind, size, threads, each, 8)
                    for threads, each in ((256, 16), (256, 64), (512, 16))
                ]
            )

        first, vectorized = best("ring", _MIB), best("vectorised_ring", _MIB)
        simple = best("simple_ring", 64 * _KIB)
        plain = own.time_us(Point("vectorised_ring", 64 * _KIB, 256, 16, 8))
    return {
        "ring_us": first,
        "vectorized_gain": [
            first / vectorized,
            f"1 MiB on 8 PEs: {first:.0f} and " f"{vectorized:.0f} us",
        ],
        "simple_over_ring": [simple / plain, f"{simple:.1f} and {plain:.1f} us at 64 KiB"],
        "right": [first > 0, "0 wrong"],
    }


def calls_in_a_row() -> Result:
    """Rings called back to back: the time of a call when the calls before it still run."""
    times: dict[tuple[str, int, int], float] = {}
    own = kernel(_PROGRAMS / "worklog_rows.cu")
    for name in ("ring", "simple"):
        for size in (16 * _KIB, 128 * _KIB):
            for count in (2, 7):
                ran = own.run(
                    _MACHINE,
                    8,
                    settings=["gpu_cost.launch_ns=0"],
                    arguments=[name, str(size), str(count)],
                )
                if ran.status != 0:
                    raise RuntimeError(f"{name} of {size} bytes has wrong data")
                times[name, size, count] = ran.time_us or 0.0

    def each(name: str, size: int) -> float:
        return (times[name, size, 7] - times[name, size, 2]) / 5

    small, larger = (each("ring", size) / each("simple", size) for size in (16384, 131072))
    return {
        "gain_16k": [
            small,
            f"a call of the ring {each('ring', 16384):.1f} us, of the simple ring "
            f"{each('simple', 16384):.1f}",
        ],
        "gain_128k": [larger, f"{each('ring', 131072):.1f} and {each('simple', 131072):.1f} us"],
    }


def own_kernels() -> Result:
    """The project's kernels: one-shot all-reduce, and rings of three nodes."""
    from towpath.studies import penny

    spec = catalogue.load(_MACHINE)
    size = 128 * _KIB
    points = [penny.Point(name, size, 256, 16, 1, 8) for name in ("one_shot", "vectorised_ring")]
    one_shot, ring = (row.time_us for row in penny.measure(spec, points).rows)
    rails = penny.Point("vectorised_ring", 24 * 8 * 4 * _KIB, 64, 16, 8, 24)
    three = penny.measure(spec, [rails]).rows[0].time_us
    return {
        "one_shot": [ring / one_shot, f"{one_shot:.1f} and {ring:.1f} us at 128 KiB"],
        "seats": [three > 0, f"eight rings over three nodes in {three:.0f} us, sums checked"],
    }


def host_code() -> Result:
    """The document's host functions, compiled with tensors of the same members."""
    blocks = worklog_kernels.blocks_of(document("003"))
    plain, signal = (block for block in blocks if "void exchange(torch::Tensor" in block)
    host = "".join(block for block in blocks if "pybind11::bytearray" in block)
    with tempfile.TemporaryDirectory(prefix="towpath-") as name:
        text = (
            f"namespace first {{\n{plain}}}\nnamespace second {{\n{signal}}}\n"
            f"namespace host {{\n{host}}}\n"
        )
        Path(name, "document_host.h").write_text(text, encoding="utf-8")
        own = kernel(_PROGRAMS / "worklog_host.cu", flags=[f"-I{name}"])
        first = own.run(_MACHINE, 2, arguments=["first"]).status
        identifier = own.run(_MACHINE, 1, arguments=["identifier"]).status
        try:
            own.run(_MACHINE, 2, arguments=["second"])
            second = ""
        except TowpathError as error:
            second = str(error)
    return {
        "exchange": [first == 0, "the first exchange swaps the buffers of two PEs, 0 wrong"],
        "identifier": [identifier == 0, "get_nvshmem_unique_id and init_with_uid"],
        "early_unregister": ["registered" in second, second],
    }
