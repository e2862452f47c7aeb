# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""`towpath nccl`: the host part of NCCL or RCCL from its source."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from towpath.cli import groups
from towpath.cli.options import AsJson
from towpath.cli.output_file import print_json
from towpath.cli.progress import bar

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
