# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""How far the sizes of a link's segments (gpu_links::kSegment, kSegmentMin) move all-reduce times.

The constants are edited in a copy of the sources, which is built once per pair. Times are
simulated, so a second run gives the same figures on any computer.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# Segments of a message and the least of its end, in KiB. The first pair is the sources'.
CASES_KIB = ((64, 8), (64, 64), (64, 32), (64, 16), (64, 4), (16, 8), (4, 4))
SIZES_BYTES = tuple(64 << 10 << shift for shift in range(15))  # 64 KiB to 1 GiB
ALGORITHMS = ("ring_all_reduce", "tree_all_reduce")
PROTOCOLS = ("Simple", "LL128")
RANKS = (8, 16)
CHANNELS = 8
EVENTS = "events"
Case = tuple[int, int]
Times = dict[str, float]


def build(case: Case, folder: Path) -> Path:
    """The compiled module with those segments; only what depends on them is compiled again."""
    header = folder / "src/towpath/gpu_links/link_use.hpp"
    if not header.exists():
        for name in ("CMakeLists.txt", "pyproject.toml", "cmake", "src"):
            source = ROOT / name
            copy = shutil.copytree if source.is_dir() else shutil.copy2
            copy(source, folder / name)
        configure = [
            "cmake", "-S", ".", "-B", "build", "-DTOWPATH_BUILD_PYTHON=ON",
            f"-DPython_EXECUTABLE={sys.executable}",
        ]  # fmt: skip
        subprocess.run(configure, cwd=folder, check=True, stdout=subprocess.DEVNULL)
    text = header.read_text()
    for name, size_kib in zip(("kSegment", "kSegmentMin"), case, strict=True):
        constant = rf"(inline constexpr Bytes {name}\{{)[^}}]*(\}};)"
        text, found = re.subn(constant, rf"\g<1>{size_kib} * 1024\g<2>", text)
        if found != 1:
            raise RuntimeError(f"{header.name} has no single {name} to change")
    header.write_text(text)
    make = ["cmake", "--build", "build", "--target", "_core", "--parallel", "2"]
    subprocess.run(make, cwd=folder, check=True, stdout=subprocess.DEVNULL)
    (built,) = (folder / "build").glob("_core*.so")
    return Path(shutil.copy2(built, folder / f"segment-{case[0]}-{case[1]}-{built.name}"))


def measure_here(module: Path) -> Times:
    """Simulated times in microseconds, and all events together, with the given compiled module."""
    import towpath

    spec = importlib.util.spec_from_file_location("towpath._core", module)
    core = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(core)
    sys.modules["towpath._core"] = towpath._core = core
    from towpath.collectives import simulated
    from towpath.collectives.call import Call
    from towpath.collectives.places import GpuPlace
    from towpath.schedules.schedule_source import ScheduleSource
    from towpath.specs import catalogue

    times: Times = {EVENTS: 0}
    for ranks in RANKS:
        machine = catalogue.load("dgx-h100", ranks=ranks)
        place = GpuPlace(machine.build())
        for algorithm in ALGORITHMS:
            for protocol in PROTOCOLS:
                source = ScheduleSource(
                    algorithm=algorithm, ranks=ranks, channels=CHANNELS, protocol=protocol,
                    hosts=machine.host_count,
                )  # fmt: skip
                call = Call(source.schedule())
                for size_bytes in SIZES_BYTES:
                    outcome = simulated.invoke(
                        place, call, size_bytes, in_place=False, with_data=False
                    )
                    times[f"{ranks} {algorithm} {protocol} {size_bytes}"] = outcome.time_us
                    times[EVENTS] += outcome.events
    return times


def measure(case: Case, folder: Path) -> Times:
    module = build(case, folder)
    command = [sys.executable, __file__, "--module", str(module)]
    return json.loads(subprocess.run(command, check=True, capture_output=True).stdout)


def print_table(times_of: dict[Case, Times]) -> None:
    """Largest and mean change against the first case, and where the largest is."""
    first, *others = times_of
    series = sorted({key.rsplit(" ", 1)[0] for key in times_of[first] if key != EVENTS})
    print("| GPUs, algorithm, protocol | segments | mean | largest | at |")
    print("|---|---:|---:|---:|---:|")
    for name in series:
        for case in others:
            changes = {
                size: times_of[case][f"{name} {size}"] / times_of[first][f"{name} {size}"] - 1
                for size in SIZES_BYTES
            }
            where = max(changes, key=lambda size: abs(changes[size]))
            mean = sum(map(abs, changes.values())) / len(changes)
            size = f"{where >> 20} MiB" if where >= 1 << 20 else f"{where >> 10} KiB"
            print(
                f"| {name} | {case[0]}, {case[1]} KiB | {mean:.2%} | {changes[where]:+.2%} "
                f"| {size} |"
            )
    for case, times in times_of.items():
        ratio = times[EVENTS] / times_of[first][EVENTS]
        print(f"{case[0]}, {case[1]} KiB: {times[EVENTS]:,} events, {ratio:.2f} times as many")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--module", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--json", type=Path, help="also keep every time, by segments in KiB")
    options = parser.parse_args()
    if options.module:
        print(json.dumps(measure_here(options.module)))
        return
    with tempfile.TemporaryDirectory() as folder:
        times_of = {case: measure(case, Path(folder)) for case in CASES_KIB}
    print_table(times_of)
    if options.json:
        by_name = {f"{most}-{least}": times for (most, least), times in times_of.items()}
        options.json.write_text(json.dumps(by_name, indent=1) + "\n")


if __name__ == "__main__":
    main()
