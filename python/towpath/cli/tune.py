# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""`towpath tune`: candidates searched on a machine, and what one rule makes of them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.progress import track

from towpath.cli.options import (
    AsJson,
    CompleteFrom,
    Hosts,
    Iterations,
    Jobs,
    Machine,
    Ranks,
    RanksPerHost,
    Timeout,
    Warmup,
)
from towpath.cli.output_file import check_output, command_line, deliver, results_folder
from towpath.errors import ConfigError, Interruption, quoted

if TYPE_CHECKING:
    from towpath.collectives.live import LiveOptions
    from towpath.schedules.schedule_source import ScheduleSource
    from towpath.tuning.collective import Timing

app = typer.Typer(
    no_args_is_help=True, help="What to use on a machine: schedules by size, packets on links."
)

_COLLECTIVES = (
    "all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce", "all_to_all",
)  # fmt: skip
_PROTOCOLS = ("Simple", "LL", "LL128")
CHANNELS_MAX = 64


@app.command("ethernet")
def ethernet(
    context: typer.Context,
    machine: Annotated[str, typer.Option(help="chips with links: a name or a file")] = "t3000",
    out: Annotated[
        Path | None, typer.Option(help="folder of the results; default: tune-ethernet-NAME")
    ] = None,
    jobs: Jobs = 0,
    as_json: AsJson = False,
) -> None:
    """How to use a link between chips: packet size, bytes outstanding, sync words, channels."""
    from towpath.cli.progress import bar
    from towpath.pages.tune_ethernet_page import tuning_text, write_tuning
    from towpath.studies.sweep import SweepOptions, how_to_resume
    from towpath.tuning.ethernet import tune_ethernet
    from towpath.tuning.link_bench import LinkBench

    bench = LinkBench.on(machine)
    folder = results_folder(out, f"tune-ethernet-{bench.name}")
    file = folder / "points.jsonl"
    context.ensure_object(Interruption).sentence = how_to_resume(file)
    tuning = tune_ethernet(bench, file, SweepOptions(jobs=jobs, title="runs", progress=bar))
    title = f"How to use the links of {bench.name}"
    deliver(
        tuning.to_dict(), "\n".join(tuning_text(tuning.answers)), folder, as_json,
        lambda: write_tuning(title, command_line(), tuning.answers, folder / "study.html"),
    )  # fmt: skip


# --- collectives ----------------------------------------------------------------------------------


def collective(
    context: typer.Context,
    machine: Machine = None,
    live: Annotated[
        int | None, typer.Option(metavar="RANKS", help="between so many processes here instead")
    ] = None,
    sizes: Annotated[str, typer.Option(help="1K:16M, 64M, 8:1G:4 or 8,64,512")] = "1K:16M",
    channels: Annotated[
        str | None, typer.Option(help="numbers of channels to try; default: up to the machine's")
    ] = None,
    protocols: Annotated[
        str | None, typer.Option(help="to try; default: Simple,LL,LL128 on GPUs, otherwise Simple")
    ] = None,
    hosts: Hosts = None,
    ranks: Ranks = None,
    ranks_per_host: RanksPerHost = None,
    complete_from: CompleteFrom = None,
    iterations: Iterations = 20,
    warmup: Warmup = 5,
    timeout: Timeout = 30.0,
    csv: Annotated[
        Path | None, typer.Option(help="write a configuration of NCCL's tuner plugin there")
    ] = None,
    xml: Annotated[
        Path | None, typer.Option(help="folder for the chosen schedules as MSCCL XML")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="folder of the results; default: tune-COLLECTIVE-NAME")
    ] = None,
    jobs: Jobs = 0,
    as_json: AsJson = False,
) -> None:
    """Which algorithm, protocol and channels at which size; every candidate is timed."""
    from towpath.cli.progress import bar
    from towpath.collectives.live import LiveOptions
    from towpath.pages.tune_collective_page import tuning_text, write_tuning
    from towpath.specs.sizes import parse_sizes
    from towpath.studies.sweep import SweepOptions, how_to_resume
    from towpath.tuning.collective import Tuning, candidates, simulated_timings
    from towpath.tuning.export import check_nccl, check_xml, nccl_lines, write_xml
    from towpath.tuning.target import TuneRequest, find_target

    name = context.info_name or ""
    if csv is not None:
        check_nccl(name)
        check_output(csv)
    if xml is not None:
        check_xml(xml, name)
    target = find_target(TuneRequest(
        machine, live, hosts, ranks, ranks_per_host, complete_from,
        channels=None if channels is None else _numbers(channels),
        protocols=None if protocols is None else _protocols(protocols),
    ))  # fmt: skip
    if csv is not None and not target.is_gpus:
        raise ConfigError(f"--csv is for GPUs, where NCCL runs; this is for {target.text}")
    sizes_bytes = sorted(set(parse_sizes(sizes)))
    sources, notes = candidates(name, target.options)
    folder = results_folder(out, f"tune-{name}-{target.name}")
    if target.simulator is None:
        timings = _timed_live(sources, sizes_bytes, LiveOptions(iterations, warmup, timeout))
    else:
        file = folder / "points.jsonl"
        context.ensure_object(Interruption).sentence = how_to_resume(file)
        timings, problems = simulated_timings(
            target.simulator, sources, sizes_bytes, file, SweepOptions(jobs=jobs, progress=bar)
        )
        notes += problems
    tuning = Tuning(name, target.text, target.kind, len(sources), timings, notes)
    deliver(
        tuning.to_dict(), "\n".join(tuning_text(tuning)), folder, as_json,
        lambda: write_tuning(tuning, command_line(), folder / "study.html"),
    )  # fmt: skip
    if csv is not None:
        csv.write_text("\n".join(nccl_lines(tuning)) + "\n", encoding="utf-8")
    if xml is not None:
        for sentence in write_xml(tuning, xml):
            print(f"towpath: {sentence}", file=sys.stderr)


for _name in _COLLECTIVES:
    app.command(_name)(collective)


def _timed_live(
    sources: list[ScheduleSource], sizes_bytes: list[int], options: LiveOptions
) -> list[Timing]:
    from towpath.tuning.collective import live_timings

    console = Console(stderr=True)
    timings = live_timings(sources, sizes_bytes, options)
    return list(
        track(
            timings, "live", len(sources) * len(sizes_bytes), console=console, transient=True,
            disable=not console.is_terminal,
        )
    )  # fmt: skip


# --- options --------------------------------------------------------------------------


def _numbers(text: str) -> tuple[int, ...]:
    allowed = {str(number) for number in range(1, CHANNELS_MAX + 1)}
    parts = {part.strip() for part in text.split(",")}
    if not parts <= allowed:
        raise ConfigError(
            f"--channels is {quoted(text)}; allowed are numbers from 1 to {CHANNELS_MAX}: 1,2,4"
        )
    return tuple(sorted(map(int, parts)))


def _protocols(text: str) -> tuple[str, ...]:
    asked = tuple(dict.fromkeys(part.strip() for part in text.split(",")))
    for protocol in asked:
        if protocol not in _PROTOCOLS:
            raise ConfigError(
                f"--protocols names {quoted(protocol)}; allowed are {', '.join(_PROTOCOLS)}"
            )
    return asked
