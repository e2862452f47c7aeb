# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""`towpath nccl`: NCCL or RCCL from source, for decisions and for programs on virtual GPUs."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any

import typer

from towpath.cli import groups
from towpath.cli.library_options import variables_from
from towpath.cli.machine import gpu_cluster
from towpath.cli.options import MACHINE, AsJson, machine_option, takes
from towpath.cli.output_file import print_json
from towpath.cli.progress import bar
from towpath.errors import ConfigError

app = groups.group("Build NCCL from its source, so that it decides itself.")


@app.command("build")
def build(
    path: Annotated[
        Path,
        typer.Argument(help="source of NCCL or RCCL: checkout, bare repository, archive's files"),
    ],
    release: Annotated[
        str | None,
        typer.Option(
            "--release", metavar="RELEASE", help="2.28.9, rocm-6.2.2, or several: 2.26.2,2.28.9"
        ),
    ] = None,
    jobs: Annotated[
        int | None, typer.Option("--jobs", metavar="N", min=1, max=1024, help="compilers at once")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Compile the host part of a release of NCCL or RCCL, once."""
    from towpath.collectives.nccl_itself.build import build as build_release
    from towpath.collectives.nccl_itself.source import release_name

    built = []
    for each in release.split(",") if release else [None]:
        with bar(each or path.name, 1.0) as update:
            built.append(build_release(path, each, jobs=jobs, update=update))
        if not as_json:
            print(f"{release_name(built[-1].release)}: {built[-1].program}")
    if as_json:
        print_json([{"release": one.release, "program": str(one.program)} for one in built])


@app.command("list")
def list_releases(as_json: AsJson = False) -> None:
    """List the releases that are built."""
    from towpath.collectives.nccl_itself.build import built_releases

    releases = [*built_releases(), *built_releases(is_rccl=True)]
    if as_json:
        print_json([{"release": release} for release in releases])
    else:
        print("\n".join(releases or ["none; towpath nccl build PATH builds a release"]))


@app.command("cmake")
def print_cmake_file() -> None:
    """Print the file that has CMake's function towpath_nccl_test."""
    from towpath.collectives.nccl_itself.recipe import INSTALLED

    print(INSTALLED / "cmake" / "TowpathNccl.cmake")


_OfRelease = Annotated[
    str | None,
    typer.Option("--release", metavar="RELEASE", help="a built release; default: the newest"),
]


@app.command("compile")
def compile_files(
    files: Annotated[
        list[Path],
        typer.Argument(help="C++ and CUDA sources of one program, or a checkout of nccl-tests"),
    ],
    output: Annotated[Path, typer.Option("--out", "-o", metavar="PATH", help="the program")] = Path(
        "a.out"
    ),
    flag: Annotated[
        list[str] | None,
        typer.Option("--flag", metavar="FLAG", help="for the compiler: --flag=-Isrc, repeated"),
    ] = None,
    release: _OfRelease = None,
) -> None:
    """Compile a program that uses NCCL, its kernels included, for virtual GPUs."""
    from towpath.collectives.nccl_itself.library import (
        compile_nccl_tests,
        compile_program,
        library_of,
    )

    library = library_of(release or _newest())
    if files[0].is_dir():
        if len(files) > 1:
            raise ConfigError("name a folder of nccl-tests as the only file")
        for program in compile_nccl_tests(files[0], output, library, flag or ()):
            print(program)
    else:
        compile_program(files, output, library, flag or ())


@app.command("run", context_settings={"ignore_unknown_options": True})
@takes(size=MACHINE)
def run(
    size: dict[str, Any],
    command: Annotated[list[str], typer.Argument(help="the program and its arguments, after --")],
    machine: Annotated[str, machine_option("the cluster of GPUs: a name or a file")],
    release: _OfRelease = None,
    per_host: Annotated[
        int | None,
        typer.Option(
            "--processes-per-host",
            metavar="N",
            min=1,
            max=1024,
            help="start the program N times on each host, with RANK, WORLD_SIZE, LOCAL_RANK and "
            "the names of Open MPI; default: once, on the first host",
        ),
    ] = None,
    env: Annotated[
        list[str] | None,
        typer.Option("--env", metavar="NAME=VALUE", help="a variable of the program, repeated"),
    ] = None,
    has_real_time: Annotated[
        bool, typer.Option("--real-time", help="the program's clocks show real time")
    ] = False,
) -> None:
    """Run a program that uses NCCL on the GPUs of a described machine."""
    from towpath.api.nccl import call_time, nccl_host
    from towpath.collectives.nccl_itself.library import library_of
    from towpath.collectives.nccl_itself.run import Processes, run_program

    cluster = gpu_cluster(machine, **size)
    host = nccl_host(cluster)
    variables = variables_from({"env": env or ()})
    library = library_of(release or _newest())
    time_us = None
    if not has_real_time:
        time_us = call_time(
            lambda hosts, ranks: gpu_cluster(machine, hosts=hosts, ranks_per_host=ranks),
            library.release,
            {**os.environ, **variables},
        )
    raise typer.Exit(
        run_program(
            command,
            host,
            library,
            processes=Processes(cluster.hosts, per_host),
            variables=variables,
            time_us=time_us,
        )
    )


def _newest() -> str:
    from towpath.collectives.nccl_itself.build import built_releases

    releases = built_releases()
    if not releases:
        raise ConfigError("no release of NCCL is built here; towpath nccl build PATH builds one")
    return releases[-1]
