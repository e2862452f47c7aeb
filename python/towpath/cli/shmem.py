# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""`towpath shmem`: OpenSHMEM programs between processes of this host."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from towpath.cli import groups

app = groups.group("Compile and run OpenSHMEM programs on this host.")


@app.command("run")
def run(
    file: Annotated[Path, typer.Argument(help="a source in C or C++, or a compiled program")],
    arguments: Annotated[
        list[str] | None, typer.Argument(help="of main(), after --", metavar="[-- ARGUMENTS]...")
    ] = None,
    pes: Annotated[int, typer.Option(min=1, help="how many PEs")] = 2,
    flags: Annotated[
        list[str] | None, typer.Option("--flag", help="of the compiler: --flag=-DSIZE=4")
    ] = None,
    timeout: Annotated[
        float, typer.Option(min=1, help="seconds for which a PE waits for another")
    ] = 60.0,
) -> None:
    """Run a program as PEs. The exit status is the highest of a PE's."""
    from towpath.kernels import shmem_program

    words = arguments or []
    if file.suffix in shmem_program.COMPILERS:
        status = shmem_program.run_source(file, pes, words, flags=flags or (), timeout_s=timeout)
    else:
        status = shmem_program.run_program(file.resolve(), pes, words, timeout_s=timeout)
    if status != 0:
        raise typer.Exit(status)


@app.command("flags")
def flags() -> None:
    """Print the compiler's flags for OpenSHMEM programs.

    For example: cc hello.c $(towpath shmem flags) -o hello.
    """
    from towpath.kernels import shmem_program

    print(" ".join(shmem_program.compiler_flags()))
