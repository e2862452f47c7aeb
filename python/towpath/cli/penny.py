# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""`towpath bench penny`: the library's CUDA kernels on a described cluster of GPUs."""

from __future__ import annotations

from typing import Annotated

import typer

from towpath.cli.machine import gpu_cluster, one_setting
from towpath.cli.options import AsJson, OutFolder, Settings, machine_option
from towpath.cli.output_file import command_line, deliver, results_folder


def penny(
    machine: Annotated[str, machine_option("a cluster of GPUs: a name or a file")] = "dgx-h100",
    kernels: Annotated[
        str, typer.Option(help="of the library, with commas between")
    ] = "vectorised_ring,simple_ring,one_shot,two_shot",
    sizes: Annotated[str, typer.Option(help="the array of each PE")] = "16K:1M:4",
    block_size: Annotated[str, typer.Option(help="threads of a block")] = "256,512",
    packet_size: Annotated[str, typer.Option(help="bytes that a thread puts at once")] = "16,64",
    pes: Annotated[int, typer.Option(min=2, help="how many GPUs")] = 8,
    rings: Annotated[int, typer.Option(min=1, help="of ring kernels")] = 1,
    settings: Settings = None,
    out: OutFolder = None,
    as_json: AsJson = False,
) -> None:
    """Run CUDA kernels thread by thread over blocks and sizes.

    The kernels move real data; the sweep covers blocks, packets and sizes.
    """
    from towpath.cli.progress import bar
    from towpath.pages.penny_page import penny_page
    from towpath.pages.provenance import provenance

    cluster = gpu_cluster(machine, settings=one_setting(settings))
    folder = results_folder(out, f"penny-{cluster.spec.name}")
    study = cluster.bench_penny(
        kernels.split(","), sizes, block_size=block_size, packet_size=packet_size, pes=pes,
        rings=rings, progress=bar,
    )  # fmt: skip
    made_with = provenance([cluster.spec])
    page = penny_page(study, command_line())
    deliver(study.to_dict(), page, folder, as_json, made_with=made_with)
