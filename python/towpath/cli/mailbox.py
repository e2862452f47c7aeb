# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""`towpath bench mailbox`: small messages on a described cluster, or between processes of this
host.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from towpath.cli.options import (
    AsJson,
    OutPage,
    given,
    machine_option,
    refuse,
)
from towpath.cli.output_file import command_line, json_text, page_output
from towpath.errors import ConfigError

if TYPE_CHECKING:
    from towpath.pages.provenance import Provenance
    from towpath.studies.page import Page

_ITERATIONS_MAX = 100_000_000
_MESSAGE_BYTES_MAX = 65_536


@dataclass(frozen=True)
class _Outcome:
    """A study as plain data and as a page, with its provenance."""

    found: dict[str, Any]
    page: Page
    made_with: Provenance


def mailbox(
    machine: Annotated[
        str | None, machine_option("a cluster with mailboxes: a name or a file")
    ] = None,
    live: Annotated[
        bool, typer.Option("--live", help="between two processes of this host instead")
    ] = False,
    iterations: Annotated[
        int | None,
        typer.Option(
            "--iterations", "-n", min=100, max=_ITERATIONS_MAX,
            help="round trips of the ping-pong; default: 1000000, live 200000, RTL 20000",
        ),
    ] = None,
    sizes: Annotated[
        str, typer.Option("--sizes", "--size", help="size of a message, up to 64K")
    ] = "32",
    seed: Annotated[
        int | None, typer.Option(metavar="N", min=0, help="seed of the simulation; default: 1")
    ] = None,
    cores: Annotated[
        str | None,
        typer.Option(metavar="A,B", help="live: pin the processes to these cores; default: 2"),
    ] = None,
    peers: Annotated[
        Path | None,
        typer.Option(help="live: where zeromq_peer and mpi_peer were built; default: build"),
    ] = None,
    engine: Annotated[
        Literal["model", "rtl"],
        typer.Option(help="the model, or instructions on RTL (`make rtl` builds it)"),
    ] = "model",
    rtl: Annotated[
        Path | None, typer.Option(help="--engine rtl: where it was built; default: build/rtl")
    ] = None,
    vcd: Annotated[
        Path | None, typer.Option(help="--engine rtl: file for a waveform of its signals")
    ] = None,
    as_json: AsJson = False,
    out: OutPage = None,
) -> None:  # fmt: skip
    """Time the ping-pong of small messages between two cores.

    The result is a histogram, a breakdown and sweeps, or a comparison with other libraries.
    """
    from towpath.pages.html import write_page
    from towpath.pages.text import page_text

    if live == (machine is not None):
        raise ConfigError("bench mailbox needs either --machine or --live")
    size_bytes = _message_size(sizes)
    output = page_output(out)
    if machine is None:
        refuse(given(seed=seed), "applies to --machine; a live run has no seed")
        refuse(given(rtl=rtl, vcd=vcd), "applies to --machine with --engine rtl")
        outcome = _live(iterations or 200_000, size_bytes, cores, peers or Path("build"))
    else:
        refuse(given(cores=cores, peers=peers), "is for --live")
        if engine == "rtl":
            refuse(given(seed=seed), "applies to --engine model; the RTL has no seed")
            outcome = _rtl(machine, iterations or 20_000, size_bytes, rtl or Path("build/rtl"), vcd)
        else:
            refuse(given(rtl=rtl, vcd=vcd), "is for --engine rtl")
            outcome = _simulated(
                machine, iterations or 1_000_000, size_bytes, 1 if seed is None else seed
            )
    text = json_text(outcome.found, outcome.made_with)
    print(text if as_json else page_text(outcome.page))
    if output is not None:
        output.write(lambda path: write_page(outcome.page, path, outcome.made_with), text)


