# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""`towpath explain` and `towpath expect`: what NCCL or RCCL would do on a cluster of GPUs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from towpath.cli.library_options import (
    Cpu,
    Generation,
    GraphFile,
    OfLibrary,
    TunerFile,
    Variables,
    library_from,
)
from towpath.cli.machine import cluster
from towpath.cli.options import (
    AsJson,
    CompleteFrom,
    Hosts,
    Ranks,
    RanksPerHost,
    errors_name_options,
    given,
    machine_option,
)
from towpath.cli.output_file import check_output, note, print_json
from towpath.errors import ConfigError

if TYPE_CHECKING:
    from towpath import GpuCluster

_Collective = Annotated[
    str,
    typer.Argument(
        metavar="COLLECTIVE", help="all_reduce, all_gather, reduce_scatter, broadcast, reduce"
    ),
]
_Machine = Annotated[str, machine_option("the cluster of GPUs: a name or a file")]
_GraphsOut = Annotated[
    Path | None,
    typer.Option("--graph-out", metavar="FILE", help="write the channels for NCCL_GRAPH_FILE"),
]


def explain(
    collective: _Collective,
    machine: _Machine,
    sizes: Annotated[str, typer.Option("--sizes", "--size", help="1M, or several: 8,1M,1G")] = "1M",
    hosts: Hosts = None,
    ranks: Ranks = None,
    ranks_per_host: RanksPerHost = None,
    complete_from: CompleteFrom = None,
    library: OfLibrary = "nccl",
    env: Variables = None,
    graph: GraphFile = None,
    tuner: TunerFile = None,
    generation: Generation = None,
    cpu: Cpu = None,
    graph_out: _GraphsOut = None,
    as_json: AsJson = False,
) -> None:
    """Say which algorithm, protocol and channels NCCL or RCCL would run, and why."""
    from towpath.pages.explain_text import explanation_text
    from towpath.pages.provenance import provenance
    from towpath.specs.sizes import parse_sizes

    check_output(graph_out)
    place = given(
        hosts=hosts, ranks=ranks, ranks_per_host=ranks_per_host, complete_from=complete_from
    )
    gpus = _gpus(machine, place)
    chosen = library_from(
        library, env, graph_file=graph, tuner_file=tuner, generation=generation, cpu=cpu
    )
    assert chosen is not None  # --as has a default
    with errors_name_options():
        found = [
            gpus.explain(collective, size_bytes=size, library=chosen) for size in parse_sizes(sizes)
        ]
    if as_json:
        print_json({"explanations": [one.to_dict() for one in found]}, provenance([gpus.spec]))
    else:
        print("\n\n".join("\n".join(explanation_text(one)) for one in found))
    if graph_out is not None:
        from towpath.collectives.nccl.graph_file import graphs_text

        graphs = gpus.imitate(chosen).facts.communicator.graphs
        graph_out.write_text(graphs_text(graphs), encoding="utf-8")
        note(f"graphs: {graph_out}")


def expect(
    collective: _Collective,
    machine: _Machine,
    sizes: Annotated[str, typer.Option("--sizes", "--size", help="8:1G:4 or 8,1M,1G")] = "8:64M:8",
    hosts: Hosts = None,
    ranks: Ranks = None,
    ranks_per_host: RanksPerHost = None,
    complete_from: CompleteFrom = None,
    library: OfLibrary = "nccl",
    env: Variables = None,
    graph: GraphFile = None,
    tuner: TunerFile = None,
    generation: Generation = None,
    cpu: Cpu = None,
    as_json: AsJson = False,
) -> None:
    """Print the table that nccl-tests should print, with the model's error beside each row."""
    from towpath.pages.explain_text import expectation_text
    from towpath.pages.provenance import provenance
    from towpath.specs.sizes import parse_sizes

    place = given(
        hosts=hosts, ranks=ranks, ranks_per_host=ranks_per_host, complete_from=complete_from
    )
    gpus = _gpus(machine, place)
    chosen = library_from(
        library, env, graph_file=graph, tuner_file=tuner, generation=generation, cpu=cpu
    )
    assert chosen is not None  # --as has a default
    with errors_name_options():
        found = gpus.expect(collective, size_bytes=parse_sizes(sizes), library=chosen)
    if as_json:
        print_json(found.to_dict(), provenance([gpus.spec]))
    else:
        print("\n".join(expectation_text(found)))


def _gpus(name: str, place: dict[str, object]) -> GpuCluster:
    """The machine.

    Raises:
        ConfigError: it is not a cluster of GPUs.
    """
    from towpath import GpuCluster

    machine = cluster(name, **place)
    if not isinstance(machine, GpuCluster):
        raise ConfigError(f"'{machine.name}' is a {machine.kind}; NCCL and RCCL run on GPUs")
    return machine
