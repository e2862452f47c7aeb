# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Options about the choice of NCCL or RCCL: the library and the settings of its user."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from towpath.cli.options import advanced
from towpath.errors import ConfigError, quoted

if TYPE_CHECKING:
    from towpath.collectives.nccl.imitation import Library

OfLibrary = Annotated[
    str | None,
    typer.Option(
        "--as", metavar="LIBRARY", help="whose choice: nccl or rccl; default: as the GPUs need"
    ),
]
# What the user of the library has set, and what the machine does not say.
LIBRARY: dict[str, Any] = {
    "env": Annotated[
        list[str] | None,
        advanced(
            "--env", metavar="NAME=VALUE", help="a variable of the library: NCCL_ALGO=Ring; "
            "repeatable",
        ),
    ],
    "release": Annotated[
        str | None,
        advanced(
            "--release", metavar="RELEASE", help="whose own choices: 2.27.5; default: the newest"
        ),
    ],
    "graph": Annotated[
        str | None,
        typer.Option("--graph", metavar="FILE", help="channels from a file, as NCCL_GRAPH_FILE"),
    ],
    "tuner": Annotated[
        str | None,
        typer.Option("--tuner", metavar="FILE", help="a configuration of NCCL's tuner plugin"),
    ],
    "generation": Annotated[
        str | None,
        advanced(
            "--generation", metavar="NAME",
            help="of the GPUs: volta, ampere, hopper, blackwell",
        ),
    ],
    "cpu": Annotated[
        str | None,
        advanced(
            "--cpu", metavar="NAME",
            help="of the hosts: intel (default), amd, arm, other",
        ),
    ],
}  # fmt: skip


def library_from(name: str, options: dict[str, Any]) -> Library:
    """The library selected by the options.

    Args:
        name: value of --as.
        options: the given options of LIBRARY.

    Raises:
        ConfigError: an option is wrong.
    """
    from towpath.collectives.nccl.imitation import Library

    values = variables_from(options)
    return Library.of(
        name, variables=values, graph_file=options.get("graph"), tuner_file=options.get("tuner"),
        generation=options.get("generation"), cpu=options.get("cpu"),
        release=options.get("release"),
    )  # fmt: skip


def variables_from(options: dict[str, Any]) -> dict[str, str]:
    """The variables of --env.

    Args:
        options: the typed options of LIBRARY.

    Raises:
        ConfigError: one is not an assignment, or appears twice.
    """
    values: dict[str, str] = {}
    for text in options.get("env", ()):
        variable, equals, value = text.partition("=")
        if not equals or not variable:
            raise ConfigError(f"--env is {quoted(text)}; it must be like NCCL_ALGO=Ring")
        if variable in values:
            raise ConfigError(f"--env sets {variable} twice")
        values[variable] = value
    return values
