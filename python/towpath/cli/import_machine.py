# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""`towpath import`: your own machine, from the output of its tools."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from towpath.cli.options import CompleteFrom, Hosts
from towpath.cli.output_file import check_output
from towpath.files import write_text


def import_machine(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE...",
            help="the output of `nvidia-smi topo -m`, `rocm-smi --showtopo`, `lstopo --of xml` or "
            "a topology XML of NCCL, and of `ibstatus`, `rdma link`, `nvidia-smi -q` and `lspci`",
        ),
    ],
    output: Annotated[
        Path, typer.Option("--out", "-o", metavar="PATH", help="the YAML file; default: stdout")
    ] = Path("-"),
    hosts: Hosts = None,
    complete_from: CompleteFrom = None,
    gpu: Annotated[
        str | None, typer.Option("--gpu", metavar="MODEL", help="the model of the GPUs: b200, t4")
    ] = None,
    pcie: Annotated[
        str | None,
        typer.Option("--pcie", metavar="N", help="the generation of PCIe of the GPUs: 3 to 6"),
    ] = None,
) -> None:
    """Write a machine file from the output of a host's own tools."""
    from towpath.specs.importers.gpu_models import gpu_named, pcie_generation
    from towpath.specs.importers.host_draft import machine_name
    from towpath.specs.importers.nvidia_smi import Known
    from towpath.specs.importers.own_host import import_host
    from towpath.specs.input_file import read_text
    from towpath.specs.write import yaml_of

    is_printed = str(output) == "-"
    if not is_printed:
        check_output(output)
    known = Known(
        None if gpu is None else gpu_named(gpu), None if pcie is None else pcie_generation(pcie)
    )
    spec = import_host([(read_text(path), str(path)) for path in files], complete_from, known)
    if is_printed:
        sys.stdout.write(yaml_of(spec.sized(hosts)))
        return
    spec = spec.model_copy(update={"name": machine_name(str(output))})
    write_text(output, yaml_of(spec.sized(hosts)))
    print(f"written: {output}, {spec.gpus_per_host} GPUs in each host")
    for sentence in spec.notes:
        print(f"  {sentence}")
    print(f"next: towpath run all_reduce --machine {output}")
