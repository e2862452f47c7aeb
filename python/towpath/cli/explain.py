# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""`towpath explain`: the choice of NCCL or RCCL on a cluster of GPUs, and the reasons."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from towpath.cli.library_options import LIBRARY, OfLibrary, library_from
from towpath.cli.machine import gpu_cluster
from towpath.cli.options import MACHINE, AsJson, errors_name_options, machine_option, takes
from towpath.cli.output_file import check_output, note, print_json
from towpath.files import write_text


@takes(size=MACHINE, library=LIBRARY)
def explain(
    size: dict[str, Any],
    library: dict[str, Any],
    collective: Annotated[
        str,
        typer.Argument(
            metavar="COLLECTIVE", help="all_reduce, all_gather, reduce_scatter, broadcast, reduce"
        ),
    ],
    machine: Annotated[str, machine_option("the cluster of GPUs: a name or a file")],
    sizes: Annotated[str, typer.Option("--sizes", "--size", help="1M, or several: 8,1M,1G")] = "1M",
    run_as: OfLibrary = "nccl",
    graph_out: Annotated[
        Path | None,
        typer.Option("--graph-out", metavar="FILE", help="write the channels for NCCL_GRAPH_FILE"),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Explain which algorithm, protocol and channels NCCL or RCCL would use."""
    from towpath.pages.explain_text import explanation_text
    from towpath.pages.provenance import provenance
    from towpath.specs.sizes import parse_sizes

    check_output(graph_out)
    gpus = gpu_cluster(machine, **size)
    chosen = library_from(run_as, library)
    with errors_name_options():
        found = [
            gpus.explain(collective, size_bytes=each, library=chosen) for each in parse_sizes(sizes)
        ]
    if as_json:
        print_json([one.to_dict() for one in found], provenance([gpus.spec]))
    else:
        print("\n\n".join("\n".join(explanation_text(one)) for one in found))
    if graph_out is not None:
        from towpath.collectives.nccl.graph_file import graphs_text

        graphs = gpus.imitate(chosen).facts.communicator.graphs
        write_text(graph_out, graphs_text(graphs))
        note(f"graphs: {graph_out}")
