# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""`towpath export driver`: a chip that tt-umd opens as a simulator."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from towpath.cli.machine import chip
from towpath.cli.machine import host as any_host
from towpath.cli.options import AsJson, complete_machine, machine_option
from towpath.cli.output_file import note, print_json


def driver(
    folder: Annotated[Path, typer.Argument(help="made if it does not exist")],
    machine: Annotated[str, machine_option("a chip: a name or a file")] = "blackhole",
    host: Annotated[
        str, typer.Option(help="a host: a name or a file", autocompletion=complete_machine)
    ] = "blackhole-host",
    as_json: AsJson = False,
) -> None:
    """Write a folder that tt-umd opens as a simulator.

    The simulator is a chip behind a host's link.
    """
    from towpath.host.driver_folder import write_driver_folder
    from towpath.pages.provenance import provenance

    chip_spec, host_spec = chip(machine).spec, any_host(host).spec
    library = write_driver_folder(folder, chip_spec, host_spec)
    if as_json:
        print_json({"library": str(library)}, provenance([chip_spec, host_spec]))
    note(f"written: {library}, {chip_spec.name} behind {host_spec.name}")
