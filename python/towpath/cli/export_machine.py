# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""`towpath export machine`: a described machine as JSON, for programs in C++."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from towpath.cli.machine import one_setting
from towpath.cli.options import Hosts, Ranks, Settings, Without, complete_machine
from towpath.errors import ConfigError


def machine(
    name: Annotated[
        str,
        typer.Argument(help="a shipped machine, or a file", autocompletion=complete_machine),
    ],
    as_json: Annotated[bool, typer.Option("--json", help="as JSON, on standard output")] = False,
    hosts: Hosts = None,
    ranks: Ranks = None,
    settings: Settings = None,
    without: Without = None,
) -> None:
    """Write a machine of any kind for C++.

    A C++ program reads the file with towpath/machine/load.hpp.
    """
    from towpath.specs import catalogue
    from towpath.specs.export import json_of

    if not as_json:
        raise ConfigError("machines can only be written as JSON; add --json", file=name)
    spec = catalogue.load_any(name)
    if hosts is not None or ranks is not None or settings or without:
        spec = catalogue.load(
            name, hosts, ranks, settings=one_setting(settings), without=without or ()
        )
    sys.stdout.write(json_of(spec))
