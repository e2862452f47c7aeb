# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""`towpath whatif`: the gain from each link, latency and constant of a machine."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from towpath.cli.machine import cluster
from towpath.cli.options import MACHINE, AsJson, OutPage, errors_name_options, takes
from towpath.cli.output_file import command_line, json_text, page_output
from towpath.errors import ConfigError

_SIZES_OF_GPUS = "64K,64M"
_SIZES_OF_CHIPS = "16K,256K"


@takes(size=MACHINE)
def whatif(
    size: dict[str, Any],
    machine: Annotated[
        str, typer.Argument(metavar="MACHINE", help="a cluster of GPUs or chips: a name or a file")
    ],
    times: Annotated[
        float, typer.Option("--times", metavar="X", help="the factor of the improvements")
    ] = 2.0,
    collectives: Annotated[
        str,
        typer.Option("--collectives", metavar="NAMES", help="all_reduce,all_gather and so on"),
    ] = "all_reduce",
    sizes: Annotated[
        str | None, typer.Option("--sizes", "--size", help="1M, or several: 64K,64M")
    ] = None,
    out: OutPage = None,
    as_json: AsJson = False,
) -> None:
    """Improve each link, latency and constant in turn, and print the gains."""
    from towpath import ChipCluster, GpuCluster
    from towpath.api.whatif import what_if
    from towpath.cli.progress import bar
    from towpath.pages.html import write_page
    from towpath.pages.text import page_text
    from towpath.pages.whatif_page import whatif_page
    from towpath.specs.sizes import parse_sizes

    page = page_output(out)
    found = cluster(machine, **size)
    if not isinstance(found, (GpuCluster, ChipCluster)):
        raise ConfigError("whatif is for clusters of GPUs and of chips", file=machine)
    default = _SIZES_OF_GPUS if isinstance(found, GpuCluster) else _SIZES_OF_CHIPS
    with errors_name_options():
        gains = what_if(
            found, collectives.split(","), parse_sizes(sizes or default), times=times, progress=bar
        )
    result = whatif_page(gains, command_line())
    text = json_text(gains.to_dict()) if as_json or page is not None else ""
    print(text if as_json else page_text(result))
    if page is not None:
        page.write(lambda path: write_page(result, path), text)
