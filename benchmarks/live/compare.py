# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Live collectives of Towpath beside those of MPI implementations and gloo, in alternating rounds.

    python benchmarks/live/compare.py measure results.json --ranks 2 --mpi openmpi=PREFIX
    python benchmarks/live/compare.py show results.json --plot results.svg

`measure` adds to the file, one program at a time, what it does not hold yet; it may be ended at
any time and started again, and --seconds ends it by itself. `show` prints medians over the rounds,
and the median of our time over that of the fastest peer of the same round. An MPI is a folder with
bin/mpirun (or mpiexec) and lib/libmpi; where torch is installed, gloo is measured too. A peer that
is not there, or does not end, is named with the reason. `loop` is loop_peer.cpp, an all_reduce of
two ranks by loops that can do nothing else: no peer, but what memory and caches take. Before and
after each run flag_probe.cpp tells how far the cores are from each other, as a virtual machine's
are moved; `show --placement near` or `far` takes only rounds with the cores so throughout.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
COLLECTIVES = ("all_reduce", "broadcast", "all_gather", "reduce_scatter", "all_to_all")
SIZES_BYTES = (8, 128, 4096, 32 << 10, 128 << 10, 1 << 20, 8 << 20, 32 << 20, 128 << 20, 256 << 20)
OURS = ("towpath", "towpath symmetric")
LOOP = "loop"
FLAG = "flag ns"  # before and after the run of each program
# Cores behind one last cache take 48 to 65 ns for a flag, others 215 to 330.
NEAR_NS = 120
# Of one run of a program: enough to be worth its start, few enough to be repeated.
SIZES_PER_RUN = 3
TIMEOUT_S = 40
Rows = list[tuple[str, int, float]]


class Skipped(Exception):
    """Why a program measures nothing."""


@dataclass(frozen=True)
class Program:
    """What measures a list of COLLECTIVE:BYTES."""

    command: list[str]
    environment: dict[str, str] = field(default_factory=dict)

    def run(self, specs: list[str]) -> Rows:
        """Its lines.

        Raises:
            Skipped: it fails, or does not end in its time.
        """
        with subprocess.Popen(
            [*self.command, *specs], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env={**os.environ, **self.environment}, start_new_session=True,
        ) as process:  # fmt: skip
            try:
                printed, errors = process.communicate(timeout=TIMEOUT_S)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                raise Skipped(f"no end after {TIMEOUT_S} s") from None
        if process.returncode != 0:
            raise Skipped(f"status {process.returncode}: {' '.join(errors.split())[-200:]}")
        rows = [row for row in map(str.split, printed.splitlines()) if len(row) >= 3]
        return [(row[0], int(row[1]), float(row[2])) for row in rows if row[0] in COLLECTIVES]


class Gloo:
    """gloo of torch, a process per rank."""

    def __init__(self, ranks: int) -> None:
        self.ranks = ranks

    def run(self, specs: list[str]) -> Rows:
        """As Program.run."""
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        ranks = [
            Program([sys.executable, __file__, "gloo-rank", str(rank), str(self.ranks), str(port)])
            for rank in range(self.ranks)
        ]
        others = [
            subprocess.Popen([*rank.command, *specs], stdout=subprocess.DEVNULL,
                             stderr=subprocess.DEVNULL)
            for rank in ranks[1:]
        ]  # fmt: skip
        try:
            return ranks[0].run(specs)
        finally:
            for other in others:
                other.kill()
                other.wait()


