# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""`towpath bench`: studies of a described machine, each a sweep with tables, page and verdicts."""

from __future__ import annotations

import json
import os
import re
import sys
from dataclasses import asdict
from enum import Enum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from towpath.cli.mailbox import mailbox
from towpath.cli.options import AsJson, Jobs
from towpath.cli.output_file import command_line, deliver, results_folder
from towpath.errors import ConfigError, Interruption, quoted

if TYPE_CHECKING:
    from collections.abc import Callable

    from towpath.pages.noc_study_page import Study
    from towpath.pages.pcie_study_page import PcieStudy
    from towpath.specs.chip_spec import ChipSpec
    from towpath.studies.noc_study import StudyRequest
    from towpath.studies.noc_traffic import ChipShape
    from towpath.studies.pcie_study import PcieBench
    from towpath.studies.sweep import Point, SweepOptions

app = typer.Typer(
    no_args_is_help=True, help="Studies of a described machine, as tables and a page."
)

# What a core simulates of large points, to say beforehand how long a study takes.
_FLIT_HOPS_PER_S = 20e6


class _Part(str, Enum):
    study = "study"
    follow_ups = "follow-ups"


app.command()(mailbox)


@app.command("noc-vc")
def noc_vc(
    context: typer.Context,
    machine: Annotated[str, typer.Option(help="a chip: a name or a file")],
    patterns: Annotated[
        str | None,
        typer.Option(help="of the study: one_to_one, one_to_all, all_to_all, one_from_one, ..."),
    ] = None,
    sizes: Annotated[
        str | None, typer.Option(help="of a transaction; default: 1 to 4096 pages, 32:128K")
    ] = None,
    nocs: Annotated[str, typer.Option(help="0, 1 or both")] = "0,1",
    vcs: Annotated[str, typer.Option(help="numbers of virtual channels")] = "1,2,3,4",
    transactions: Annotated[
        int,
        typer.Option(
            min=1, max=1_000_000,
            help="per master, spread over its destinations: rounded down, at least one each",
        ),
    ] = 256,
    grid: Annotated[
        str | None,
        typer.Option(metavar="COLUMNSxROWS", help="only so many of the workers take part"),
    ] = None,
    only: Annotated[_Part | None, typer.Option(help="one of the two parts")] = None,
    out: Annotated[
        Path | None, typer.Option(help="folder of the results; default: noc-vc-NAME")
    ] = None,
    jobs: Jobs = 0,
    scheduler: Annotated[
        str | None, typer.Option(help="address of a dask scheduler that gets the points instead")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, max=(1 << 63) - 1, help="of the simulations")] = 1,
    as_json: AsJson = False,
) -> None:  # fmt: skip
    """Do several virtual channels help? Bandwidth over size, VC count, NoC and traffic pattern.

    Results are kept as they come; after an interruption the same command goes on from there.
    """
    from towpath.specs import catalogue
    from towpath.studies.noc_traffic import shape_of
    from towpath.studies.sweep import SweepOptions

    spec = catalogue.load_chip(machine)
    shape = _cropped(shape_of(spec), grid)
    request = _request(shape, patterns, sizes, nocs, vcs, transactions, only, seed)
    folder = results_folder(out, f"noc-vc-{spec.name}")
    options = SweepOptions(jobs=jobs, scheduler=scheduler)
    study = _run(spec, shape, request, folder, options, context.ensure_object(Interruption))
    _show(study, folder, as_json)


