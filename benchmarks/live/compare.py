# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Live collectives of Towpath beside those of MPI implementations and gloo, in one run.

    python benchmarks/live/compare.py --ranks 2 --mpi openmpi=PREFIX --mpi mpich=/usr

builds the programs beside it, runs them in alternating rounds, and prints for each size the medians
over the rounds and our time over that of the fastest peer. A peer is a folder with bin/mpirun (or
mpiexec) and lib/libmpi; where torch is installed, gloo is measured too. Each round is preceded by a
barrier of ours: where its time changes, the processors were moved.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
COLLECTIVES = ("all_reduce", "broadcast", "all_gather", "reduce_scatter", "all_to_all")
SIZES_BYTES = (8, 128, 4096, 32 << 10, 128 << 10, 1 << 20, 8 << 20, 32 << 20, 128 << 20, 256 << 20)
TIMEOUT_S = 120

Times = dict[str, dict[tuple[str, int], list[float]]]


def build_ours(folder: Path, library: Path) -> Path:
    """Compiles towpath_peer.cpp against the library of a build folder."""
    program = folder / "towpath_peer"
    subprocess.run(
        ["g++", "-std=c++20", "-O3", f"-I{ROOT / 'src'}", str(HERE / "towpath_peer.cpp"),
         str(library), "-lfmt", "-lhwy", "-lboost_context", "-lpthread", "-ldl",
         "-o", str(program)],
        check=True,
    )  # fmt: skip
    return program


def build_mpi(folder: Path, name: str, prefix: Path, include: Path | None) -> Path:
    """Compiles mpi_peer.c against one MPI."""
    program = folder / f"mpi_peer_{name}"
    libraries = [*prefix.glob("lib/libmpi.so*"), *prefix.glob("lib/*/libmpich.so*")]
    if not libraries:
        raise SystemExit(f"{name}: there is no lib/libmpi.so or libmpich.so below {prefix}")
    headers = include or next(
        (
            path.parent
            for path in [*prefix.glob("include/mpi.h"), *prefix.glob("include/*/mpich/mpi.h")]
        ),
        None,
    )
    if headers is None:
        raise SystemExit(f"{name}: there is no mpi.h below {prefix}; name it with --include")
    subprocess.run(
        ["gcc", "-O2", f"-I{headers}", str(HERE / "mpi_peer.c"), str(min(libraries)),
         f"-Wl,-rpath,{libraries[0].parent}", "-o", str(program)],
        check=True,
    )  # fmt: skip
    return program


def mpi_command(prefix: Path, ranks: int) -> list[str]:
    """What starts a program on so many ranks."""
    for name in ("mpiexec.hydra", "mpiexec.mpich"):
        if (prefix / "bin" / name).exists():
            return [str(prefix / "bin" / name), "-n", str(ranks)]
    return [
        str(prefix / "bin" / "mpirun"), "--allow-run-as-root", "--oversubscribe", "--bind-to",
        "none", "-n", str(ranks),
    ]  # fmt: skip


def run(command: list[str], environment: dict[str, str]) -> list[tuple[str, int, float]]:
    """The lines of a program; none where it fails or takes too long."""
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False,
            env={**os.environ, **environment},
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        print(f"{command[0]}: no end after {TIMEOUT_S} s", file=sys.stderr)
        return []
    if done.returncode != 0:
        print(f"{command[0]}: {done.stderr.strip()[-300:]}", file=sys.stderr)
    rows = (line.split() for line in done.stdout.splitlines())
    return [(row[0], int(row[1]), float(row[2])) for row in rows if len(row) == 3]


def gloo_rank(rank: int, ranks: int, port: int, asked: list[str]) -> None:
    """One rank of gloo, in a process of its own."""
    import time

    import torch
    from torch import distributed

    os.sched_setaffinity(0, {sorted(os.sched_getaffinity(0))[rank % os.cpu_count()]})
    torch.set_num_threads(1)
    distributed.init_process_group(
        "gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=ranks
    )
    for spec in asked:
        name, size = spec.split(":")
        if name not in ("all_reduce", "broadcast"):
            continue
        tensor = torch.zeros(int(size) // 4)
        call = (
            distributed.all_reduce
            if name == "all_reduce"
            else lambda t: distributed.broadcast(t, 0)
        )
        samples = []
        for _ in range(7):
            distributed.barrier()
            begin = time.perf_counter()
            for _ in range(3):
                call(tensor)
            samples.append((time.perf_counter() - begin) / 3 * 1e6)
        if rank == 0:
            print(name, size, statistics.median(samples), flush=True)
    distributed.destroy_process_group()


def run_gloo(ranks: int, asked: list[str]) -> list[tuple[str, int, float]]:
    import socket

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, __file__, "--gloo-rank"]
    others = [
        subprocess.Popen([*command, json.dumps([rank, ranks, port, asked])])
        for rank in range(1, ranks)
    ]
    rows = run([*command, json.dumps([0, ranks, port, asked])], {})
    for other in others:
        try:
            other.wait(timeout=TIMEOUT_S)
        except subprocess.TimeoutExpired:
            other.kill()
    return rows


