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
        "run": (
            "run:run",
            "Run a collective or a schedule: simulated (--machine), for real (--live), or both.",
        ),
        "perf": (
            "perf:perf",
            "Time a live collective: median, 99th percentile, spread, and how near the cores are.",
        ),
        "explain": (
            "explain:explain",
            "Say which algorithm, protocol and channels NCCL or RCCL would run, and why.",
        ),
        "expect": (
            "explain:expect",
            "Print the table that nccl-tests should print, with the model's error beside each row.",
        ),
        "verify": (
            "verify:verify",
            "Say whether a schedule is correct, and from which size it would hang.",
        ),
        "validate": (
            "validate:validate",
            "Compare tables of measurements with the models: predicted, measured, error.",
        ),
        "synthesise": (
            "synthesise:synthesise",
            "Write a schedule for a machine of GPUs, faster than the listed ones if there is one.",
        ),
        "replay": (
            "replay:replay",
            "Replay the requests of a traced program: how long on this chip, and where they wait.",
        ),
        "machines": ("machines:machines", "List the machines that come with towpath, by kind."),
        "algorithms": (
            "machines:algorithms",
            "List the algorithms that towpath writes schedules for, with their cost.",
        ),
        "show": ("machines:show", "Describe a machine as text, and draw it with --svg."),
        "routes": (
            "machines:routes",
            "Plan static routes between chips as commands of Ethernet cores, in their best order.",
        ),
        "import": (
            "import_machine:import_machine",
            "Write a machine file from what the tools of a host print about it.",
        ),
        "bench": ("bench:app", "Studies of a described machine, as tables and a page."),
        "tune": ("tune:app", "What to use on a machine: schedules by size, packets on links."),
        "export": (
            "export:app",
            "Write one of towpath's own schedules, a machine, or a chip for other programs.",
        ),
        "new": ("new:app", "Make a project to begin with."),
        "kernel": ("kernel:app", "Run kernels in their own source form on described machines."),
        "shmem": (
            "shmem:app",
            "Compile and run OpenSHMEM programs in C and C++ between processes of this host.",
        ),
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
