# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Options that several commands have, with the same words and bounds in each."""

from __future__ import annotations

from typing import Annotated

import typer

TIMES_MAX = 1_000_000_000
_TIMEOUT_S_MAX = 86_400.0

# Of studies.
AsJson = Annotated[bool, typer.Option("--json", help="one JSON object instead of tables")]
Jobs = Annotated[int, typer.Option(min=0, help="processes; 0: one per core")]

# Of what runs on a machine.
Machine = Annotated[str | None, typer.Option(help="simulate on this machine: a name or a file")]
Hosts = Annotated[int | None, typer.Option(help="hosts of the machine")]
Ranks = Annotated[int | None, typer.Option(help="GPUs of the machine altogether")]
RanksPerHost = Annotated[int | None, typer.Option(help="use only so many GPUs of each host")]
CompleteFrom = Annotated[
    str | None,
    typer.Option(help="a shipped machine that supplies what a topology file does not say"),
]

# Of what runs live.
Iterations = Annotated[int, typer.Option(min=1, max=TIMES_MAX, help="live: measured invocations")]
Warmup = Annotated[int, typer.Option(min=0, max=TIMES_MAX, help="live: invocations before")]
Timeout = Annotated[
    float,
    typer.Option(min=0.1, max=_TIMEOUT_S_MAX, help="live: seconds to wait for a silent peer"),
]
