# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Options that several commands have: one name, one meaning and the same bounds in each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from towpath.errors import ConfigError

if TYPE_CHECKING:
    from towpath.collectives.live import LiveOptions

TIMES_MAX = 1_000_000_000
_SEED_MAX = (1 << 63) - 1
_TIMEOUT_S_MAX = 86_400.0


def complete_machine(incomplete: str) -> list[str]:
    """The shipped machines whose names begin so, for the completion of a shell."""
    from towpath.specs import shipped

    return [name for name in sorted(shipped.kinds()) if name.startswith(incomplete)]


def given(**options: Any) -> dict[str, Any]:
    """The options that were typed, by name; an option that was not is None."""
    return {name: value for name, value in options.items() if value is not None}


def refuse(options: Mapping[str, object], reason: str) -> None:
    """Refuse options that would have no effect.

    Args:
        options: as in `given`.
        reason: the rest of the sentence, which begins with the option's name.

    Raises:
        ConfigError: one of them was typed.
    """
    for name in options:
        raise ConfigError(f"--{name.replace('_', '-')} {reason}")


@contextmanager
def errors_name_options() -> Iterator[None]:
    """Errors about an argument of the library name the option of the command instead."""
    try:
        yield
    except ConfigError as error:
        name = error.field or ""
        if error.file is not None or not error.problem.startswith(f"{name} ") or name == "":
            raise
        option = "--set" if name == "settings" else f"--{name.replace('_', '-')}"
        raise ConfigError(option + error.problem[len(name) :]) from None


def live_options(live: int | None, **options: Any) -> LiveOptions | None:
    """How to measure live; None without --live.

    Args:
        live: the number of ranks, or None.
        options: fields of LiveOptions; None where the option was not typed.

    Raises:
        ConfigError: an option is given that has no effect without --live.
    """
    typed = given(**options)
    if live is None:
        names = {name.removesuffix("_s"): value for name, value in typed.items()}
        refuse(names, "requires --live; a simulated call takes the same time each time")
        return None
    from towpath.collectives.live import LiveOptions

    return LiveOptions(**typed)


def machine_option(description: str) -> object:
    """`--machine` where it means a certain kind of machine."""
    return typer.Option(
        "--machine", metavar="NAME", help=description, autocompletion=complete_machine
    )


# Options of every command.
AsJson = Annotated[bool, typer.Option("--json", help="print one JSON object instead of text")]
Jobs = Annotated[int, typer.Option("--jobs", metavar="N", min=0, help="processes; 0: one per core")]
Scheduler = Annotated[
    str | None,
    typer.Option(
        "--scheduler", metavar="HOST:PORT", help="a dask scheduler whose workers simulate instead"
    ),
]
Seed = Annotated[
    int,
    typer.Option(
        "--seed", metavar="N", min=0, max=_SEED_MAX, help="seed of what is random in the model"
    ),
]
OutFolder = Annotated[
    Path | None,
    typer.Option("--out", metavar="FOLDER", help="folder of page and JSON; default: COMMAND-NAME"),
]
OutPage = Annotated[
    Path | None,
    typer.Option(
        "--out", metavar="PATH", help="write a page: a file (.html), or a folder for page and JSON"
    ),
]
FormerOutPage = Annotated[Path | None, typer.Option("--page", "--report", hidden=True)]

# Options of what runs on a machine.
Machine = Annotated[str | None, machine_option("simulate on this machine: a name or a file")]
Hosts = Annotated[int | None, typer.Option("--hosts", metavar="N", help="hosts of the machine")]
Ranks = Annotated[
    int | None, typer.Option("--ranks", metavar="N", help="GPUs or nodes of the whole machine")
]
RanksPerHost = Annotated[
    int | None,
    typer.Option("--ranks-per-host", metavar="N", help="use only this many GPUs of each host"),
]
CompleteFrom = Annotated[
    str | None,
    typer.Option(
        "--complete-from",
        metavar="NAME",
        help="the shipped machine that supplies what a topology file does not say",
        autocompletion=complete_machine,
    ),
]

Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="PATH=VALUE",
        help="another value for a field of the machine, fabric.spine.oversubscription=2; `run` "
        "takes several values, 1,2,4; may be given for several fields",
    ),
]
Without = Annotated[
    list[str] | None,
    typer.Option(
        "--without",
        metavar="DEVICE",
        help="a device that has failed: host0/nic3, or nic3 for that of every host; may be given "
        "for several devices",
    ),
]

# Options of live runs.
Live = Annotated[
    int | None,
    typer.Option("--live", metavar="RANKS", help="run between this many processes of this host"),
]
Iterations = Annotated[
    int | None,
    typer.Option(
        "--iterations",
        "-n",
        metavar="N",
        min=1,
        max=TIMES_MAX,
        help="live: measured calls; default: 20",
    ),
]
Warmup = Annotated[
    int | None,
    typer.Option(
        "--warmup", "-w", metavar="N", min=0, max=TIMES_MAX, help="live: calls before; default: 5"
    ),
]
Timeout = Annotated[
    float | None,
    typer.Option(
        "--timeout", metavar="SECONDS", min=0.1, max=_TIMEOUT_S_MAX,
        help="live: seconds to wait for a silent peer; default: 30",
    ),
]  # fmt: skip
Pin = Annotated[
    bool | None,
    typer.Option("--pin/--no-pin", help="live: a core for each rank where there are enough"),
]

# Options of towpath's own schedules.
Algorithm = Annotated[
    str | None,
    typer.Option(
        "--algorithm", metavar="NAME", help="ring, tree, one_shot, ...: see `towpath algorithms`"
    ),
]
Protocol = Annotated[
    str | None,
    typer.Option(
        "--protocol",
        metavar="NAME",
        help="Simple, LL, LL128 or auto; default: Simple, `run` on GPUs: auto",
    ),
]
Root = Annotated[
    int | None,
    typer.Option(
        "--root", "-r", metavar="RANK", min=0, help="of broadcast, reduce, gather, scatter"
    ),
]
Result = Annotated[
    str | None,
    typer.Option(
        "--result", metavar="NAME", help="the collective that a file with coll='custom' computes"
    ),
]
ScheduleRanks = Annotated[
    int | None, typer.Option("--ranks", metavar="N", min=1, help="ranks of the schedule")
]
ScheduleHosts = Annotated[
    int | None,
    typer.Option(
        "--hosts", metavar="N", min=1, help="rings enter and leave each host on the same rail"
    ),
]
ScheduleChannels = Annotated[
    int | None, typer.Option("--channels", metavar="N", min=1, help="parallel channels; default: 1")
]
Chunks = Annotated[
    int | None,
    typer.Option(
        "--chunks",
        metavar="N",
        min=1,
        help="pieces that chains and trees send per channel; default: 4",
    ),
]
Columns = Annotated[
    int | None,
    typer.Option(
        "--columns", metavar="N", min=1, help="grids: columns of the ranks; default: a single row"
    ),
]
