# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""`towpath bench`: studies of a described machine, each a sweep with tables, page and verdicts."""

from __future__ import annotations

import os
import re
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from towpath.cli import groups
from towpath.cli.deepep import deepep
from towpath.cli.exchange import exchange
from towpath.cli.machine import chip, chip_cluster
from towpath.cli.machine import host as any_host
from towpath.cli.mailbox import mailbox
from towpath.cli.options import (
    AsJson,
    Jobs,
    OutFolder,
    Scheduler,
    Seed,
    complete_machine,
    machine_option,
)
from towpath.cli.output_file import command_line, deliver, note, results_folder
from towpath.cli.penny import penny
from towpath.errors import ConfigError, Interruption, quoted

if TYPE_CHECKING:
    from pathlib import Path

    from towpath.api.noc_study import StudyPlan, StudyWork
    from towpath.pages.noc_study_page import Study
    from towpath.pages.pcie_study_page import PcieStudy
    from towpath.specs.chip_spec import ChipSpec
    from towpath.studies.pcie_study import PcieBench
    from towpath.studies.sweep import SweepOptions

app = groups.group("Study a machine: tables, a page and findings.")

# What a core simulates of large points, to say beforehand how long a study takes.
_FLIT_HOPS_PER_S = 20e6
_POINT_S = 0.1


Transactions = Annotated[
    int,
    typer.Option(
        metavar="N",
        min=1,
        max=1_000_000,
        help="from each master to each of its destinations",
    ),
]


_Part = Literal["study", "follow-ups"]

app.command()(mailbox)
app.command()(exchange)
app.command()(deepep)
app.command()(penny)


@app.command("noc-vc")
def noc_vc(
    context: typer.Context,
    machine: Annotated[str, machine_option("a chip: a name or a file")] = "wormhole",
    patterns: Annotated[
        str | None,
        typer.Option(
            help="patterns of the study: one_to_one, one_to_all, all_to_all, one_from_one, ..."
        ),
    ] = None,
    sizes: Annotated[
        str | None, typer.Option(help="sizes of a transaction; default: 1 to 4096 pages, 32:128K")
    ] = None,
    nocs: Annotated[str, typer.Option(help="0, 1 or both")] = "0,1",
    vcs: Annotated[str, typer.Option(help="numbers of virtual channels")] = "1,2,3,4",
    transactions: Transactions = 256,
    grid: Annotated[
        str | None, typer.Option(metavar="COLUMNSxROWS", help="use only this part of the workers")
    ] = None,
    only: Annotated[_Part | None, typer.Option(help="one of the two parts")] = None,
    out: OutFolder = None,
    jobs: Jobs = 0,
    scheduler: Scheduler = None,
    seed: Seed = 1,
    as_json: AsJson = False,
) -> None:  # fmt: skip
    """Measure the benefit of several virtual channels of a NoC.

    The axes are size, number of virtual channels, NoC and traffic pattern.

    Results are kept as they come; after an interruption the same command goes on from there.
    """
    from towpath.api.noc_study import StudyPlan
    from towpath.cli.progress import bar
    from towpath.pages.noc_study_page import noc_page
    from towpath.pages.provenance import provenance
    from towpath.studies.noc_study import VCS_MAX
    from towpath.studies.noc_traffic import shape_of
    from towpath.studies.sweep import SweepOptions

    if patterns is not None and only == "follow-ups":
        raise ConfigError("--patterns applies to the study, which --only follow-ups leaves out")
    spec = chip(machine).spec
    plan = StudyPlan(
        sizes_bytes=_sizes(sizes, shape_of(spec).flit_bytes),
        patterns=None if patterns is None else list(dict.fromkeys(patterns.split(","))),
        nocs=_numbers(nocs, "--nocs", 0, 1),
        vcs=_numbers(vcs, "--vcs", 1, VCS_MAX),
        transactions=transactions,
        workers=None if grid is None else _grid(grid),
        follow_ups=only != "study",
        seed=seed,
        has_study=only != "follow-ups",
    )
    options = SweepOptions(jobs=jobs, scheduler=scheduler, progress=bar)
    interruption = context.ensure_object(Interruption)
    folder, study = _noc_study(spec, plan, options, out, interruption)
    made_with = provenance([spec])
    deliver(asdict(study), noc_page(study), folder, as_json, made_with=made_with)


