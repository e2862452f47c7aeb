# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Networks on chips packet by packet: how far off, and how much faster, than flit by flit.

Usage: python benchmarks/collective/packets.py [--cases 200] [--seed 1]
Random machines, collectives, algorithms, channels and sizes; then a few that are named.
"""

from __future__ import annotations

import argparse
import random
import statistics
import time
from dataclasses import dataclass

import towpath

# A machine, and the power of two below which sizes are.
MACHINES = {"n300": 23, "t3000": 23, "blackhole-line": 23, "galaxy": 18, "galaxy-torus": 18}
COLLECTIVES = ("all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce", "all_to_all")
NAMED = (
    ("t3000", "all_gather", "ring", 2, 16 << 20),
    ("t3000", "all_reduce", "ring", 2, 1 << 20),
    ("t3000", "all_to_all", "all_pairs", 1, 1 << 20),
    ("galaxy", "all_reduce", "ring", 8, 1 << 20),
    ("galaxy-torus", "all_to_all", "all_pairs", 4, 64 << 10),
)


@dataclass(frozen=True)
class Pair:
    """The same case in both models."""

    name: str
    flits_us: float
    packets_us: float
    flits_s: float
    packets_s: float

    @property
    def error(self) -> float:
        return self.packets_us / self.flits_us - 1

    @property
    def row(self) -> str:
        return (
            f"| {self.name} | {self.flits_us:.1f} | {self.packets_us:.1f} | {self.error:+.1%} "
            f"| {self.flits_s:.2f} | {self.packets_s:.2f} | {self.flits_s / self.packets_s:.1f} |"
        )


def measured(name: str, collective: str, algorithm: str, channels: int, size_bytes: int) -> Pair:
    """Times without data, on all cores."""
    machine = towpath.load(name)
    times_us, walls_s = [], []
    for network in ("flits", "packets"):
        begin = time.perf_counter()
        result = machine.run(
            collective, size_bytes=size_bytes, algorithm=algorithm, protocol="Simple",
            channels=channels, data=False, network=network,
        )  # fmt: skip
        walls_s.append(time.perf_counter() - begin)
        times_us.append(result.time_us)
    case = f"{name} {algorithm} {collective}, {channels} channels, {size_bytes} B"
    return Pair(case, *times_us, *walls_s)


def random_pair(draw: random.Random) -> Pair | None:
    """A random case; None where there is no such schedule."""
    name = draw.choice(tuple(MACHINES))
    collective = draw.choice(COLLECTIVES)
    algorithm = draw.choice([known.name for known in towpath.algorithms(collective)])
    channels, size_bytes = draw.choice((1, 2, 4)), 1 << draw.randrange(10, MACHINES[name])
    try:
        return measured(name, collective, algorithm, channels, size_bytes)
    except ValueError:
        return None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    draw = random.Random(options.seed)
    pairs: list[Pair] = []
    while len(pairs) < options.cases:
        pair = random_pair(draw)
        if pair is not None:
            pairs.append(pair)
            print(f"\r{len(pairs)} of {options.cases}", end="", flush=True)
    errors = sorted(abs(pair.error) for pair in pairs)
    print(
        f"\r{len(pairs)} random cases: error median {statistics.median(errors):.1%}, "
        f"90th percentile {errors[9 * len(errors) // 10]:.1%}, worst {errors[-1]:.1%}; "
        f"{sum(p.flits_s for p in pairs):.0f} s flit by flit, "
        f"{sum(p.packets_s for p in pairs):.0f} s packet by packet"
    )
    print("| case | flits, us | packets, us | error | flits, s | packets, s | faster |")
    print("|---|---:|---:|---:|---:|---:|---:|")
    for pair in [measured(*case) for case in NAMED]:
        print(pair.row)
    print("The three with the largest errors:")
    for pair in sorted(pairs, key=lambda pair: -abs(pair.error))[:3]:
        print(pair.row)


if __name__ == "__main__":
    main()
