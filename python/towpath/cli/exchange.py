# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""`towpath bench exchange`: kernels of puts with signals on a described cluster of GPUs."""

from __future__ import annotations

from typing import Annotated

import typer

from towpath.cli.machine import gpu_cluster, one_setting
from towpath.cli.options import AsJson, OutFolder, Settings, machine_option
from towpath.cli.output_file import command_line, deliver, results_folder


def exchange(
    machine: Annotated[str, machine_option("a cluster of GPUs: a name or a file")] = "dgx-h100",
    sizes: Annotated[str, typer.Option(help="buffers that two GPUs exchange")] = "2M:32M:4",
    ring_sizes: Annotated[str, typer.Option(help="buffers that all GPUs reduce")] = "16K:16M:4",
    settings: Settings = None,
    out: OutFolder = None,
    as_json: AsJson = False,
) -> None:
    """Simulate puts with signals: exchanges and rings of GPUs.

    Every thread is simulated, inside a host and between hosts.
    """
    from towpath.cli.progress import bar
    from towpath.pages.exchange_page import exchange_page
    from towpath.pages.provenance import provenance

    cluster = gpu_cluster(machine, settings=one_setting(settings))
    folder = results_folder(out, f"exchange-{cluster.spec.name}")
    study = cluster.bench_exchange(sizes, ring_sizes, progress=bar)
    made_with = provenance([cluster.spec])
    page = exchange_page(study, command_line())
    deliver(study.to_dict(), page, folder, as_json, made_with=made_with)