@app.command("ethernet")
def ethernet(
    machine: Annotated[str, machine_option("chips with links: a name or a file")] = "t3000",
    out: OutFolder = None,
    as_json: AsJson = False,
) -> None:
    """Measure bandwidth, latency and rings of links between chips."""
    from towpath.pages.ethernet_study_page import ethernet_page
    from towpath.pages.provenance import provenance

    cluster = chip_cluster(machine)
    cluster.require_links()
    folder = results_folder(out, f"ethernet-{cluster.name}")
    plots = cluster.study_links()
    title = f"Links between chips of {cluster.name}"
    made_with = provenance([cluster.spec])
    found = {"machine": cluster.name, "figures": [plot.to_dict() for plot in plots]}
    page = ethernet_page(title, command_line(), plots)
    deliver(found, page, folder, as_json, made_with=made_with)


@app.command("pcie")
def pcie(
    machine: Annotated[str, machine_option("a chip: a name or a file")] = "blackhole",
    host: Annotated[
        str, typer.Option(help="a host: a name or a file", autocompletion=complete_machine)
    ] = "blackhole-host",
    sizes: Annotated[str, typer.Option(help="sizes of the sweep")] = "64:16M:4",
    harvesting: Annotated[
        str | None,
        typer.Option(help="masks as tt-umd logs them: tensix=0x1020,dram=0x8,eth=0x3fff"),
    ] = None,
    hugepages: Annotated[
        bool | None, typer.Option("--hugepages/--no-hugepages", help="instead of what the host has")
    ] = None,
    out: OutFolder = None,
    as_json: AsJson = False,
) -> None:  # fmt: skip
    """Measure a host's link to a chip, and explain slow reads.

    The measurements cover windows, DMA, orderings and sizes.
    """
    from towpath.host.host_cluster import check_host_link
    from towpath.pages.html import write_page
    from towpath.pages.pcie_study_page import SLOW_READ_PAGE, pcie_page, slow_read_page
    from towpath.pages.provenance import provenance
    from towpath.studies.pcie_study import PcieBench

    chip_spec, host_spec = chip(machine).spec, any_host(host).spec
    check_host_link(chip_spec)
    if harvesting is not None:
        chip_spec = chip_spec.with_masks(harvesting)
    if hugepages is not None:
        host_spec = host_spec.with_hugepages(hugepages)
    sizes_bytes = _pcie_sizes(sizes)
    folder = results_folder(out, f"pcie-{chip_spec.name}-{host_spec.name}")
    study = _pcie_study(PcieBench(host_spec, chip_spec), sizes_bytes)
    made_with = provenance([chip_spec, host_spec])
    write_page(slow_read_page(study), folder / SLOW_READ_PAGE, made_with)
    deliver(study.to_dict(), pcie_page(study), folder, as_json, made_with=made_with)
    note(f"why is my read slow: {folder / SLOW_READ_PAGE}")


# --- options --------------------------------------------------------------------------------------


def _pcie_sizes(text: str) -> list[int]:
    from towpath.specs.sizes import parse_sizes
    from towpath.studies.pcie_study import SWEEP_BYTES_MAX

    sizes_bytes = sorted(set(parse_sizes(text)))
    for size_bytes in sizes_bytes:
        if size_bytes % 4 or size_bytes > SWEEP_BYTES_MAX:
            raise ConfigError(
                f"--sizes names {size_bytes} bytes; it must be a multiple of 4 up to "
                f"{SWEEP_BYTES_MAX}"
            )
    return sizes_bytes


