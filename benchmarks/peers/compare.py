# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""What the same simulated work costs here and in other simulators, side by side in one run.

Nothing is fetched: a peer takes part when the option that names its program is given.

    python benchmarks/peers/compare.py --loggopsim DIR --simgrid --astra-sim DIR --booksim FILE

`--loggopsim` is a folder with LogGOPSim and txt2bin; `--astra-sim` a checkout with its analytical,
congestion-aware program in `--astra-sim-program`; `--simgrid` compiles simgrid_ring.cpp against an
installed SimGrid. Rounds alternate between the programs, and medians are kept.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
RATE_GB_PER_S = 50
LATENCY_NS = 500
MIB = 1 << 20
# A ring of ranks, each joined to the next: (ranks, bytes per rank).
RANKS = ((64, 64 * MIB), (256, 64 * MIB), (1024, 64 * MIB))
BYTES = ((64, MIB), (64, 1024 * MIB), (64, 16 * 1024 * MIB))
# Uniform random traffic on an 8 x 8 torus: (load in flits per node and cycle, VCs, flits).
NOC = ((0.1, 4, 1), (0.1, 4, 20), (0.1, 16, 1), (0.1, 16, 20))
NOC_CYCLES = 20_000
NOC_NODES = 64

Row = dict[str, Any]


@dataclass(frozen=True)
class Run:
    """One process: what it took, and what it simulated."""

    wall_s: float
    memory_mib: float
    text: str


def messages_of(ranks: int) -> int:
    """Chunks that a ring all-reduce sends: 2 (N - 1) steps, one chunk per rank each."""
    return 2 * ranks * (ranks - 1)


def run(command: list[str | Path], folder: Path | None = None, exit_code: int = 0) -> Run:
    """Runs a program, and measures it by what the system says of its process."""
    with tempfile.TemporaryFile("w+") as output:
        started = time.perf_counter()
        process = subprocess.Popen(
            [str(word) for word in command], cwd=folder, stdout=output, stderr=subprocess.STDOUT
        )
        _, status, usage = os.wait4(process.pid, 0)
        wall_s = time.perf_counter() - started
        output.seek(0)
        text = output.read()
    if os.waitstatus_to_exitcode(status) != exit_code:
        sys.exit(f"{command[0]} failed:\n{text[-2000:]}")
    return Run(wall_s, usage.ru_maxrss / 1024, text)


# --- a ring all-reduce ----------------------------------------------------------------------------

_TOWPATH = """
import sys, time
import towpath
ranks, size, folds = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3] == "folded"
settings = ["link_types.link.rate_gb_per_s={rate}", "link_types.link.latency_ns={latency}"]
machine = towpath.load("ring", ranks=ranks, settings=settings)
started = time.perf_counter()
run = machine.run("all_reduce", size_bytes=size, algorithm="ring", protocol="Simple", channels=1,
                  data=False, fold=folds)
print(run.rows[0].time_us, time.perf_counter() - started)
"""


def towpath_ring(ranks_simulated: str) -> Callable[[int, int, Path], Row]:
    """The public API in a new process, imports included: of "all" ranks, or "folded"."""

    def measure(ranks: int, size_bytes: int, folder: Path) -> Row:
        program = _TOWPATH.format(rate=RATE_GB_PER_S, latency=LATENCY_NS)
        done = run([sys.executable, "-c", program, str(ranks), str(size_bytes), ranks_simulated])
        simulated_us, inside_s = map(float, done.text.split())
        return _ring_row(done, ranks, simulated_us, inside_s=inside_s)

    return measure


def simgrid_ring(program: Path) -> Callable[[int, int, Path], Row]:
    """SimGrid, by an actor per rank."""

    def measure(ranks: int, size_bytes: int, folder: Path) -> Row:
        done = run([program, str(ranks), str(size_bytes), str(RATE_GB_PER_S), str(LATENCY_NS),
                    "--log=root.thresh:error"])  # fmt: skip
        return _ring_row(done, ranks, float(done.text.split()[-1]))

    return measure


def loggopsim_ring(programs: Path) -> Callable[[int, int, Path], Row]:
    """LogGOPSim, whose input is made beforehand and not counted."""

    def measure(ranks: int, size_bytes: int, folder: Path) -> Row:
        goal = folder / f"ring-{ranks}-{size_bytes}.bin"
        if not goal.exists():
            text = goal.with_suffix(".goal")
            with text.open("w") as file:
                file.writelines(_goal(ranks, size_bytes))
            run([programs / "txt2bin", "-i", text, "-o", goal])
            text.unlink()
        # G is whole nanoseconds per byte: bytes are counted in units that take one.
        done = run([programs / "LogGOPSim", "-f", goal, "-L", str(LATENCY_NS), "-o", "0", "-g",
                    "0", "-G", "1", "-O", "0", "-S", "2000000000", "-b"])  # fmt: skip
        found = re.search(r"Max(?:imum)? finishing time at host \d+: (\d+)", done.text)
        assert found, done.text
        return _ring_row(done, ranks, int(found[1]) / 1e3)

    return measure


