# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""`towpath replay`: a NoC trace on a described chip, predicted beside measured."""

from __future__ import annotations

import json
import statistics
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from towpath.cli.output_file import check_output, command_line
from towpath.errors import ConfigError, quoted

if TYPE_CHECKING:
    from towpath.studies.replay import Replay


def replay(
    trace: Annotated[Path, typer.Argument(help="a NoC trace, JSON as tt-npe reads it")],
    machine: Annotated[str, typer.Option(help="the chip: a name or a file")] = "wormhole",
    pace: Annotated[
        str,
        typer.Option(
            help="gaps: each call as long after the one before as software takes; "
            "times: not before its time in the trace"
        ),
    ] = "gaps",
    seed: Annotated[int, typer.Option(min=1, help="of what the chip does at random")] = 1,
    as_json: Annotated[
        bool, typer.Option("--json", help="one JSON object: cores and requests, too")
    ] = False,
    out: Annotated[Path | None, typer.Option(help="write an HTML report there")] = None,
) -> None:
    """Replays the requests of a traced program: how long on this chip, and where they wait."""
    from towpath.specs import catalogue
    from towpath.studies.noc_trace import load_noc_trace
    from towpath.studies.replay import PACES
    from towpath.studies.replay import replay as run

    check_output(out)
    if pace not in PACES:
        raise ConfigError(f"--pace is {quoted(pace)}; allowed are {', '.join(PACES)}")
    spec = catalogue.load_chip(machine)
    loaded = load_noc_trace(trace, (spec.grid.width, spec.grid.height))
    try:
        replayed = run(loaded, spec, pace=pace, seed=seed, samples_links=out is not None)
    except RuntimeError as error:  # its traffic hangs on this chip
        raise ConfigError(str(error), file=str(trace)) from None
    print(json.dumps(replayed.to_dict()) if as_json else text(replayed))
    if out is not None:
        from towpath.pages.replay_page import write_replay

        write_replay(replayed, command_line(), out)
        print(f"report: {out}", file=sys.stderr)


def text(replayed: Replay) -> str:
    """The figures, the waits and the cores as a table."""
    from towpath.studies.replay import FIGURE_NAMES, PHASES

    shown = replayed.to_dict()
    lines = [
        f"{replayed.name} on {replayed.chip}: {len(replayed.requests)} requests of "
        f"{sum(core.end_cycle_measured > core.begin_cycle for core in replayed.cores)} processors",
        "",
        f"{'cycles':<28} {'predicted':>10} {'measured':>10}   error",
    ]
    for name, words in FIGURE_NAMES.items():
        predicted, measured = shown["predicted"][name], shown["measured"][name]
        lines.append(f"{words:<28} {predicted:>10} {measured:>10} {_error(predicted, measured)}")
    lines += ["", f"{'cycles per request':<28} {'median':>10} {'longest':>10}"]
    for number, words in enumerate(PHASES):
        cycles = [request.phase_cycles[number] for request in replayed.requests]
        median = statistics.median_low(cycles) if cycles else 0
        lines.append(f"{words:<28} {median:>10} {max(cycles, default=0):>10}")
    lines += ["", f"{'core':<20} {'begin':>7} {'last event':>10} {'measured':>10}   error"]
    for core in replayed.cores:
        predicted = core.end_cycle_predicted - core.begin_cycle
        measured = core.end_cycle_measured - core.begin_cycle
        if measured:
            lines.append(
                f"{core.name:<20} {core.begin_cycle:>7} {core.end_cycle_predicted:>10} "
                f"{core.end_cycle_measured:>10} {_error(predicted, measured)}"
            )
    return "\n".join(lines)


def _error(predicted: int, measured: int) -> str:
    return f"{100 * (predicted / measured - 1):+7.1f}%" if measured else "      -"