def _sizes(text: str | None, page_bytes: int) -> tuple[int, ...]:
    """--sizes; by default from one page to as many as a transaction can have."""
    from towpath.specs.sizes import parse_sizes
    from towpath.studies.noc_study import PAGES_MAX

    return tuple(parse_sizes(text or f"{page_bytes}:{PAGES_MAX * page_bytes}"))


def _numbers(text: str, option: str, least: int, most: int) -> tuple[int, ...]:
    parts = {part.strip() for part in text.split(",")}
    allowed = [str(number) for number in range(least, most + 1)]
    if not parts <= set(allowed):
        raise ConfigError(f"{option} is {quoted(text)}; choose one of {', '.join(allowed)}")
    return tuple(sorted(map(int, parts)))


def _grid(text: str) -> tuple[int, int]:
    match = re.fullmatch(r"([0-9]{1,3})x([0-9]{1,3})", text, re.ASCII)
    if match is None:
        raise ConfigError(f"--grid is {quoted(text)}; it must be columns and rows, such as 4x2")
    return int(match[1]), int(match[2])


# --- what is shown --------------------------------------------------------------------------------


def _noc_study(
    spec: ChipSpec, plan: StudyPlan, options: SweepOptions, out: Path | None,
    interruption: Interruption,
) -> tuple[Path, Study]:  # fmt: skip
    """Creates the folder for a study's results, and measures the study."""
    from towpath.api.noc_study import run_study, work_of
    from towpath.pages.noc_study_page import Study
    from towpath.studies.noc_traffic import shape_of
    from towpath.studies.sweep import how_to_resume

    work = work_of(spec, plan)
    folder = results_folder(out, f"noc-vc-{spec.name}")
    file = folder / "points.jsonl"
    note(f"towpath: {_work_text(work)}{_duration(work, options)}")
    interruption.sentence = how_to_resume(file)
    found = run_study(spec, plan, file, options)
    shape = shape_of(spec)
    columns, rows = plan.workers or (shape.columns, shape.rows)
    facts = [
        ("Chip", f"{spec.name}, {columns} x {rows} workers"),
        ("Flit", f"{shape.flit_bytes} B"),
        ("Transactions", f"{plan.transactions} per destination"),
        ("Points", _work_text(work)),
        ("Seed", str(plan.seed)),
    ]
    title = f"Virtual channels on {spec.name}"
    return folder, Study(title, command_line(), facts, found.parts, found.findings)


def _pcie_study(bench: PcieBench, sizes_bytes: list[int]) -> PcieStudy:
    from towpath.pages.pcie_study_page import PcieStudy
    from towpath.studies import pcie_study

    memory = bench.host.memory
    facts = [
        ("Chip", bench.chip.name),
        ("Host", bench.host.name),
        ("IOMMU", "yes" if memory.has_iommu.value else "no"),
        ("Hugepages", "yes" if memory.has_hugepages.value else "no"),
        ("Repetitions", str(pcie_study.REPETITIONS)),
    ]
    return PcieStudy(
        f"The host link of {bench.chip.name} on {bench.host.name}",
        command_line(),
        facts,
        bench.is_the_documents,
        pcie_study.document_tables(bench),
        pcie_study.comparisons(bench),
        pcie_study.causes(bench),
        pcie_study.sweep(bench, sizes_bytes),
        pcie_study.slow_reads(bench),
    )


def _work_text(work: StudyWork) -> str:
    text = f"{work.points} points of {work.flit_hops / 1e9:.3g} G flit-hops"
    if work.reduced:
        text += f", {work.reduced} of them with fewer transactions to fit a point's budget"
    return text


def _duration(work: StudyWork, options: SweepOptions) -> str:
    if options.scheduler is not None:
        return ""
    processes = options.jobs or len(os.sched_getaffinity(0))
    seconds = work.flit_hops / _FLIT_HOPS_PER_S / processes + work.points * _POINT_S / processes
    time = f"{seconds / 60:.0f} minutes" if seconds >= 90 else f"{seconds:.0f} seconds"
    return f", about {time} with --jobs {processes}"
