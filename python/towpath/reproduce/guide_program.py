# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Document 000: its own samples, compiled as printed, and its ring program."""

from __future__ import annotations

import os
import re
import statistics
import subprocess
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

from towpath.reproduce import guide_samples
from towpath.reproduce.core_programs import ethernet_kernel, run
from towpath.reproduce.documents import CannotRun, document, library
from towpath.specs import catalogue
from towpath.specs.chip_cluster_spec import EthernetEnd

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
    archive = library()
    if archive is None:
        raise CannotRun(
            "library", "host programs in C++ need the library libtowpath.a; `make build` makes it"
        )
    made = subprocess.run(
        [
            os.environ.get("CXX", "g++"),
            "-std=c++20",
            "-w",
            source,
            *(f"-I{folder}" for folder in include),
            f"-I{_ROOT}/src",
            f"-I{archive.parent}/generated",
            str(archive),
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
        "teardown": "",
        "receiver": "it was not given",
        "sender": "it was not given",
    }
    result: Result = {}
    for name, ending in endings.items():
        kernel = replace(
            ethernet_kernel("", 0), chip=0, core=(0, 8), file=f"{name}.cpp", text=kernels[name]
        )
        outcome = run("wormhole", [kernel], cycles_max=100_000)
        compiled = "does not compile" not in outcome.error
        ends = ending in outcome.error if ending else outcome.run is not None
        result[name] = [compiled and ends, outcome.error or "it compiles and ends"]
    text = kernels["handshake"]
    answers = text.replace("is_master_in_handshake = true", "is_master_in_handshake = false")
    pair = [replace(ethernet_kernel("", end), text=(text, answers)[end]) for end in (0, 1)]
    shaken = run("n300", pair, cycles_max=100_000)
    one = run("n300", pair[:1], cycles_max=100_000)
    result["handshake"] = [
        text != answers and shaken.run is not None and one.run is None,
        shaken.error or f"both ends continue; with one end: {one.error}",
    ]
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
        printed = {hops: _printed(folder, hops, 16) for hops in (4, 8, 12)}
        slow = _trips_ns(_printed(folder, 8, 16, {"TT_METAL_SLOW_DISPATCH_MODE": "1"}))
    times = {hops: _trips_ns(text) for hops, text in printed.items()}
    found_core = re.findall(r"found core ([0-9]+) of ([0-9]+), ([0-9]+) of ([0-9]+)", printed[8])
    medians = {hops: statistics.median(values) for hops, values in times.items()}
    return {
        "found_core": _far_end_of(found_core),
        "8": [
            medians[8] / 1000,
            "host program and three kernels as printed, without slips, by fast dispatch",
        ],
        "12": medians[12] / 1000,
        "slow_dispatch": [
            abs(statistics.median(slow) / medians[8] - 1) < 0.05,
            f"{statistics.median(slow):.0f} ns with slow dispatch",
        ],
        "steady": [
            max(times[8]) - min(times[8]) < 0.05 * medians[8],
            "the measured trips agree within 5 %",
        ],
    }


def _far_end_of(lines: list[tuple[str, ...]]) -> list[Any]:
    """True if the core that the host program found is joined to the one that it names."""
    if len(lines) != 1:
        return [False, "the program has found no core"]
    channel, chip, far_channel, far_chip = map(int, lines[0])
    far = catalogue.load_chip_cluster("t3000").connected(EthernetEnd(chip, channel))
    text = f"core {channel} of chip {chip} and core {far_channel} of chip {far_chip}"
    return [far == EthernetEnd(far_chip, far_channel) and far_chip == 1, text]


def _printed(folder: Path, hops: int, size_bytes: int, more: dict[str, str] | None = None) -> str:
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
    return ran.stdout


def _trips_ns(text: str) -> list[int]:
    return [int(trip) for trip in re.findall(r"round trip (\d+)", text)]


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
        "freed": [
            said.get("kept") == "clean" and "until it was freed" in said.get("freed", ""),
            said.get("freed", ""),
        ],
    }