@app.command("ethernet")
def ethernet(
    machine: Annotated[str, typer.Option(help="chips with links: a name or a file")] = "t3000",
    out: Annotated[
        Path | None, typer.Option(help="folder of the results; default: ethernet-NAME")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """The microbenchmarks of links between chips: bandwidth, latency and rings, as figures."""
    from towpath.collectives import fabric
    from towpath.pages.ethernet_study_page import study_text, write_ethernet_study
    from towpath.specs import catalogue
    from towpath.studies.ethernet_study import figures_of

    spec = catalogue.load_chip_cluster(machine)
    fabric.check_linked(machine, spec.build())
    try:
        figures = list(figures_of(spec))
    except ValueError as error:
        raise ConfigError(f"--machine is {quoted(machine)}: {error}") from None
    title = f"Links between chips of {spec.name}"
    folder = results_folder(out, f"ethernet-{spec.name}")
    deliver(
        {"machine": spec.name, "figures": [asdict(figure) for figure in figures]},
        study_text(figures), folder, as_json,
        lambda: write_ethernet_study(title, command_line(), figures, folder / "study.html"),
    )  # fmt: skip


@app.command("pcie")
def pcie(
    machine: Annotated[str, typer.Option(help="a chip: a name or a file")] = "blackhole",
    host: Annotated[str, typer.Option(help="a name or a file")] = "blackhole-host",
    sizes: Annotated[str, typer.Option(help="of the sweep")] = "64:16M:4",
    hugepages: Annotated[
        bool | None, typer.Option("--hugepages/--no-hugepages", help="instead of what the host has")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="folder of the results; default: pcie-CHIP-HOST")
    ] = None,
    as_json: AsJson = False,
) -> None:  # fmt: skip
    """A host's link to a chip: windows, DMA, orderings, sizes, and why reads are slow."""
    from towpath.host.host_cluster import check_host_link
    from towpath.pages.pcie_study_page import SLOW_READ_PAGE, study_text, write_study
    from towpath.specs import catalogue
    from towpath.studies.pcie_study import PcieBench

    chip, of_host = catalogue.load_chip(machine), catalogue.load_host(host)
    check_host_link(chip)
    if hugepages is not None:
        of_host = of_host.with_hugepages(hugepages)
    study = _pcie_study(PcieBench(of_host, chip), _pcie_sizes(sizes))
    folder = results_folder(out, f"pcie-{chip.name}-{of_host.name}")
    text = "\n".join(study_text(study))
    deliver(study.to_dict(), text, folder, as_json, lambda: write_study(study, folder))
    print(f"why is my read slow: {folder / SLOW_READ_PAGE}", file=sys.stderr)


# --- options --------------------------------------------------------------------------------------


def _pcie_sizes(text: str) -> list[int]:
    from towpath.specs.sizes import parse_sizes
    from towpath.studies.pcie_study import SWEEP_BYTES_MAX

    sizes_bytes = sorted(set(parse_sizes(text)))
    for size_bytes in sizes_bytes:
        if size_bytes % 4 or size_bytes > SWEEP_BYTES_MAX:
            raise ConfigError(
                f"--sizes names {size_bytes} bytes; allowed are multiples of 4 up to "
                f"{SWEEP_BYTES_MAX}"
            )
    return sizes_bytes


def _request(
    shape: ChipShape, patterns: str | None, sizes: str | None, nocs: str, vcs: str,
    transactions: int, only: _Part | None, seed: int,
) -> StudyRequest:  # fmt: skip
    from towpath.studies.noc_study import PATTERNS, VCS_MAX, StudyRequest

    if patterns is not None and only is _Part.follow_ups:
        raise ConfigError("--patterns is for the study, which --only follow-ups leaves out")
    asked = PATTERNS if patterns is None else tuple(dict.fromkeys(patterns.split(",")))
    for pattern in asked:
        if pattern not in PATTERNS:
            allowed = ", ".join(PATTERNS)
            raise ConfigError(f"--patterns names {quoted(pattern)}; allowed are {allowed}")
    return StudyRequest(
        patterns=asked,
        sizes_bytes=_sizes(shape, sizes),
        nocs=_numbers(nocs, "--nocs", 0, 1),
        vcs=_numbers(vcs, "--vcs", 1, VCS_MAX),
        transactions=transactions,
        has_study=only is not _Part.follow_ups,
        has_follow_ups=only is not _Part.study,
        seed=seed,
    )


def _sizes(shape: ChipShape, text: str | None) -> tuple[int, ...]:
    from towpath.specs.sizes import parse_sizes
    from towpath.studies.noc_study import PAGES_MAX

    page_bytes, most_bytes = shape.flit_bytes, PAGES_MAX * shape.flit_bytes
    sizes_bytes = parse_sizes(f"{page_bytes}:{most_bytes}" if text is None else text)
    for size_bytes in sizes_bytes:
        if size_bytes % page_bytes or size_bytes > most_bytes:
            raise ConfigError(
                f"--sizes names {size_bytes} bytes; allowed are whole pages of {page_bytes} bytes, "
                f"up to {most_bytes}"
            )
    return tuple(sorted(set(sizes_bytes)))


def _numbers(text: str, option: str, least: int, most: int) -> tuple[int, ...]:
    parts = {part.strip() for part in text.split(",")}
    allowed = [str(number) for number in range(least, most + 1)]
    if not parts <= set(allowed):
        raise ConfigError(f"{option} is {quoted(text)}; allowed are {', '.join(allowed)}")
    return tuple(sorted(map(int, parts)))


def _cropped(shape: ChipShape, grid: str | None) -> ChipShape:
    if grid is None:
        return shape
    match = re.fullmatch(r"([0-9]{1,3})x([0-9]{1,3})", grid, re.ASCII)
    columns, rows = (int(match[1]), int(match[2])) if match else (0, 0)
    fits = 1 <= columns <= shape.columns and 1 <= rows <= shape.rows
    if not fits or columns * rows < 2:
        raise ConfigError(
            f"--grid is {quoted(grid)}; allowed are two workers or more, up to the "
            f"{shape.columns}x{shape.rows} of {shape.name}"
        )
    return shape.cropped(columns, rows)


# --- running --------------------------------------------------------------------------------------


def _run(
    spec: ChipSpec, shape: ChipShape, request: StudyRequest, folder: Path, options: SweepOptions,
    interruption: Interruption,
) -> Study:  # fmt: skip
    from towpath.pages.noc_study_page import Study
    from towpath.studies.noc_findings import findings
    from towpath.studies.noc_study import digest_of, flit_hops, measure_point, study_parts
    from towpath.studies.sweep import how_to_resume, run_sweep

    asked = study_parts(shape, request)
    points = [point for part in asked.values() for point in part]
    cost = partial(flit_hops, shape)
    work, total = _work(points, cost)
    print(f"towpath: {work}{_duration(total, options)}", file=sys.stderr)
    file = folder / "points.jsonl"
    interruption.sentence = how_to_resume(file)
    spec_json = spec.model_dump_json()
    results = iter(
        run_sweep(
            partial(measure_point, spec_json), points, file,
            digest=digest_of(spec_json), cost=cost, options=options,
        )
    )  # fmt: skip
    parts = {part: [{**p, **next(results)} for p in own] for part, own in asked.items()}
    facts = [
        ("Chip", f"{spec.name}, {shape.columns} x {shape.rows} workers"),
        ("Flit", f"{shape.flit_bytes} B"),
        ("Transactions", f"{request.transactions} per master"),
        ("Points", work),
        ("Seed", str(request.seed)),
    ]
    title = f"Virtual channels on {spec.name}"
    return Study(title, command_line(), facts, parts, findings(parts, shape))


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


def _work(points: list[Point], cost: Callable[[Point], int]) -> tuple[str, int]:
    """What the points come to, in words and in flit-hops."""
    unique = list({json.dumps(point): point for point in points}.values())
    total = sum(map(cost, unique))
    reduced = sum(
        point.get("per_destination", 0) < point.get("asked_per_destination", 0) for point in unique
    )
    text = f"{len(unique)} points of {total / 1e9:.3g} G flit-hops"
    if reduced:
        text += f", {reduced} of them with fewer transactions to fit a point's budget"
    return text, total


def _duration(flit_hops: int, options: SweepOptions) -> str:
    if options.scheduler is not None:
        return ""
    processes = options.jobs or len(os.sched_getaffinity(0))
    minutes = flit_hops / _FLIT_HOPS_PER_S / processes / 60
    return f", about {minutes:.1f} minutes with --jobs {processes}"


def _show(study: Study, folder: Path, as_json: bool) -> None:
    from towpath.pages.noc_study_page import write_study
    from towpath.pages.noc_table import findings_text, study_text

    text = "\n".join([*study_text(study.parts), *findings_text(study.findings)])
    deliver(asdict(study), text, folder, as_json, lambda: write_study(study, folder / "study.html"))
