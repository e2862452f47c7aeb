# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Options about what NCCL or RCCL would run: which of them, and what its user has set."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from towpath.cli.options import given, refuse
from towpath.errors import ConfigError, quoted

if TYPE_CHECKING:
    from towpath.collectives.nccl.imitation import Library

RunAs = Annotated[
    str | None,
    typer.Option("--as", metavar="LIBRARY", help="run what this library would run: nccl, rccl"),
]
OfLibrary = Annotated[
    str, typer.Option("--as", metavar="LIBRARY", help="whose choice: nccl or rccl")
]
Variables = Annotated[
    list[str] | None,
    typer.Option(
        "--env", metavar="NAME=VALUE", help="a variable of the library: NCCL_ALGO=Ring; repeatable"
    ),
]
GraphFile = Annotated[
    str | None,
    typer.Option("--graph", metavar="FILE", help="channels from a file, as NCCL_GRAPH_FILE"),
]
TunerFile = Annotated[
    str | None,
    typer.Option("--tuner", metavar="FILE", help="a configuration of NCCL's example tuner plugin"),
]
Generation = Annotated[
    str | None,
    typer.Option(
        "--generation", metavar="NAME", help="of the GPUs: volta, ampere, hopper, blackwell"
    ),
]
Cpu = Annotated[
    str | None,
    typer.Option("--cpu", metavar="NAME", help="of the hosts: intel (default), amd, arm, other"),
]


def library_from(
    name: str | None, variables: list[str] | None, **files: str | None
) -> Library | None:
    """The library that the options name; None if they name none.

    Args:
        name: as typed with --as.
        variables: as typed with --env.
        files: `graph_file`, `tuner_file`, and the assumptions `generation` and `cpu`.

    Raises:
        ConfigError: an option is wrong, or has no effect without --as.
    """
    typed: dict[str, Any] = given(**files)
    if name is None:
        words = {one.removesuffix("_file"): value for one, value in typed.items()}
        refuse({**({"env": variables} if variables else {}), **words}, "requires --as")
        return None
    from towpath.collectives.nccl.imitation import Library

    values: dict[str, str] = {}
    for text in variables or []:
        variable, equals, value = text.partition("=")
        if not equals or not variable:
            raise ConfigError(f"--env is {quoted(text)}; it must be like NCCL_ALGO=Ring")
        if variable in values:
            raise ConfigError(f"--env names {variable} a second time")
        values[variable] = value
    return Library.of(name, variables=values, **typed)
