# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""`towpath synthesise`: a schedule written for one machine and size, and how good it is."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from towpath.cli.machine import gpu_cluster
from towpath.cli.options import (
    AsJson,
    CompleteFrom,
    Hosts,
    Ranks,
    RanksPerHost,
    Seed,
    errors_name_options,
    given,
    machine_option,
)
from towpath.cli.output_file import check_output, note, print_json


def synthesise(
    machine: Annotated[str, machine_option("GPUs: a name or a file")],
    collective: Annotated[
        str, typer.Argument(help="all_reduce, all_gather or reduce_scatter")
    ] = "all_reduce",
    size: Annotated[str, typer.Option("--size", "--sizes", help="the whole array")] = "64M",
    dtype: Annotated[str, typer.Option("--dtype", "-d", help="element type")] = "float32",
    hosts: Hosts = None,
    ranks: Ranks = None,
    ranks_per_host: RanksPerHost = None,
    complete_from: CompleteFrom = None,
    seconds: Annotated[
        float, typer.Option(min=0.1, max=86_400, help="no candidate is begun after this time")
    ] = 60.0,
    seed: Seed = 1,
    xml: Annotated[
        Path | None, typer.Option("--xml", help="write the schedule to this file as MSCCL XML")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Write a schedule for a machine of GPUs, faster than the listed ones if there is one."""
    from towpath.cli.progress import bar
    from towpath.pages.provenance import provenance

    check_output(xml)
    sizes = given(
        hosts=hosts, ranks=ranks, ranks_per_host=ranks_per_host, complete_from=complete_from
    )
    with errors_name_options(), bar("searching", 1) as update:
        found = gpu_cluster(machine, **sizes).synthesise(
            collective, size_bytes=size, dtype=dtype, seconds=seconds, seed=seed,
            progress=lambda done, total: update(done / total),
        )  # fmt: skip
    if as_json:
        print_json(found.to_dict(), provenance(schedules=[found.schedule]))
    else:
        print(found.text())
    if xml is not None:
        found.schedule.save(xml)
        note(f"schedule: {xml}")
