# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""`towpath kernel run FILE.cu`: a CUDA program with NVSHMEM on described GPUs, or live."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from towpath.cli.options import Seed, advanced, given, refuse
from towpath.cli.output_file import check_output, command_line, note
from towpath.errors import ConfigError

if TYPE_CHECKING:
    from towpath.api.kernel_profile import KernelProfile

KernelLimit = Annotated[
    float,
    advanced(
        min=0,
        help="seconds that a thread of a kernel may compute without a wait; 0: any number",
    ),
]
Unchecked = Annotated[
    bool,
    advanced(
        "--unchecked",
        help="with --live: loads and stores are not checked",
    ),
]
RaceCheck = Annotated[
    bool,
    advanced(
        "--race-check",
        help="blocks that race for a word of global memory are an error",
    ),
]
app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command("run")
def run(
    file: Annotated[Path, typer.Argument(help="a CUDA source with a main()")],
    arguments: Annotated[
        list[str] | None, typer.Argument(help="of main(), after --", metavar="[-- ARGUMENTS]...")
    ] = None,
    machine: Annotated[
        str | None, typer.Option(help="a machine of GPUs to simulate: dgx-h100")
    ] = None,
    pes: Annotated[int, typer.Option(min=1, help="how many PEs, one for each GPU")] = 2,
    live: Annotated[
        bool, typer.Option("--live", help="PEs are processes of this host; nothing is simulated")
    ] = False,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", help="another value: gpu_cost.kernel.queue_pairs=32"),
    ] = None,
    flags: Annotated[
        list[str] | None,
        advanced("--flag", help="of the compiler: --flag=-DSIZE=4"),
    ] = None,
    timeout: Annotated[
        float, typer.Option(min=0.1, help="with --live: seconds in which nothing may happen")
    ] = 60.0,
    kernel_limit: KernelLimit = 30.0,
    unchecked: Unchecked = False,
    race_check: RaceCheck = False,
    seed: Seed = 1,
    profile: Annotated[
        bool, typer.Option("--profile", help="say where the time of the kernels goes")
    ] = False,
    trace: Annotated[
        Path | None, typer.Option("--trace", metavar="FILE", help="write a Perfetto trace of it")
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="write a page of it (.html)")
    ] = None,
) -> None:
    """Compile a CUDA program for this host and run its main() on every PE.

    On a described machine it runs in simulated time; with --live, in processes of this host. The
    exit status is the highest that main() returned.
    """
    from towpath.api.gpu_kernel import kernel

    simulated = {"set": settings or None, "race_check": race_check or None}
    _check(machine, live, given(**simulated), given(unchecked=unchecked or None))
    check_output(trace)
    check_output(out)
    if sys.stderr.isatty():
        note(f"towpath: compiling {file}")
    is_recorded = profile or trace is not None or out is not None
    source = kernel(file, flags=flags or ())
    if live:
        result = source.run_live(
            pes, arguments=arguments or (), timeout_s=timeout, profile=is_recorded,
            checked=not unchecked, kernel_limit_s=kernel_limit,
        )  # fmt: skip
    else:
        assert machine is not None
        result = source.run(
            machine, pes, arguments=arguments or (), settings=settings or (), seed=seed,
            profile=is_recorded, kernel_limit_s=kernel_limit, race_check=race_check,
        )  # fmt: skip
        print(f"# {pes} PEs on {machine}: {result.time_us:.3f} us", flush=True)
    for remark in result.remarks:
        note(f"remark: {remark}")
    if result.profile is not None:
        _deliver(result.profile, profile, trace, out)
    if result.status != 0:
        raise typer.Exit(result.status)


def _check(
    machine: str | None, live: bool, simulated: dict[str, Any], measured: dict[str, Any]
) -> None:
    """Rejects a run without a place or with two places, and options without effect.

    Raises:
        ConfigError: the run or an option is rejected.
    """
    if live == (machine is not None):
        raise ConfigError("give either --machine, to simulate, or --live")
    if live:
        refuse(simulated, "requires --machine")
    else:
        refuse(measured, "requires --live")


def _deliver(
    recorded: KernelProfile, is_printed: bool, trace: Path | None, out: Path | None
) -> None:
    if is_printed:
        print(recorded.text)
    if trace is not None:
        recorded.trace(trace)
        note(f"trace: {trace}")
    if out is not None:
        recorded.report(out, command=command_line())
        note(f"page: {out}")