def _message_size(text: str) -> int:
    from towpath.specs.sizes import parse_sizes

    sizes_bytes = parse_sizes(text)
    if len(sizes_bytes) > 1 or sizes_bytes[0] > _MESSAGE_BYTES_MAX:
        raise ConfigError(
            f"--sizes names {', '.join(map(str, sizes_bytes))} bytes; it must be one size of 1 "
            f"to {_MESSAGE_BYTES_MAX}"
        )
    return sizes_bytes[0]


def _live(iterations: int, size_bytes: int, cores: str | None, peers: Path) -> _Outcome:
    from dataclasses import replace

    from towpath.cli.progress import bar
    from towpath.pages.mailbox_page import live_mailbox_page
    from towpath.pages.provenance import provenance
    from towpath.studies.mailbox_live import LiveRequest, measure_live, parse_cores
    from towpath.studies.mailbox_peers import peer_measurements
    from towpath.studies.parallel import map_in_order

    request = LiveRequest(iterations, size_bytes, parse_cores(cores))
    steps: list[Callable[[], Any]] = [
        lambda: measure_live(request), *peer_measurements(request, peers)
    ]  # fmt: skip
    label = "measuring mailboxes and libraries"
    study, *rows = map_in_order(lambda step: step(), steps, label, progress=bar)
    study = replace(study, peers=rows)

    pinned = "nowhere" if request.cores is None else "cores {} and {}".format(*request.cores)
    facts = [
        ("Message", f"{size_bytes} B"), ("Iterations", str(iterations)), ("Pinned to", pinned),
        ("Waiting", "polling"),
    ]  # fmt: skip
    page = live_mailbox_page(study, command_line(), facts)
    return _Outcome(asdict(study), page, provenance())


def _simulated(machine: str, iterations: int, size_bytes: int, seed: int) -> _Outcome:
    from towpath.cli.progress import bar
    from towpath.pages.mailbox_page import mailbox_page
    from towpath.pages.provenance import provenance
    from towpath.specs import catalogue
    from towpath.studies.mailbox_study import StudyRequest, measure_study

    spec = catalogue.load_mailbox_cluster(machine)
    made_with = provenance([spec])
    request = StudyRequest(iterations, max(iterations * 3 // 10, 100), size_bytes, seed)
    study = measure_study(spec, request, bar)

    facts = [
        ("Cluster", f"{spec.name}, {spec.nodes.value} nodes"),
        ("Clock", f"{spec.core_clock_mhz.value:g} MHz"),
        ("Message", f"{size_bytes} B"),
        ("Iterations", f"{request.iterations} with interrupts, {request.calm_iterations} not"),
        ("Seed", str(seed)),
    ]
    title = f"Small messages on {spec.name}"
    page = mailbox_page(study, title, command_line(), facts)
    return _Outcome(asdict(study), page, made_with)


def _rtl(
    machine: str, iterations: int, size_bytes: int, folder: Path, vcd: Path | None
) -> _Outcome:
    from towpath.cli.progress import bar
    from towpath.pages.mailbox_page import mailbox_page
    from towpath.pages.provenance import provenance
    from towpath.specs import catalogue
    from towpath.studies.mailbox_rtl import measure_rtl_study
    from towpath.studies.mailbox_study import DOCUMENT_CLUSTER, StudyRequest

    spec = catalogue.load_mailbox_cluster(machine)
    if spec.name != DOCUMENT_CLUSTER:
        raise ConfigError(
            f"--engine rtl supports only {DOCUMENT_CLUSTER}; for {spec.name} use --engine model"
        )
    made_with = provenance([spec])
    request = StudyRequest(iterations, max(iterations * 3 // 10, 100), size_bytes)
    study = measure_rtl_study(folder, request, bar, vcd=vcd)

    facts = [
        ("Cluster", "2 nodes of RTL, simulated by Verilator"),
        ("Clock", "100 MHz"),
        ("Message", f"{size_bytes} B"),
        ("Iterations", f"{request.iterations} with interrupts, {request.calm_iterations} not"),
    ]
    title = "Small messages on RTL"
    page = mailbox_page(study, title, command_line(), facts)
    return _Outcome(asdict(study), page, made_with)
