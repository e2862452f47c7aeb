# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Options that only `towpath run` has, those of nccl-tests among them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

DEFAULT_SIZES = "8:64M"
_NCCL = "as in nccl-tests"

Collective = Annotated[
    str | None,
    typer.Argument(
        metavar="COLLECTIVE",
        help="all_reduce, all_gather, reduce_scatter, broadcast, reduce, all_to_all, gather, "
        "scatter, all_to_all_v, send_recv, barrier",
    ),
]
ScheduleFile = Annotated[
    Path | None, typer.Option("--schedule", metavar="FILE", help="an MSCCL XML file instead")
]
Sizes = Annotated[
    str | None,
    typer.Option("--sizes", help=f"8:1G, 64M, 8:1G:4 or 8,64,512; default: {DEFAULT_SIZES}"),
]
Smallest = Annotated[str | None, typer.Option("-b", "--minbytes", metavar="SIZE", help=_NCCL)]
Largest = Annotated[str | None, typer.Option("-e", "--maxbytes", metavar="SIZE", help=_NCCL)]
Factor = Annotated[int | None, typer.Option("-f", "--stepfactor", metavar="N", help=_NCCL)]
Gpus = Annotated[
    int | None,
    typer.Option("-g", "--ngpus", metavar="N", min=1, help="ranks altogether, as in nccl-tests"),
]
Dtype = Annotated[
    str, typer.Option("--dtype", "-d", metavar="NAME", help="int8 ... float64, float16, bfloat16")
]
Operation = Annotated[
    str, typer.Option("--op", "-o", metavar="NAME", help="sum, prod, min, max, avg")
]
Channels = Annotated[
    int | None,
    typer.Option(
        "--channels", metavar="N", help="parallel channels; default: what the machine needs"
    ),
]
LinkFaults = Annotated[
    list[str] | None,
    typer.Option(
        "--link-fault",
        metavar="CHIP:CHANNEL,...",
        help="a link between chips that fails: loss=0.01, at=20us, every=100us, dead=5us (or "
        "forever), training=5us; may be given for several links",
    ),
]
Data = Annotated[
    bool | None,
    typer.Option("--data/--no-data", help="carry and check data in the simulation; default"),
]
Trace = Annotated[
    Path | None,
    typer.Option("--trace", metavar="FILE", help="write a Perfetto trace of --trace-size"),
]
TraceSize = Annotated[
    str | None,
    typer.Option(
        "--trace-size",
        metavar="SIZE",
        help="the size of timeline and trace; default: the largest of --sizes up to 1M",
    ),
]
FoldRanks = Annotated[
    bool | None,
    typer.Option(
        "--fold/--no-fold",
        help="without data, simulate ranks that do the same at the same time once; default",
    ),
]
Threads = Annotated[
    int | None,
    typer.Option(
        "--threads",
        metavar="N",
        help="threads of one simulation, which change no result; default: one per processor",
    ),
]
NetworkModel = Annotated[
    str | None,
    typer.Option(
        "--network",
        metavar="MODEL",
        help="networks on chips, by flits (default) or by packets: several times as fast, a few "
        "percent off",
    ),
]
Explain = Annotated[
    bool,
    typer.Option("--explain", help="how many ranks were simulated at each size, and why not fewer"),
]