def gloo_rank(rank: int, ranks: int, port: int, specs: list[str]) -> None:
    """One rank of gloo, in a process of its own."""
    import torch
    from torch import distributed

    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {cores[rank % len(cores)]})
    torch.set_num_threads(1)
    distributed.init_process_group(
        "gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=ranks
    )

    def call(name: str, whole: torch.Tensor, part: torch.Tensor) -> None:
        if name == "all_reduce":
            distributed.all_reduce(whole)
        elif name == "broadcast":
            distributed.broadcast(whole, 0)
        elif name == "all_gather":
            distributed.all_gather_into_tensor(whole, part)
        elif name == "reduce_scatter":
            distributed.reduce_scatter_tensor(part, whole)
        else:
            distributed.all_to_all_single(whole, torch.empty_like(whole))

    for spec in specs:
        name, size = spec.split(":")
        count = max(int(size) // 4 // ranks, 1)
        whole, part = torch.zeros(count * ranks), torch.zeros(count)
        call(name, whole, part)
        samples = []
        for _ in range(7):
            distributed.barrier()
            begin = time.perf_counter()
            for _ in range(3):
                call(name, whole, part)
            samples.append((time.perf_counter() - begin) / 3 * 1e6)
        if rank == 0:
            print(name, size, statistics.median(samples), flush=True)
    distributed.destroy_process_group()


def compiled(command: list[str], program: Path) -> str:
    """The program that a compiler makes.

    Raises:
        Skipped: it does not.
    """
    done = subprocess.run(
        [*command, "-o", str(program)], capture_output=True, text=True, timeout=300, check=False
    )
    if done.returncode != 0:
        raise Skipped(f"{command[0]} fails: {done.stderr.strip()[-300:]}")
    return str(program)


def our_program(folder: Path, library: Path) -> str:
    """Compiles towpath_peer.cpp against the library of a build folder."""
    if not library.exists():
        raise Skipped(f"there is no {library.name} in {library.parent.name}/; run make build")
    return compiled(
        ["g++", "-std=c++20", "-O3", f"-I{ROOT / 'src'}", str(HERE / "towpath_peer.cpp"),
         str(library), "-lfmt", "-lhwy", "-lboost_context", "-lpthread", "-ldl"],
        folder / "towpath_peer",
    )  # fmt: skip


def loop_program(folder: Path) -> str:
    """Compiles loop_peer.cpp for the processor at hand."""
    return compiled(
        ["g++", "-std=c++20", "-O3", "-march=native", str(HERE / "loop_peer.cpp")], folder / LOOP
    )


def flag_program(folder: Path) -> str:
    """Compiles flag_probe.cpp."""
    return compiled(
        ["g++", "-std=c++20", "-O2", "-pthread", str(HERE / "flag_probe.cpp")],
        folder / "flag_probe",
    )


def flag_ns(probe: str) -> float | None:
    """How long a flag takes from core to core now; None where there is one core."""
    done = subprocess.run([probe], capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    return float(done.stdout) if done.returncode == 0 else None


def mpi_program(
    folder: Path, title: str, prefix: Path, include: Path | None, ranks: int
) -> Program:
    """mpi_peer.c, compiled against one MPI, and what starts it on so many ranks."""
    libraries = [*prefix.glob("lib/libmpi.so*"), *prefix.glob("lib/*/libmpich.so*")]
    headers = [*prefix.glob("include/mpi.h"), *prefix.glob("include/*/mpich/mpi.h")]
    if not libraries:
        raise Skipped(f"there is no lib/libmpi.so or libmpich.so below {prefix.name}")
    if not headers and include is None:
        raise Skipped(f"there is no mpi.h below {prefix.name}; name it with --include")
    program = compiled(
        ["gcc", "-O2", f"-I{include or headers[0].parent}", str(HERE / "mpi_peer.c"),
         str(min(libraries)), f"-Wl,-rpath,{libraries[0].parent}"],
        folder / f"mpi_peer_{title}",
    )  # fmt: skip
    environment = {
        "OPAL_PREFIX": str(prefix), "LD_LIBRARY_PATH": str(prefix / "lib"),
        "FI_PROVIDER_PATH": str(prefix / "lib" / "libfabric"), "I_MPI_FABRICS": "shm",
        "I_MPI_PIN": "0",
    }  # fmt: skip
    for name in ("mpiexec.hydra", "mpiexec.mpich"):
        if (prefix / "bin" / name).exists():
            return Program([str(prefix / "bin" / name), "-n", str(ranks), program], environment)
    words = ["--allow-run-as-root", "--bind-to", "none", "-n", str(ranks)]
    if ranks > len(os.sched_getaffinity(0)):
        words.insert(0, "--oversubscribe")
    return Program([str(prefix / "bin" / "mpirun"), *words, program], environment)


def programs_of(asked: argparse.Namespace, folder: Path) -> dict[str, Program | Gloo]:
    """Whatever can measure; the others are named with the reason."""
    programs: dict[str, Program | Gloo] = {}
    ours = our_program(folder, asked.library)
    for title, memory in zip(OURS, ("private", "symmetric"), strict=True):
        programs[title] = Program([ours, str(asked.ranks), memory])
    if asked.ranks == 2:
        try:
            programs[LOOP] = Program([loop_program(folder), "2"])
        except Skipped as reason:
            print(f"{LOOP} is skipped: {reason}", file=sys.stderr)
    for each in asked.mpi:
        title, _, where = each.partition("=")
        try:
            programs[title] = mpi_program(
                folder, title, Path(where).resolve(), asked.include, asked.ranks
            )
        except Skipped as reason:
            print(f"{title} is skipped: {reason}", file=sys.stderr)
    torch = importlib.util.find_spec("torch")
    if torch is None or torch.origin is None:  # without one it is the folder beside this file
        print("gloo is skipped: torch is not installed", file=sys.stderr)
    else:
        programs["gloo"] = Gloo(asked.ranks)
    return {title: each for title, each in programs.items() if title not in asked.without}


def runs_of(asked: argparse.Namespace) -> Iterator[list[str]]:
    """What one run of a program measures: neighbouring sizes of a collective."""
    every = [int(size) for size in asked.sizes.split(",")]
    for collective in asked.collectives.split(","):
        # Where ranks have parts, each has an element of four bytes at least.
        least = 4 if collective in ("all_reduce", "broadcast") else 4 * asked.ranks
        sizes = [size for size in every if size >= least]
        for first in range(0, len(sizes), SIZES_PER_RUN):
            yield [f"{collective}:{size}" for size in sizes[first : first + SIZES_PER_RUN]]


def measure(asked: argparse.Namespace) -> int:
    """Adds what is missing to the file; returns how many runs are left."""
    results = json.loads(asked.results.read_text()) if asked.results.exists() else {}
    end = time.monotonic() + asked.seconds
    left = 0
    with tempfile.TemporaryDirectory() as name:
        programs = programs_of(asked, Path(name))
        probe = flag_program(Path(name))
        for specs in runs_of(asked):
            for turn in range(asked.rounds):
                for title, program in programs.items():
                    key = f"{asked.ranks} ranks, round {turn}, {' '.join(specs)}"
                    done = results.setdefault(key, {})
                    if title in done or (title == LOOP and specs[0].split(":")[0] != "all_reduce"):
                        continue
                    if time.monotonic() > end:
                        left += 1
                        continue
                    before = flag_ns(probe)
                    done[title] = measured(program, specs)
                    done.setdefault(FLAG, {})[title] = [before, flag_ns(probe)]
                    write(asked.results, results)
    print(f"{left} runs are left", file=sys.stderr)
    return left


def measured(program: Program | Gloo, specs: list[str]) -> dict[str, object]:
    """What goes into the file: microseconds by COLLECTIVE:BYTES, or why there are none."""
    try:
        return {f"{collective}:{size}": us for collective, size, us in program.run(specs)}
    except Skipped as reason:
        print(f"{specs}: {reason}", file=sys.stderr)
        return {"skipped": str(reason)}


def write(file: Path, results: dict[str, object]) -> None:
    unfinished = file.with_suffix(".tmp")
    unfinished.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    unfinished.replace(file)


Cell = tuple[int, str, int]  # ranks, collective, bytes
Rounds = dict[str, float]  # by the round's name
Times = dict[Cell, dict[str, Rounds]]


def is_at(flags_ns: dict[str, list[float | None]], placement: str | None) -> bool:
    """Whether cores were near, or far, before and after each run of a round, as far as is noted."""
    if placement is None:
        return True
    noted = [ns for run in flags_ns.values() for ns in run if ns is not None]
    return bool(noted) and all((ns < NEAR_NS) == (placement == "near") for ns in noted)


def times_in(results: dict[str, dict[str, Any]], placement: str | None = None) -> Times:
    """Microseconds by cell and program, round by round; of a placement of the cores, or all."""
    times: Times = {}
    for key, by_title in results.items():
        ranks = int(key.split()[0])
        if not is_at(by_title.get(FLAG, {}), placement):
            continue
        for title, by_spec in by_title.items():
            if title == FLAG:
                continue
            for spec, us in by_spec.items():
                if spec == "skipped":
                    continue
                collective, size = spec.split(":")
                cell = times.setdefault((ranks, collective, int(size)), {})
                cell.setdefault(title, {})[key] = us
    return times


def ratios(cell: dict[str, Rounds], ours: str) -> list[float]:
    """Our time over that of the fastest peer, round by round, ascending.

    Programs of a round run within seconds; between rounds a virtual machine's processors are moved.
    """
    peers = [rounds for title, rounds in cell.items() if title not in (*OURS, LOOP)]
    found = []
    for key, own_us in cell.get(ours, {}).items():
        others = [rounds[key] for rounds in peers if key in rounds]
        if others:
            found.append(own_us / min(others))
    return sorted(found)


def size_text(size: int) -> str:
    for unit, name in ((1 << 20, "MiB"), (1 << 10, "KiB")):
        if size >= unit:
            return f"{size // unit} {name}"
    return f"{size} B"


def tables(times: Times) -> str:
    """A Markdown table per number of ranks and collective."""
    lines: list[str] = []
    before = None
    for (ranks, collective, size), cell in sorted(times.items()):
        if (ranks, collective) != before:
            before = (ranks, collective)
            cells = [each for key, each in times.items() if key[:2] == before]
            titles = list(dict.fromkeys(title for each in cells for title in each))
            lines += ["", f"| {collective}, {ranks} ranks | {' | '.join(titles)} | ours / best "
                      "(least..most) |", f"|---:|{'---:|' * (len(titles) + 1)}"]  # fmt: skip
        shown = [f"{statistics.median(cell[t].values()):.3g}" if t in cell else "" for t in titles]
        of_rounds = ratios(cell, OURS[0])
        end = ""
        if of_rounds:
            median = statistics.median(of_rounds)
            end = f"{median:.2f} ({of_rounds[0]:.2f}..{of_rounds[-1]:.2f})"
        lines.append(f"| {size_text(size)} | {' | '.join([*shown, end])} |")
    return "\n".join(lines[1:])


COLOURS = ("#1b6ca8", "#d1495b", "#3a7d44", "#8d6a9f", "#c98b1a")
WIDTH, HEIGHT, LEFT, TOP = 300, 220, 44, 26
BESIDE = 90  # room for the axis, and for the last size, which ends right of its panel


def panel(place: int, title: str, lines: dict[str, list[tuple[int, float]]]) -> str:
    """One plot: our time over that of the fastest peer, over bytes; 1 is marked."""
    x0 = place % 3 * (WIDTH + BESIDE) + LEFT
    y0 = place // 3 * (HEIGHT + 70) + TOP
    sizes = sorted({size for points in lines.values() for size, _ in points})
    across = {size: x0 + WIDTH * i / max(len(sizes) - 1, 1) for i, size in enumerate(sizes)}
    down = lambda ratio: y0 + HEIGHT * (1 - min(ratio, 2.0) / 2)  # noqa: E731
    parts = [
        f'<text x="{x0}" y="{y0 - 10}" font-weight="bold">{title}</text>',
        f'<rect x="{x0}" y="{y0}" width="{WIDTH}" height="{HEIGHT}" fill="none" stroke="#999"/>',
        f'<path d="M{x0} {down(1)}h{WIDTH}" stroke="#444" stroke-dasharray="4 3"/>',
        *(f'<text x="{x0 - 6}" y="{down(r) + 4}" text-anchor="end">{r:g}</text>'
          for r in (0, 0.5, 1, 1.5, 2)),
        *(f'<text transform="translate({across[s]:.0f} {y0 + HEIGHT + 8}) rotate(40)" '
          f'dominant-baseline="hanging">{size_text(s)}</text>' for s in sizes),
    ]  # fmt: skip
    for number, (name, points) in enumerate(lines.items()):
        way = " ".join(f"{across[size]:.1f},{down(ratio):.1f}" for size, ratio in points)
        colour = COLOURS[number % len(COLOURS)]
        parts.append(f'<polyline points="{way}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts.append(f'<text x="{x0 + WIDTH - 6}" y="{y0 + 16 + 14 * number}" text-anchor="end" '
                     f'fill="{colour}">{name}</text>')  # fmt: skip
    return "\n".join(parts)


def drawing(times: Times) -> str:
    """An SVG: a panel per collective, a line per number of ranks, with ours over the best peer."""
    panels: dict[str, dict[str, list[tuple[int, float]]]] = {}
    for (ranks, collective, size), cell in sorted(times.items()):
        for ours in OURS:
            of_rounds = ratios(cell, ours)
            if not of_rounds or (ours == OURS[1] and ranks > 2):
                continue
            name = f"{ranks} ranks{', symmetric' if ours == OURS[1] else ''}"
            point = (size, statistics.median(of_rounds))
            panels.setdefault(collective, {}).setdefault(name, []).append(point)
    width, height = 3 * (WIDTH + BESIDE), (len(panels) + 2) // 3 * (HEIGHT + 70) + TOP
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        'font-family="sans-serif" font-size="11">',
        '<rect width="100%" height="100%" fill="white"/>',
    ]
    for place, (name, lines) in enumerate(panels.items()):
        parts.append(panel(place, f"{name}: our time / best peer", lines))
    return "\n".join([*parts, "</svg>\n"])


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    one = commands.add_parser("measure", help="measures what the file does not hold yet")
    one.add_argument("results", type=Path)
    one.add_argument("--ranks", type=int, default=2)
    one.add_argument("--rounds", type=int, default=3)
    one.add_argument("--collectives", default=",".join(COLLECTIVES))
    one.add_argument("--sizes", default=",".join(map(str, SIZES_BYTES)), help="bytes")
    one.add_argument("--mpi", action="append", default=[], metavar="NAME=PREFIX")
    one.add_argument("--include", type=Path, help="headers for an MPI that has none")
    one.add_argument("--library", type=Path, default=ROOT / "build" / "libtowpath.a")
    one.add_argument("--without", nargs="*", default=[], help="programs to leave out")
    one.add_argument("--seconds", type=float, default=1e9, help="begin no run after so many")
    two = commands.add_parser("show", help="prints tables of what was measured")
    two.add_argument("results", type=Path, nargs="+")
    two.add_argument(
        "--placement", choices=("near", "far"), help="only rounds with the cores so throughout"
    )
    two.add_argument("--plot", type=Path, help="an SVG of the ratios")
    rank = commands.add_parser("gloo-rank")
    rank.add_argument("numbers", nargs=3, type=int)
    rank.add_argument("specs", nargs="+")
    asked = parser.parse_args()
    if asked.command == "gloo-rank":
        gloo_rank(*asked.numbers, asked.specs)
    elif asked.command == "measure":
        return 1 if measure(asked) else 0
    else:
        results = {k: v for file in asked.results for k, v in json.loads(file.read_text()).items()}
        times = times_in(results, asked.placement)
        print(tables(times))
        if asked.plot:
            asked.plot.write_text(drawing(times), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
