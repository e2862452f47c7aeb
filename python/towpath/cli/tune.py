# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""`towpath tune`: candidates searched on a machine, and what one rule makes of them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from towpath.cli import groups
from towpath.cli.library_options import RunAs, Variables, library_from
from towpath.cli.machine import chip_cluster, one_setting
from towpath.cli.options import (
    AsJson,
    CompleteFrom,
    Hosts,
    Iterations,
    Jobs,
    Live,
    Machine,
    OutFolder,
    Pin,
    Ranks,
    RanksPerHost,
    Scheduler,
    Settings,
    Timeout,
    Warmup,
    Without,
    errors_name_options,
    given,
    live_options,
    machine_option,
    refuse,
)
from towpath.cli.output_file import check_output, command_line, deliver, note, results_folder
from towpath.cli.run_options import NetworkModel
from towpath.errors import ConfigError, Interruption, quoted

if TYPE_CHECKING:
    from towpath.cli.tune_library import LibrarySide
    from towpath.tuning.collective import Tuning
    from towpath.tuning.target import TuneTarget

app = groups.group("What to use on a machine: schedules by size, packets on links.")

Csv = Annotated[
    Path | None,
    typer.Option("--csv", help="write a configuration of NCCL's tuner plugin to this file"),
]
Xml = Annotated[
    Path | None, typer.Option("--xml", help="folder for the chosen schedules as MSCCL XML")
]
CHANNELS_MAX = 64


@app.command("ethernet")
def ethernet(
    context: typer.Context,
    machine: Annotated[str, machine_option("chips with links: a name or a file")] = "t3000",
    out: OutFolder = None,
    jobs: Jobs = 0,
    as_json: AsJson = False,
) -> None:
    """How to use a link between chips: packet size, bytes outstanding, sync words, channels."""
    from towpath.cli.progress import bar
    from towpath.pages.provenance import provenance
    from towpath.pages.tune_ethernet_page import tuning_text, write_tuning
    from towpath.studies.sweep import how_to_resume

    cluster = chip_cluster(machine)
    cluster.require_links()
    folder = results_folder(out, f"tune-ethernet-{cluster.name}")
    file = folder / "points.jsonl"
    context.ensure_object(Interruption).sentence = how_to_resume(file)
    tuning = cluster.tune_links(file=file, jobs=jobs, progress=bar)
    title = f"How to use the links of {cluster.name}"
    made_with = provenance([cluster.spec])
    deliver(
        tuning.to_dict(), "\n".join(tuning_text(tuning.answers)), folder, as_json,
        lambda: write_tuning(
            title, command_line(), tuning.answers, folder / "study.html", made_with=made_with
        ),
        made_with=made_with,
    )  # fmt: skip


# --- collectives ----------------------------------------------------------------------------------


def collective(
    context: typer.Context,
    machine: Machine = None,
    live: Live = None,
    sizes: Annotated[str, typer.Option(help="1K:16M, 64M, 8:1G:4 or 8,64,512")] = "1K:16M",
    channels: Annotated[
        str | None, typer.Option(help="numbers of channels to try; default: up to the machine's")
    ] = None,
    protocol: Annotated[
        str | None,
        typer.Option(
            "--protocol",
            "--protocols",
            help="protocols to try; default: Simple,LL,LL128 on GPUs, otherwise Simple",
        ),
    ] = None,
    run_as: RunAs = None,
    env: Variables = None,
    hosts: Hosts = None,
    ranks: Ranks = None,
    ranks_per_host: RanksPerHost = None,
    complete_from: CompleteFrom = None,
    settings: Settings = None,
    without: Without = None,
    iterations: Iterations = None,
    warmup: Warmup = None,
    timeout: Timeout = None,
    pin: Pin = None,
    csv: Csv = None,
    xml: Xml = None,
    out: OutFolder = None,
    jobs: Jobs = 0,
    scheduler: Scheduler = None,
    network: NetworkModel = None,
    as_json: AsJson = False,
) -> None:
    """Which algorithm, protocol and channels at which size; every candidate is timed."""
    from towpath.cli.progress import bar
    from towpath.cli.tune_library import library_side
    from towpath.specs.sizes import parse_sizes
    from towpath.studies.sweep import SweepOptions, how_to_resume
    from towpath.tuning.target import TuneRequest, find_target, tune

    name = context.info_name or ""
    if live is not None:
        refuse(given(scheduler=scheduler), "is for simulations; --live measures on this host")
    measured = live_options(live, iterations=iterations, warmup=warmup, timeout_s=timeout, pin=pin)
    _check_exports(name, csv, xml)
    request = TuneRequest(
        machine, live, hosts, ranks, ranks_per_host, complete_from,
        settings=one_setting(settings) or None, without=tuple(without or ()) or None,
        channels=None if channels is None else _channels(channels),
        protocols=None if protocol is None else _protocols(protocol), network=network,
    )  # fmt: skip
    with errors_name_options():
        target = find_target(request, name)
    side = library_side(request, target, library_from(run_as, env), csv)
    sizes_bytes = parse_sizes(sizes)
    folder = results_folder(out, f"tune-{name}-{target.name}")
    file = folder / "points.jsonl"
    if target.simulator is not None:
        context.ensure_object(Interruption).sentence = how_to_resume(file)
    tuning = tune(
        target, name, sizes_bytes, file,
        SweepOptions(jobs=jobs, scheduler=scheduler, progress=bar),
        live_options=measured,
        sources=None if side is None else side.sources(name, sizes_bytes),
    )  # fmt: skip
    _deliver_tuning(tuning, target, folder, as_json)
    _export(tuning, side, csv, xml)


def _deliver_tuning(tuning: Tuning, target: TuneTarget, folder: Path, as_json: bool) -> None:
    from towpath.pages.provenance import provenance
    from towpath.pages.tune_collective_page import tuning_text, write_tuning

    made_with = provenance([] if target.simulator is None else [target.simulator.site.spec])
    deliver(
        tuning.to_dict(), "\n".join(tuning_text(tuning)), folder, as_json,
        lambda: write_tuning(tuning, command_line(), folder / "study.html", made_with=made_with),
        made_with=made_with,
    )  # fmt: skip


def _check_exports(collective: str, csv: Path | None, xml: Path | None) -> None:
    """Before minutes of work: whether the files can be written."""
    from towpath.tuning.export import check_nccl, check_xml

    if csv is not None:
        check_nccl(collective)
        check_output(csv)
    if xml is not None:
        check_xml(xml, collective)


def _export(tuning: Tuning, side: LibrarySide | None, csv: Path | None, xml: Path | None) -> None:
    from towpath.tuning.export import write_xml

    if csv is not None and side is not None:
        side.write_csv(tuning, csv)
    if xml is not None:
        for sentence in write_xml(tuning, xml):
            note(f"towpath: {sentence}")


for _name in groups.COLLECTIVES:
    app.command(_name)(collective)


def _channels(text: str) -> tuple[int, ...]:
    allowed = {str(number) for number in range(1, CHANNELS_MAX + 1)}
    parts = {part.strip() for part in text.split(",")}
    if not parts <= allowed:
        raise ConfigError(
            f"--channels is {quoted(text)}; allowed are numbers from 1 to {CHANNELS_MAX}: 1,2,4"
        )
    return tuple(sorted(map(int, parts)))


def _protocols(text: str) -> tuple[str, ...]:
    from towpath.schedules.words import protocol_named

    return tuple(dict.fromkeys(protocol_named(part, "--protocol") for part in text.split(",")))
