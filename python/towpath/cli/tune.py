# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""`towpath tune`: times the candidates on a machine, and chooses by one rule."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from towpath.cli import groups
from towpath.cli.library_options import LIBRARY, library_from
from towpath.cli.machine import chip_cluster, cluster, one_setting
from towpath.cli.options import (
    MACHINE,
    AsJson,
    Jobs,
    Live,
    Machine,
    OutFolder,
    Scheduler,
    errors_name_options,
    given,
    machine_option,
    refuse,
    request_options,
    takes,
)
from towpath.cli.output_file import (
    check_output,
    command_line,
    deliver,
    json_text,
    note,
    results_folder,
)
from towpath.errors import ConfigError, Interruption, quoted
from towpath.files import write_text

if TYPE_CHECKING:
    from towpath.api.cluster import Cluster
    from towpath.collectives.nccl.imitation import Library
    from towpath.tuning.collective import Tuning

app = groups.group("Search the best schedule by size, or packets on links.")

_NOT_WITH_AS = (
    "is for Towpath's own candidates; with --as, --env NCCL_PROTO=LL bends those of the library"
)
Csv = Annotated[
    Path | None,
    typer.Option("--csv", help="write a configuration of NCCL's tuner plugin to this file"),
]
Xml = Annotated[
    Path | None, typer.Option("--xml", help="folder for the chosen schedules as MSCCL XML")
]
RunAs = Annotated[
    str | None,
    typer.Option("--as", metavar="LIBRARY", help="the candidates of this library: nccl, rccl"),
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
    """Find the best packets and window for a chip-to-chip link.

    The search also covers the sync words and the number of channels.
    """
    from towpath.cli.progress import bar
    from towpath.pages.ethernet_study_page import tune_ethernet_page
    from towpath.pages.provenance import provenance
    from towpath.studies.sweep import how_to_resume

    cluster = chip_cluster(machine)
    cluster.require_links()
    folder = results_folder(out, f"tune-ethernet-{cluster.name}")
    file = folder / "points.jsonl"
    context.ensure_object(Interruption).sentence = how_to_resume(file)
    tuning = cluster.tune_links(file=file, jobs=jobs, progress=bar)
    title = f"How to use the links of {cluster.name}"
    made_with = provenance([cluster.spec])
    page = tune_ethernet_page(title, command_line(), tuning.answers)
    deliver(tuning.to_dict(), page, folder, as_json, made_with=made_with)


@app.command("engine")
def engine(
    name: Annotated[str, typer.Argument(metavar="ENGINE", help="vllm, sglang or trtllm")],
    machine: Annotated[str, machine_option("a GPU host: a name or a file")] = "dgx-h100",
    gpus: Annotated[str, typer.Option("--gpus", help="numbers of GPUs")] = "2,4,8",
    sizes: Annotated[str, typer.Option(help="1K:256M, or several: 64K,1M")] = "1K:256M",
    limits: Annotated[
        Path | None, typer.Option("--limits", help="write the engine's own table to this file")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Find where an inference engine should change its all-reduce."""
    from dataclasses import asdict

    from towpath.collectives.engines import ENGINES
    from towpath.names import chosen
    from towpath.specs import catalogue
    from towpath.specs.sizes import parse_sizes
    from towpath.tuning.crossovers import crossovers, limits_of, lines_of

    name = chosen("engine", name, ENGINES, {})
    check_output(limits)
    if limits is not None:
        limits_of(name, [])
    spec = catalogue.load(machine, hosts=1)
    counts = _counts("--gpus", gpus, spec.gpus_per_host)
    found = [crossovers(spec, name, each, parse_sizes(sizes)) for each in counts]
    if limits is not None:
        write_text(limits, json.dumps(limits_of(name, found), indent=1) + "\n")
    if as_json:
        named = {"machine": spec.name, "engine": name, "gpus": [asdict(each) for each in found]}
        print(json_text(named))
    else:
        print(f"# all_reduce of {name} on {spec.name}, in a CUDA graph")
        print("\n".join(lines_of(found)))


# --- collectives ----------------------------------------------------------------------------------


@takes(
    size=MACHINE, variables={"env": LIBRARY["env"]},
    options=request_options("iterations", "warmup", "timeout_s", "pin", "network"),
)  # fmt: skip
def collective(
    size: dict[str, Any],
    variables: dict[str, Any],
    options: dict[str, Any],
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
            help="protocols to try; default: Simple,LL,LL128 on GPUs, otherwise Simple",
        ),
    ] = None,
    run_as: RunAs = None,
    csv: Csv = None,
    xml: Xml = None,
    out: OutFolder = None,
    jobs: Jobs = 0,
    scheduler: Scheduler = None,
    as_json: AsJson = False,
) -> None:
    """Find the fastest algorithm, protocol and channels by size.

    Every candidate is timed.
    """
    from towpath import GpuCluster, tune_live
    from towpath.cli.progress import bar
    from towpath.pages.provenance import provenance
    from towpath.pages.tune_collective_page import tune_collective_page
    from towpath.specs.sizes import parse_sizes
    from towpath.studies.sweep import how_to_resume

    name = context.info_name or ""
    _check_place(machine, live, {**size, **given(scheduler=scheduler)}, options)
    _check_exports(name, csv, xml)
    candidates = given(
        channels=None if channels is None else _channels(channels),
        protocols=None if protocol is None else _protocols(protocol),
    )  # fmt: skip
    asked = {"size_bytes": parse_sizes(sizes), "progress": bar, **candidates, **options}
    with errors_name_options():
        loaded = None if machine is None else _loaded(machine, size, name)
        library = _library(loaded or live, run_as, {**variables, **candidates}, csv)
        folder = results_folder(out, f"tune-{name}-{loaded.name if loaded else f'live-{live}'}")
        if loaded is None:
            tuning = tune_live(name, ranks=live or 0, **asked)
        else:
            file = folder / "points.jsonl"
            context.ensure_object(Interruption).sentence = how_to_resume(file)
            sources = None
            if library is not None and run_as is not None and isinstance(loaded, GpuCluster):
                sources = loaded.imitate(library).candidates(name, asked["size_bytes"])
            tuning = loaded.tune(
                name, file=file, jobs=jobs, scheduler=scheduler, sources=sources, **asked
            )
    page = tune_collective_page(tuning, command_line())
    made_with = provenance([loaded.spec] if loaded else [])
    deliver(tuning.to_dict(), page, folder, as_json, made_with=made_with)
    if csv is not None:
        _write_csv(loaded, library, tuning, csv)
    if xml is not None:
        _write_xml(tuning, xml)


def _loaded(machine: str, size: dict[str, Any], collective: str) -> Cluster:
    """The machine, which must have ranks. Called before a folder is created."""
    settings = one_setting(size.pop("settings", None))
    loaded = cluster(machine, settings=settings, **size)
    loaded._options_for(None, None, collective)
    return loaded


def _check_place(
    machine: str | None, live: int | None, simulated: dict[str, Any], options: dict[str, Any]
) -> None:
    """Rejects options that have no effect.

    Raises:
        ConfigError: an option has no effect, or the number of places is not one.
    """
    if (machine is None) == (live is None):
        raise ConfigError("give either --machine NAME to simulate or --live RANKS to run here")
    if machine is None:
        network = given(network=options.get("network"))
        refuse(simulated | network, "applies to simulations; --live measures on this host")
    else:
        names = {name.removesuffix("_s"): None for name in options if name != "network"}
        refuse(names, "requires --live; a simulated call takes the same time each time")


def _library(
    place: Any, run_as: str | None, options: dict[str, Any], csv: Path | None
) -> Library | None:
    """The library that supplies the candidates or reads the file; None if no library is involved.

    Args:
        place: the machine, or the number of live ranks.
        run_as: the name of the library.
        options: the given `env`, `channels` and `protocols`.
        csv: the file for NCCL's tuner plugin.

    Raises:
        ConfigError: there are no GPUs, or the options exclude each other.
    """
    env = options.get("env")
    if run_as is None and csv is None:
        refuse({"env": env} if env else {}, "requires --as")
        return None
    option = "--csv" if run_as is None else "--as"
    if not getattr(place, "has_nccl", False):
        where = f"{place} processes of this host" if isinstance(place, int) else repr(place.name)
        raise ConfigError(f"{option} applies to GPUs, where NCCL runs; this is {where}")
    if run_as is not None:
        names = {"channels": "channels", "protocols": "protocol"}
        refuse({names[each]: None for each in names if each in options}, _NOT_WITH_AS)
        if csv is not None and run_as.lower() != "nccl":
            raise ConfigError(
                "--csv writes a file for NCCL's tuner plugin, which --as rccl cannot use; "
                "leave one of them out"
            )
    return library_from(run_as or "nccl", {"env": env} if env else {})


def _write_xml(tuning: Tuning, xml: Path) -> None:
    """Writes the chosen schedules as MSCCL XML."""
    from towpath.tuning.export import write_xml

    for sentence in write_xml(tuning, xml):
        note(f"towpath: {sentence}")


def _check_exports(collective: str, csv: Path | None, xml: Path | None) -> None:
    """Checks that the files can be written, before minutes of work."""
    from towpath.tuning.export import check_nccl, check_xml

    if csv is not None:
        check_nccl(collective)
        check_output(csv)
    if xml is not None:
        check_xml(xml, collective)


def _write_csv(machine: Any, library: Library | None, tuning: Tuning, csv: Path) -> None:
    """Writes a configuration of NCCL's example tuner plugin."""
    from towpath.api.library import nccl_advice
    from towpath.tuning.export import nccl_lines

    advice = nccl_advice(machine, tuning.collective, tuning.sizes_bytes, library or "nccl")
    write_text(csv, "\n".join(nccl_lines(tuning, advice)) + "\n")


for _name in groups.COLLECTIVES:
    app.command(_name)(collective)


def _channels(text: str) -> tuple[int, ...]:
    return _counts("--channels", text, CHANNELS_MAX)


def _counts(option: str, text: str, most: int) -> tuple[int, ...]:
    allowed = {str(number) for number in range(1, most + 1)}
    parts = {part.strip() for part in text.split(",")}
    if not parts <= allowed:
        raise ConfigError(
            f"{option} is {quoted(text)}; it must be numbers from 1 to {most}, such as 1,2,4"
        )
    return tuple(sorted(map(int, parts)))


def _protocols(text: str) -> tuple[str, ...]:
    from towpath.schedules.words import protocol_named

    return tuple(dict.fromkeys(protocol_named(part, "--protocol") for part in text.split(",")))
