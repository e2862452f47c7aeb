# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""`towpath explain`: the choice of NCCL or RCCL on a cluster of GPUs, and the reasons."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from towpath.cli.library_options import LIBRARY, OfLibrary, library_from, variables_from
from towpath.cli.machine import gpu_cluster
from towpath.cli.options import MACHINE, AsJson, errors_name_options, machine_option, takes
from towpath.cli.output_file import check_output, note, print_json
from towpath.errors import ConfigError
from towpath.files import write_text

if TYPE_CHECKING:
    from towpath import GpuCluster


_SIZES_OF_NCCL = "1K:4G"
_FILE_VARIABLES = {"graph": "GRAPH_FILE", "tuner": "TUNER_PLUGIN"}


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
    sizes: Annotated[
        str | None, typer.Option("--sizes", "--size", help="1M, or several: 8,1M,1G")
    ] = None,
    run_as: OfLibrary = None,
    nccl: Annotated[
        str | None,
        typer.Option(
            "--nccl", metavar="RELEASES", help="ask NCCL 2.28.9 itself; of several, the changes"
        ),
    ] = None,
    topo: Annotated[
        str | None,
        typer.Option("--topo", metavar="FILE", help="hosts from NCCL_TOPO_DUMP_FILE, for --nccl"),
    ] = None,
    log: Annotated[
        Path | None,
        typer.Option("--log", metavar="FILE", help="write NCCL's own log, for --nccl"),
    ] = None,
    graph_out: Annotated[
        Path | None,
        typer.Option("--graph-out", metavar="FILE", help="write the channels for NCCL_GRAPH_FILE"),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Explain which algorithm, protocol and channels NCCL or RCCL would use."""
    if nccl is not None:
        gpus = gpu_cluster(machine, **size)
        return _explain_itself(
            gpus, collective, sizes or _SIZES_OF_NCCL, nccl, library,
            topo=topo, log=log, as_json=as_json,
        )  # fmt: skip
    if topo is not None or log is not None:
        raise ConfigError("--topo and --log need --nccl, which asks NCCL itself")
    from towpath.pages.explain_text import explanation_text
    from towpath.pages.provenance import provenance
    from towpath.specs.sizes import parse_sizes

    check_output(graph_out)
    gpus = gpu_cluster(machine, **size)
    chosen = library_from(run_as or gpus.own_library, library)
    with errors_name_options():
        found = [
            gpus.explain(collective, size_bytes=each, library=chosen)
            for each in parse_sizes(sizes or "1M")
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


def _explain_itself(
    machine: GpuCluster, collective: str, sizes: str, releases: str, library: dict[str, Any], *,
    topo: str | None, log: Path | None, as_json: bool,
) -> None:  # fmt: skip
    """The decisions of releases of NCCL that are built."""
    from towpath.api.nccl import NcclOptions, ask_nccl
    from towpath.collectives.nccl.facts import Assumptions
    from towpath.collectives.nccl_itself.decide import RANKS_MAX
    from towpath.pages.nccl_text import answer_text, changes_text
    from towpath.specs.sizes import parse_sizes

    for option in ("graph", "tuner"):
        if option in library:
            raise ConfigError(
                f"--{option} is not used with --nccl; --env NCCL_{_FILE_VARIABLES[option]}=FILE is"
            )
    assumptions = Assumptions.of(library.get("generation"), library.get("cpu"))
    options = NcclOptions(variables_from(library), topo, assumptions)
    check_output(log)
    with errors_name_options():
        answers = [
            ask_nccl(
                machine,
                release,
                collective,
                parse_sizes(sizes),
                options,
                is_connected=log is not None and machine.ranks <= RANKS_MAX,
            )
            for release in releases.split(",")
        ]
    if as_json:
        print_json([answer.to_dict() for answer in answers])
    elif len(answers) == 1:
        print("\n".join(answer_text(answers[0])))
    else:
        print("\n".join(changes_text(answers)))
    if log is not None:
        write_text(log, "".join(answer.decisions.log for answer in answers))
        note(f"log: {log}")