def table(times: Times, ours: tuple[str, ...]) -> str:
    """A Markdown table: a column per program, and ours over the best peer."""
    names = list(times)
    peers = [name for name in names if name not in ours]
    keys = list(dict.fromkeys(key for name in names for key in times[name]))
    lines = [
        f"| collective | bytes | {' | '.join(names)} | ours / best peer |",
        f"|---|---:|{'---:|' * (len(names) + 1)}",
    ]
    for collective, size in keys:
        cell = {
            name: statistics.median(times[name][collective, size])
            for name in names
            if times[name].get((collective, size))
        }
        best = min((cell[name] for name in peers if name in cell), default=None)
        ratio = f"{cell[ours[0]] / best:.2f}" if best and ours[0] in cell else ""
        shown = " | ".join(f"{cell[name]:.3g}" if name in cell else "" for name in names)
        lines.append(f"| {collective} | {size:,} | {shown} | {ratio} |")
    return "\n".join(lines)


def plot(times: Times, file: Path) -> None:
    """Time over size of each collective, as a page."""
    from plotly.graph_objects import Figure, Scatter
    from plotly.subplots import make_subplots

    collectives = list(dict.fromkeys(key[0] for rows in times.values() for key in rows))
    figure: Figure = make_subplots(rows=1, cols=len(collectives), subplot_titles=collectives)
    for column, collective in enumerate(collectives, 1):
        for name, rows in times.items():
            points = sorted(
                (size, statistics.median(us))
                for (which, size), us in rows.items()
                if which == collective
            )
            figure.add_trace(
                Scatter(x=[p[0] for p in points], y=[p[1] for p in points], name=name,
                        legendgroup=name, showlegend=column == 1),
                row=1, col=column,
            )  # fmt: skip
    figure.update_xaxes(type="log", title="bytes")
    figure.update_yaxes(type="log", title="us")
    figure.write_html(file, include_plotlyjs=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gloo-rank", help=argparse.SUPPRESS)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--collectives", default=",".join(COLLECTIVES))
    parser.add_argument("--sizes", default=",".join(map(str, SIZES_BYTES)), help="bytes")
    parser.add_argument("--mpi", action="append", default=[], metavar="NAME=PREFIX")
    parser.add_argument("--include", type=Path, help="headers for an MPI that has none")
    parser.add_argument("--library", type=Path, default=ROOT / "build" / "libtowpath.a")
    parser.add_argument("--plot", type=Path, help="a page with the curves")
    asked = parser.parse_args()
    if asked.gloo_rank:
        gloo_rank(*json.loads(asked.gloo_rank))
        return
    specs = [
        f"{name}:{size}" for name in asked.collectives.split(",") for size in asked.sizes.split(",")
    ]
    times: Times = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        ours = str(build_ours(folder, asked.library))
        programs = {
            "towpath": ([ours, str(asked.ranks), "private", *specs], {}),
            "towpath symmetric": ([ours, str(asked.ranks), "symmetric", *specs], {}),
        }
        for each in asked.mpi:
            title, _, where = each.partition("=")
            prefix = Path(where).resolve()
            program = build_mpi(folder, title, prefix, asked.include)
            programs[title] = (
                [*mpi_command(prefix, asked.ranks), str(program), *specs],
                {"OPAL_PREFIX": str(prefix), "LD_LIBRARY_PATH": str(prefix / "lib"),
                 "FI_PROVIDER_PATH": str(prefix / "lib" / "libfabric"), "I_MPI_FABRICS": "shm",
                 "I_MPI_PIN": "0"},
            )  # fmt: skip
        signals = []
        for _ in range(asked.rounds):
            signals += [us for *_, us in run([ours, "2", "private", "barrier:0"], {})]
            for title, (command, environment) in programs.items():
                rows = times.setdefault(title, defaultdict(list))
                for collective, size, us in run(command, environment):
                    rows[collective, size].append(us)
            try:
                import torch  # noqa: F401
            except ImportError:
                continue
            rows = times.setdefault("gloo", defaultdict(list))
            for collective, size, us in run_gloo(asked.ranks, specs):
                rows[collective, size].append(us)
    print(f"{asked.ranks} ranks, microseconds, medians of {asked.rounds} rounds; a barrier of two")
    print(f"ranks before each round: {', '.join(f'{us * 1e3:.0f}' for us in signals)} ns\n")
    print(table(times, ("towpath", "towpath symmetric")))
    if asked.plot:
        plot(times, asked.plot)


if __name__ == "__main__":
    main()
