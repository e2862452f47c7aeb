# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""The command `towpath`: its subcommands, and the options before them."""

from __future__ import annotations

from typing import Annotated, ClassVar

import typer

from towpath.cli import entry, groups

main = entry.main


class Commands(groups.LazyGroup):
    """All commands but `help`."""

    listed: ClassVar = {
        "Collectives": {
            "expect": (
                "run:expect",
                "Print the table that nccl-tests should print, with the model's error.",
            ),
            "run": (
                "run:run",
                "Run a collective: simulated (--machine), for real (--live), or both.",
            ),
            "explain": (
                "explain:explain",
                "Explain which algorithm, protocol and channels NCCL or RCCL would use.",
            ),
            "nccl": ("nccl:app", "Build NCCL from its source, so that it decides itself."),
            "tune": ("tune:app", "Search the best schedule by size, or packets on links."),
            "verify": ("verify:verify", "Check a schedule, and find the size at which it hangs."),
            "algorithms": ("machines:algorithms", "List the algorithms with their costs."),
        },
        "Machines": {
            "machines": ("machines:machines", "List the machines that come with Towpath."),
            "show": ("machines:show", "Describe a machine as text, and draw it with --svg."),
            "import": (
                "import_machine:import_machine",
                "Write a machine file from the output of a host's own tools.",
            ),
            "export": ("export:app", "Write a schedule, a machine or a chip for other programs."),
        },
        "Operators": {
            "doctor": (
                "doctor:doctor",
                "Find the cause of a slow or hanging job in logs, traces and topologies.",
            ),
            "job": (
                "job:job",
                "Print the communication of a traced job, as traced and on machines.",
            ),
            "whatif": (
                "whatif:whatif",
                "Improve each link, latency and constant in turn, and print the gains.",
            ),
        },
        "Programs": {
            "kernel": ("kernel:app", "Run CUDA and TT-Metalium kernels on described machines."),
            "shmem": ("shmem:app", "Compile and run OpenSHMEM programs on this host."),
            "new": ("new:app", "Create a project to start from."),
        },
        "Studies": {
            "bench": ("bench:app", "Study a machine: tables, a page and findings."),
            "replay": ("replay:replay", "Replay the requests of a traced program on a chip."),
            "routes": ("machines:routes", "Plan static routes between chips."),
        },
        "Trust": {
            "validate": (
                "validate:validate",
                "Compare measurements with the models: predicted, measured, error.",
            ),
            "reproduce": (
                "reproduce:reproduce",
                "Compare statements of five documents with runs, row by row.",
            ),
            "version": (
                "version:print_version",
                "Print the version, and with --environment the versions of related software.",
            ),
        },
    }


app = groups.group(
    "Moves data between processors: for real, or simulated on a described machine.", Commands
)


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