def _goal(ranks: int, size_bytes: int) -> Iterator[str]:
    """A step's send waits for the step before to be received, except for the first."""
    unit = max(1, size_bytes // ranks // RATE_GB_PER_S)
    yield f"num_ranks {ranks}\n"
    for rank in range(ranks):
        after, before = (rank + 1) % ranks, (rank - 1) % ranks
        lines = [f"rank {rank} {{\n"]
        for step in range(2 * (ranks - 1)):
            lines.append(f"s{step}: send {unit}b to {after} tag {step}\n")
            if step:
                lines.append(f"s{step} requires r{step - 1}\n")
            lines.append(f"r{step}: recv {unit}b from {before} tag {step}\n")
        lines.append("}\n")
        yield "".join(lines)


def astra_ring(checkout: Path, program: Path) -> Callable[[int, int, Path], Row]:
    """ASTRA-sim's congestion-aware analytical network; its input is not counted."""

    def measure(ranks: int, size_bytes: int, folder: Path) -> Row:
        case = folder / f"astra-{ranks}-{size_bytes}"
        if not case.exists():
            case.mkdir()
            _astra_input(checkout, case, ranks, size_bytes)
        done = run(
            [program, f"--workload-configuration={case / 'ring'}",
             f"--system-configuration={case / 'system.json'}",
             f"--remote-memory-configuration={case / 'memory.json'}",
             f"--network-configuration={case / 'network.yml'}"],
            case,
        )  # fmt: skip
        cycles = max(map(int, re.findall(r"sys\[\d+\] finished, (\d+) cycles", done.text)))
        return _ring_row(done, ranks, cycles / 1e3)

    return measure


def _astra_input(checkout: Path, case: Path, ranks: int, size_bytes: int) -> None:
    (case / "network.yml").write_text(
        f"topology: [ Ring ]\nnpus_count: [ {ranks} ]\nbandwidth: [ {RATE_GB_PER_S}.0 ]\n"
        f"latency: [ {LATENCY_NS}.0 ]\n"
    )
    (case / "memory.json").write_text('{"memory-type": "NO_MEMORY_EXPANSION"}')
    (case / "system.json").write_text(
        json.dumps(
            {
                "scheduling-policy": "LIFO", "endpoint-delay": 1, "active-chunks-per-dimension": 1,
                "preferred-dataset-splits": 1, "all-reduce-implementation": ["ring"],
                "all-gather-implementation": ["ring"], "reduce-scatter-implementation": ["ring"],
                "all-to-all-implementation": ["ring"], "collective-optimization": "baseline",
                "local-mem-bw": 1000000, "boost-mode": 0,
            }
        )
    )  # fmt: skip
    script = (
        "import sys; sys.path[:0] = sys.argv[1:2]\n"
        "from et_def_pb2 import *\n"
        "from google.protobuf.internal.encoder import _VarintBytes\n"
        "for rank in range(int(sys.argv[3])):\n"
        "    with open(f'{sys.argv[2]}/ring.{rank}.et', 'wb') as file:\n"
        "        node = Node(id=0, name='all_reduce', type=COMM_COLL_NODE)\n"
        "        node.attr.append(AttributeProto(name='is_cpu_op', bool_val=False))\n"
        "        node.attr.append(AttributeProto(name='comm_type', int64_val=ALL_REDUCE))\n"
        "        node.attr.append(AttributeProto(name='comm_size', int64_val=int(sys.argv[4])))\n"
        "        for message in (GlobalMetadata(version='0.0.4'), node):\n"
        "            file.write(_VarintBytes(message.ByteSize()) + message.SerializeToString())\n"
    )
    schema = checkout / "extern/graph_frontend/chakra/schema/protobuf"
    run([sys.executable, "-c", script, schema, case, str(ranks), str(size_bytes)])


def _ring_row(done: Run, ranks: int, simulated_us: float, inside_s: float | None = None) -> Row:
    return {
        "wall_s": done.wall_s, "memory_mib": done.memory_mib, "simulated_us": simulated_us,
        "inside_s": done.wall_s if inside_s is None else inside_s,
        "messages_per_s": messages_of(ranks) / (done.wall_s if inside_s is None else inside_s),
    }  # fmt: skip


# --- a network on a chip --------------------------------------------------------------------------


def towpath_noc(benchmarks: Path) -> Callable[[float, int, int, Path], Row]:
    """The network alone, as in benchmarks/noc."""

    def measure(load: float, vcs: int, flits: int, folder: Path) -> Row:
        name = f"noc_uniform_random/load:{round(load * 100)}/classes:{vcs // 4}/flits:{flits}"
        done = run(
            [benchmarks, f"--benchmark_filter=^{name}$", f"--benchmark_out={folder / 'noc.json'}",
             "--benchmark_out_format=json"]
        )  # fmt: skip
        (row,) = json.loads((folder / "noc.json").read_text())["benchmarks"]
        return {"passes_per_s": row["flit_hops"], "memory_mib": done.memory_mib}

    return measure


def booksim_noc(program: Path) -> Callable[[float, int, int, Path], Row]:
    """BookSim2's torus, in dimension order; it counts a router as a hop, as Towpath does."""

    def measure(load: float, vcs: int, flits: int, folder: Path) -> Row:
        config = folder / "booksim.cfg"
        settings = {
            "topology": "torus", "k": 8, "n": 2, "routing_function": "dim_order",
            "num_vcs": vcs, "vc_buf_size": 8, "packet_size": flits, "traffic": "uniform",
            "injection_rate": load, "injection_rate_uses_flits": 1, "sim_type": "throughput",
            "warmup_periods": 1, "sample_period": NOC_CYCLES, "max_samples": 1, "sim_count": 1,
        }  # fmt: skip
        config.write_text("".join(f"{name} = {value};\n" for name, value in settings.items()))
        done = run([program, config], exit_code=255)  # what it ends with where all went well

        def last(pattern: str) -> float:
            return float(re.findall(pattern, done.text)[-1])

        cycles = last(r"Time taken is (\d+) cycles")
        passes = (
            last(r"Accepted flit rate average\s*= ([\d.]+)")
            * last(r"Hops average = ([\d.]+)") * NOC_NODES * cycles
        )  # fmt: skip
        seconds = last(r"Total run time ([\d.]+)")
        return {"passes_per_s": passes / seconds, "memory_mib": done.memory_mib}

    return measure


# --- all of them ----------------------------------------------------------------------------------


def median_rows(
    cases: tuple[Any, ...], programs: dict[str, Callable[..., Row]], rounds: int, folder: Path
) -> list[Row]:
    """Each case in every program, by turns; medians over the rounds."""
    rows = []
    for case in cases:
        found: dict[str, list[Row]] = {name: [] for name in programs}
        for _ in range(rounds):
            for name, measure in programs.items():
                found[name].append(measure(*case, folder))
        for name, measured in found.items():
            median = {key: statistics.median(row[key] for row in measured) for key in measured[0]}
            rows.append({"case": case, "program": name, **median})
            print(json.dumps(rows[-1]), flush=True)
    return rows


def compiled_simgrid(folder: Path) -> Path:
    """simgrid_ring.cpp against the SimGrid of this host."""
    program = folder / "simgrid_ring"
    run(["g++", "-O3", "-std=c++17", HERE / "simgrid_ring.cpp", "-lsimgrid", "-o", program])
    return program


def main() -> None:
    """Measures, and writes what came out beside this file."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--loggopsim", type=Path, help="folder with LogGOPSim and txt2bin")
    parser.add_argument("--simgrid", action="store_true", help="SimGrid is installed")
    parser.add_argument("--astra-sim", type=Path, help="checkout of ASTRA-sim")
    parser.add_argument("--astra-sim-program", type=Path, help="its congestion-aware program")
    parser.add_argument("--booksim", type=Path, help="the program booksim")
    parser.add_argument("--benchmarks", type=Path, default=ROOT / "build/towpath_benchmarks")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--out", type=Path, default=HERE / "results.json")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="towpath-peers-") as temporary:
        folder = Path(temporary)
        rings: dict[str, Callable[..., Row]] = {
            "Towpath": towpath_ring("folded"), "Towpath, all ranks": towpath_ring("all"),
        }  # fmt: skip
        if options.loggopsim:
            rings["LogGOPSim"] = loggopsim_ring(options.loggopsim)
        if options.simgrid:
            rings["SimGrid"] = simgrid_ring(compiled_simgrid(folder))
        if options.astra_sim:
            rings["ASTRA-sim"] = astra_ring(options.astra_sim, options.astra_sim_program)
        networks: dict[str, Callable[..., Row]] = {"Towpath": towpath_noc(options.benchmarks)}
        if options.booksim:
            networks["BookSim2"] = booksim_noc(options.booksim)
        results = {
            "processor": platform.processor() or platform.machine(), "rounds": options.rounds,
            "ranks": median_rows(RANKS, rings, options.rounds, folder),
            "bytes": median_rows(BYTES, rings, options.rounds, folder),
            "noc": median_rows(NOC, networks, options.rounds, folder),
        }  # fmt: skip
    options.out.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
