# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""`towpath replay`: NoC traces on a described chip, with predicted and measured times."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from towpath.cli.options import AsJson, Jobs, OutPage, Seed, machine_option
from towpath.cli.output_file import command_line, json_text, page_output
from towpath.errors import ConfigError

if TYPE_CHECKING:
    from towpath.specs.chip_spec import ChipSpec
    from towpath.studies.replay import Replay
    from towpath.studies.replay_folder import FolderReplay


PaceWord = Literal["gaps", "times"]


def replay(
    trace: Annotated[
        Path, typer.Argument(help="a NoC trace, JSON as tt-npe reads it, or a folder of traces")
    ],
    machine: Annotated[str, machine_option("a chip: a name or a file")] = "wormhole",
    pace: Annotated[
        PaceWord,
        typer.Option(
            help="gaps: each call as long after the one before as software takes; "
            "times: not before its time in the trace"
        ),
    ] = "gaps",
    seed: Seed = 1,
    jobs: Jobs = 0,
    as_json: AsJson = False,
    out: OutPage = None,
) -> None:
    """Replay the requests of a traced program on a chip."""
    from towpath.pages.html import write_page
    from towpath.pages.provenance import provenance
    from towpath.pages.replay_page import replay_page
    from towpath.pages.text import page_text
    from towpath.specs import catalogue

    if trace.is_dir() and out is not None:
        raise ConfigError("is a folder; --out applies to a single trace", file=str(trace))
    output = page_output(out)
    spec = catalogue.load_chip(machine)
    made_with = provenance([spec])
    if trace.is_dir():
        found = _replay_folder(trace, spec, pace, seed, jobs)
        print(json_text(found.to_dict(), made_with) if as_json else folder_text(found))
        if found.problems:
            raise typer.Exit(2)
        return
    replayed = _replay_one(trace, spec, pace, seed, samples_links=output is not None)
    page = replay_page(replayed, command_line())
    text = json_text(replayed.to_dict(), made_with)
    facts = f"{len(replayed.requests)} requests of {len(replayed.cores)} processors"
    print(text if as_json else f"# {page.title}: {facts}\n\n{page_text(page)}")
    if output is not None:
        output.write(lambda file: write_page(page, file, made_with), text)


def _replay_one(
    trace: Path, spec: ChipSpec, pace: PaceWord, seed: int, samples_links: bool
) -> Replay:
    from towpath.studies.noc_trace import load_noc_trace
    from towpath.studies.replay import replay as replay_trace

    loaded = load_noc_trace(trace, (spec.grid.width, spec.grid.height))
    try:
        return replay_trace(loaded, spec, pace=pace, seed=seed, samples_links=samples_links)
    except RuntimeError as error:  # its traffic hangs on this chip
        raise ConfigError(str(error), file=str(trace)) from None


def _replay_folder(
    folder: Path, spec: ChipSpec, pace: PaceWord, seed: int, jobs: int
) -> FolderReplay:
    from towpath.cli.progress import bar
    from towpath.studies.replay_folder import replay_folder

    return replay_folder(folder, spec, pace=pace, seed=seed, jobs=jobs, progress=bar)


def folder_text(found: FolderReplay) -> str:
    """One line per trace, and a summary."""
    width = max(len(trace.name) for trace in found.traces)
    heading = (
        f"{'longest core, cycles':<{width}} {'requests':>9} {'predicted':>10} {'measured':>10}"
    )
    lines = [f"{heading}   error"]
    for trace in found.traces:
        if trace.problem is not None:
            lines.append(f"{trace.name:<{width}} {trace.problem}")
            continue
        predicted, measured = trace.predicted_cycles, trace.measured_cycles
        lines.append(
            f"{trace.name:<{width}} {trace.requests:>9} {predicted:>10} {measured:>10} "
            f"{_error(predicted, measured)}"
        )
    summary = found.summary()
    lines += ["", f"{summary['traces']} traces on {found.chip}"]
    if summary["problems"]:
        lines[-1] += f", {summary['problems']} of them cannot be replayed"
    if summary["median_error_pct"] is not None:
        lines[-1] += (
            f"; absolute error: median {summary['median_error_pct']:.1f}%, "
            f"worst {summary['worst_error_pct']:.1f}%"
        )
    return "\n".join(lines)


def _error(predicted: int, measured: int) -> str:
    return f"{100 * (predicted / measured - 1):+7.1f}%" if measured else "      -"
