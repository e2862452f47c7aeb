# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""The command `towpath`: its subcommands, and the options before them."""

from __future__ import annotations

from typing import Annotated

import typer

from towpath.cli import (
    bench,
    entry,
    explain,
    export,
    groups,
    import_machine,
    kernel,
    machines,
    new,
    perf,
    replay,
    run,
    shmem,
    synthesise,
    tune,
    validate,
    verify,
)

main = entry.main

app = groups.group("Moves data between processors: for real, or simulated on a described machine.")
app.command("run")(run.run)
app.command("perf")(perf.perf)
app.command("explain")(explain.explain)
app.command("expect")(explain.expect)
app.command("verify")(verify.verify)
app.command("validate")(validate.validate)
app.command("synthesise")(synthesise.synthesise)
app.command("replay")(replay.replay)
app.command("machines")(machines.machines)
app.command("algorithms")(machines.algorithms)
app.command("show")(machines.show)
app.command("routes")(machines.routes)
app.command("import")(import_machine.import_machine)
app.add_typer(bench.app, name="bench")
app.add_typer(tune.app, name="tune")
app.add_typer(export.app, name="export")
app.add_typer(new.app, name="new")
app.add_typer(kernel.app, name="kernel")
app.add_typer(shmem.app, name="shmem")


def _print_version(is_asked: bool) -> None:
    if is_asked:
        from importlib.metadata import version

        print(f"towpath {version('towpath')}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool,
        typer.Option("--version", is_eager=True, callback=_print_version, help="print the version"),
    ] = False,
) -> None:
    """Options before the command."""


@app.command("help")
def print_help(
    command: Annotated[
        list[str] | None, typer.Argument(help="a command, and one of its own: bench ethernet")
    ] = None,
) -> None:
    """Print the help of a command."""
    app([*(command or []), "--help"], prog_name="towpath", standalone_mode=False)


if __name__ == "__main__":
    main()
