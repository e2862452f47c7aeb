# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""`towpath perf`: live collectives, timed as OSU's benchmarks and nccl-tests time theirs."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Annotated

import typer

from towpath.cli.options import AsJson
from towpath.errors import ConfigError

_DEFAULT_SIZES = "8:64M:4"


def perf(
    collective: Annotated[str, typer.Argument(help="all_reduce, broadcast, ..., barrier")],
    ranks: Annotated[
        int, typer.Option("--ranks", metavar="N", min=1, help="processes of this host")
    ] = 2,
    sizes: Annotated[
        str, typer.Option("--sizes", metavar="SIZES", help="a list or a range of bytes")
    ] = _DEFAULT_SIZES,
    symmetric: Annotated[
        bool, typer.Option("--symmetric", help="arrays on the symmetric heap: no copies first")
    ] = False,
    pin: Annotated[bool, typer.Option("--pin/--no-pin", help="a core for each rank")] = True,
    as_json: AsJson = False,
) -> None:
    """Time a live collective: median, 99th percentile, spread, and how near the cores are."""
    from towpath.collectives.live_perf import COLLECTIVES, measure_live
    from towpath.specs.sizes import parse_sizes

    name = collective.replace("-", "_")
    if name not in COLLECTIVES:
        raise ConfigError(f"collective is '{collective}'; allowed are {', '.join(COLLECTIVES)}")
    sizes_bytes = [0] if name == "barrier" else parse_sizes(sizes)
    rows = measure_live(name, sizes_bytes, ranks, symmetric=symmetric, pin=pin)
    if as_json:
        print(
            json.dumps({"ranks": ranks, "symmetric": symmetric, "rows": [asdict(r) for r in rows]})
        )
        return
    arrays = "on the symmetric heap" if symmetric else "private"
    print(f"# {name} float32, {ranks} ranks of this host, arrays {arrays}; times in us")
    print(f"{'bytes':>12} {'median':>10} {'p99':>10} {'spread':>7} {'busbw GB/s':>11} signal ns")
    for row in rows:
        before, after = row.signal_ns
        print(
            f"{row.size_bytes:>12} {row.median_us:>10.2f} {row.p99_us:>10.2f} {row.spread:>6.0%} "
            f"{row.bus_gb_per_s:>11.2f} {before:.0f}, {after:.0f}"
        )
    print("# signal: a barrier's median before and after; where it changes, cores were moved")
