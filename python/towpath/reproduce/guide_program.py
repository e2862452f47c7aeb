# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Document 000: its own samples, compiled as printed, and its ring program."""

from __future__ import annotations

import os
import re
import statistics
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from towpath import _core
from towpath.reproduce import guide_samples
from towpath.reproduce.core_programs import ethernet_kernel, run
from towpath.reproduce.documents import CannotRun, document

Result = dict[str, Any]
_ROOT = Path(__file__).resolve().parents[3]
_LIBRARIES = ("-lfmt", "-lhwy", "-lboost_context", "-lpthread", "-ldl")


def compile_host(folder: Path, source: str, program: str, *include: Path) -> str:
    """Compiles a host program of C++ with the library.

    Args:
        folder: folder of the source, and of the program.
        source: name of the source.
        program: name of the program.
        include: further folders of headers.

    Returns:
        The first error of the compiler, or an empty text.

    Raises:
        CannotRun: the C++ library is not built here.
    """
    library = Path(_core.__file__).parent / "libtowpath.a"
    if not library.is_file():
        library = _ROOT / "build" / "libtowpath.a"
    if not library.is_file():
        raise CannotRun("host programs in C++ need the library libtowpath.a; `make build` makes it")
    made = subprocess.run(
        [
            os.environ.get("CXX", "g++"),
            "-std=c++20",
            "-w",
            source,
            *(f"-I{folder}" for folder in include),
            f"-I{_ROOT}/src",
            f"-I{library.parent}/generated",
            str(library),
            *_LIBRARIES,
            "-o",
            program,
        ],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    errors = [line for line in made.stderr.splitlines() if "error" in line]
    return errors[0] if errors else made.stderr.strip()[:200] if made.returncode else ""


def samples() -> Result:
    """The kernel samples, each with its declarations, on a core without a partner."""
    found = guide_samples.samples(document("000"))
    kernels = guide_samples.sample_kernels(found)
    endings = {
        "merged": "is connected to no other core",
        "handshake": "is connected to no other",
        "teardown": "",
        "receiver": "it was not given",
        "sender": "it was not given",
    }
    result: Result = {"count": len(found)}
    from dataclasses import replace

    for name, ending in endings.items():
        kernel = replace(
            ethernet_kernel("", 0), chip=0, core=(0, 8), file=f"{name}.cpp", text=kernels[name]
        )
        outcome = run("wormhole", [kernel], cycles_max=100_000)
        compiled = "does not compile" not in outcome.error
        ends = ending in outcome.error if ending else outcome.run is not None
        result[name] = [compiled and ends, outcome.error or "it compiles and ends"]
    printed = guide_samples.printed_samples(document("000"))
    slips = sum(a != b for a, b in zip(printed, found, strict=True))
    result["as_printed"] = [len(printed) - slips, f"{slips} samples have slips of the document"]
    return result


def ring_program() -> Result:
    """The host program with its receiver, sender and setup kernels: rings of 8 and 12 chips."""
    found = guide_samples.samples(document("000"))
    with tempfile.TemporaryDirectory(prefix="towpath-") as name:
        folder = Path(name)
        for kernel, text in guide_samples.sample_kernels(found).items():
            (folder / f"{kernel}.cpp").write_text(text, encoding="utf-8")
        (folder / "setup.cpp").write_text(guide_samples.SETUP, encoding="utf-8")
        (folder / "host.cpp").write_text(guide_samples.host(found), encoding="utf-8")
        if error := compile_host(folder, "host.cpp", "ring_ping"):
            return {"failed": error}
        times = {hops: _round_trips_ns(folder, hops, 16) for hops in (4, 8, 12)}
        slow = _round_trips_ns(folder, 8, 16, {"TT_METAL_SLOW_DISPATCH_MODE": "1"})
        sender = (folder / "sender.cpp").read_text(encoding="utf-8")
        call = r"(eth_send_bytes_over_channel\([^;]*)\);"
        whole = re.sub(call, r"\1, page_size, page_size / 16);", sender)
        printed_1k = statistics.median(_round_trips_ns(folder, 8, 1024))
        (folder / "sender.cpp").write_text(whole, encoding="utf-8")
        merged_1k = statistics.median(_round_trips_ns(folder, 8, 1024))
    medians = {hops: statistics.median(values) for hops, values in times.items()}
    return {
        "compiles": [True, "host program and three kernels as printed, without the slips"],
        "8": medians[8] / 1000,
        "12": medians[12] / 1000,
        "hop_8_ns": medians[8] / 8,
        "1024_one_command_us": merged_1k / 1000,
        "1024_as_printed_us": [printed_1k / 1000, "16 bytes per command, the default of the call"],
        "twelve_dearer": [
            medians[12] / 12 / (medians[8] / 8) - 1,
            f"{medians[12] / 12:.0f} and {medians[8] / 8:.0f} ns per hop",
        ],
        "sizes": [len(medians) == 3, "4, 8 and 12 hops"],
        "slow_dispatch": [
            abs(statistics.median(slow) / medians[8] - 1) < 0.05,
            f"{statistics.median(slow):.0f} ns with slow dispatch",
        ],
        "steady": [
            max(times[8]) - min(times[8]) < 0.05 * medians[8],
            "the measured trips agree within 5 %",
        ],
    }


def _round_trips_ns(
    folder: Path, hops: int, size_bytes: int, more: dict[str, str] | None = None
) -> list[int]:
    ran = subprocess.run(
        ["./ring_ping", str(hops), str(size_bytes)],
        cwd=folder,
        capture_output=True,
        text=True,
        env={**os.environ, "TOWPATH_MACHINE": "t3000", **(more or {})},
        check=False,
        timeout=300,
    )
    if ran.returncode != 0:
        raise RuntimeError(ran.stderr.strip().splitlines()[-1])
    return [int(trip) for trip in re.findall(r"round trip (\d+)", ran.stdout)]


def host_guarantees() -> Result:
    """Programs in sequence, a chip behind another, and buffers of another chip."""
    source = Path(__file__).parent / "programs" / "guide_host.cpp"
    with tempfile.TemporaryDirectory(prefix="towpath-") as name:
        if error := compile_host(Path(name), str(source), "host"):
            return {"failed": error}
        ran = subprocess.run(
            ["./host"],
            cwd=name,
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
            env={**os.environ, "TOWPATH_MACHINE": "t3000"},
        )
    said = dict(line.partition(" ")[::2] for line in ran.stdout.splitlines())
    if ran.returncode != 0:
        return {"failed": ran.stderr.strip().splitlines()[-1]}
    return {
        "in_sequence": [
            said.get("sequence") == "42",
            "the second program reads what the first has stored 30,000 cycles later",
        ],
        "remote_chip": [said.get("remote") == "01234", "written and read behind chip 0"],
        "kept": [said.get("kept") == "clean", said.get("kept", "")],
        "freed": ["until it was freed" in said.get("freed", ""), said.get("freed", "")],
    }
