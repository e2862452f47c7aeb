# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""`towpath machines`, `algorithms`, `show` and `routes`: available machines and algorithms."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from towpath.cli.machine import any_machine, chip_cluster, one_setting
from towpath.cli.options import (
    AsJson,
    CompleteFrom,
    Hosts,
    Ranks,
    Seed,
    Settings,
    Without,
    complete_machine,
    given,
)
from towpath.cli.output_file import check_output, note, print_json
from towpath.errors import ConfigError
from towpath.files import write_text

# Commands for each kind besides `show` and, where collectives run, `run` and `tune`.
_COMMANDS = {
    "gpu_cluster": ("bench exchange", "bench penny"),
    "chip_cluster": ("bench ethernet", "tune ethernet", "routes"),
    "mailbox_cluster": ("bench mailbox",),
    "chip": ("bench noc-vc", "bench pcie", "replay"),
    "host": ("bench pcie",),
}


def machines(as_json: AsJson = False) -> None:
    """List the machines that come with Towpath."""
    import towpath
    from towpath.api.cluster import Cluster
    from towpath.api.machine import classes
    from towpath.specs.kinds import KINDS

    found = towpath.machines()
    if as_json:
        listed = [
            {"name": machine.name, "kind": machine.kind, "description": machine.description}
            for machine in found
        ]
        print_json(listed)
        return
    width = max(len(machine.name) for machine in found)
    for kind, of_kind in classes().items():
        on_ranks = ("run", "tune") if issubclass(of_kind, Cluster) else ()
        title = f"{KINDS[kind].plural}: {', '.join((*on_ranks, *_COMMANDS.get(kind, ()), 'show'))}"
        print(title[0].upper() + title[1:])
        for machine in found:
            if machine.kind == kind:
                print(f"  {machine.name:<{width}}  {machine.description}")
        print()
    print("A file serves as well. `towpath show NAME` prints every parameter with its source.")


def algorithms(as_json: AsJson = False) -> None:
    """List the algorithms with their costs."""
    import towpath

    found = towpath.algorithms()
    if as_json:
        listed = [
            {
                "collective": algorithm.collective,
                "name": algorithm.name,
                "cost": algorithm.cost,
                "description": algorithm.description,
            }
            for algorithm in found
        ]
        print_json(listed)
        return
    for algorithm in found:
        print(f"{algorithm.collective:<15} {algorithm.name:<26} {algorithm.cost}")


def show(
    name: Annotated[
        str | None,
        typer.Argument(help="a machine's name or a file", autocompletion=complete_machine),
    ] = None,
    machine: Annotated[str | None, typer.Option("--machine", hidden=True)] = None,
    hosts: Hosts = None,
    ranks: Ranks = None,
    complete_from: CompleteFrom = None,
    settings: Settings = None,
    without: Without = None,
    harvest_mask: Annotated[
        int | None, typer.Option(help="chips: the rows or columns that are missing, as bits")
    ] = None,
    svg: Annotated[Path | None, typer.Option(help="draw it to this file")] = None,
    as_json: AsJson = False,
) -> None:
    """Describe a machine as text, and draw it with --svg."""
    from towpath.pages.provenance import provenance

    if (name is None) == (machine is None):
        raise ConfigError("name one machine; `towpath machines` lists those that are shipped")
    check_output(svg)
    sizes = given(
        hosts=hosts, ranks=ranks, complete_from=complete_from, harvest_mask=harvest_mask,
        settings=one_setting(settings) or None, without=without or None,
    )  # fmt: skip
    loaded = any_machine(name or machine or "", **sizes)
    if as_json:
        found = {"name": loaded.name, "kind": loaded.kind, "description": loaded.description}
        print_json({**found, "text": loaded.show()}, provenance([loaded.spec]))
    else:
        print(loaded.show())
    if svg is not None:
        write_text(svg, loaded.draw())
        note(f"drawn: {svg}")


def routes(
    words: Annotated[
        list[str],
        typer.Argument(
            metavar="MACHINE ROUTE...",
            help="a cluster of chips, and the chips of each route: t3000 0-1-2 1-2-3",
        ),
    ],
    machine: Annotated[str | None, typer.Option("--machine", hidden=True)] = None,
    buffers: Annotated[
        int, typer.Option(min=1, max=1024, help="packets that an Ethernet core can keep")
    ] = 1,
    candidates: Annotated[
        int, typer.Option(min=0, max=1_000_000_000, help="orders to try where not all can be")
    ] = 20_000,
    seed: Seed = 1,
    packet_bytes: Annotated[
        int | None,
        typer.Option("--bytes", min=16, max=1 << 17, help="run them: size of a packet per route"),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Plan static routes between chips."""
    from towpath.pages.provenance import provenance
    from towpath.studies.static_routes import parse_routes

    name, *texts = words if machine is None else [machine, *words]
    if not texts:
        raise ConfigError("name at least one route, such as 0-1-2")
    loaded = chip_cluster(name)
    planned = loaded.routes(
        parse_routes(texts), buffers_per_core=buffers, candidates_max=candidates, seed=seed,
        packet_bytes=packet_bytes,
    )  # fmt: skip
    if as_json:
        print_json(planned.to_dict(), provenance([loaded.spec]))
    else:
        print(planned.text())
