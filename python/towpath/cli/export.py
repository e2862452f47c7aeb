# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""`towpath export`: schedules as MSCCL XML, machines and chips, for other programs."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from towpath.cli import groups
from towpath.cli.export_driver import driver
from towpath.cli.export_machine import machine
from towpath.cli.options import (
    Algorithm,
    AsJson,
    Chunks,
    Columns,
    Protocol,
    Root,
    ScheduleChannels,
    ScheduleHosts,
    ScheduleRanks,
    given,
)
from towpath.cli.output_file import check_output, note, print_json
from towpath.cli.verify import generated
from towpath.errors import ConfigError
from towpath.files import write_text

app = groups.group("Write a schedule, a machine or a chip for other programs.")


def schedule(
    context: typer.Context,
    file: Annotated[Path, typer.Argument(help="the MSCCL XML file, or - for standard output")],
    ranks: ScheduleRanks = None,
    algorithm: Algorithm = None,
    channels: ScheduleChannels = None,
    protocol: Protocol = None,
    root: Root = None,
    hosts: ScheduleHosts = None,
    chunks: Chunks = None,
    columns: Columns = None,
    force: Annotated[bool, typer.Option("--force", help="replace a file that exists")] = False,
    as_json: AsJson = False,
) -> None:
    """Write a schedule of this collective as MSCCL XML."""
    from towpath.pages.provenance import provenance

    options = given(
        ranks=ranks, algorithm=algorithm, channels=channels, protocol=protocol, root=root,
        hosts=hosts, chunks_per_channel=chunks, columns=columns,
    )  # fmt: skip
    is_output = str(file) == "-"
    if not is_output:
        check_output(file)
        if file.exists() and not force:
            raise ConfigError("exists; --force replaces it", file=str(file))
    written = generated(context.info_name or "", options)
    text = written.to_xml()
    if is_output:
        sys.stdout.write(text)
        return
    write_text(file, text)
    steps = text.count("<step ")
    if as_json:
        found = {"file": str(file), "schedule": written.name, "ranks": written.ranks}
        print_json({**found, "steps": steps}, provenance(schedules=[written]))
    note(
        f"written: {file}, {written.name} of {written.ranks} ranks, {written.protocol}, "
        f"{written.channels} channels, {steps} steps"
    )


for _name in groups.COLLECTIVES:
    app.command(_name)(schedule)
app.command("machine")(machine)
app.command("driver")(driver)
