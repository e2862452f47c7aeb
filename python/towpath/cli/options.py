# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Options that several commands share, with the same name, meaning and bounds in each."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from towpath.errors import ConfigError

ADVANCED = "Advanced options"
_SEED_MAX = (1 << 63) - 1
_UNTYPED: tuple[object, ...] = (None, [], ())  # options that were not typed


def complete_machine(incomplete: str) -> list[str]:
    """The shipped machines whose names begin with a text, for shell completion."""
    from towpath.specs import shipped

    return [name for name in sorted(shipped.kinds()) if name.startswith(incomplete)]


def given(**options: Any) -> dict[str, Any]:
    """The given options by name; an option that was not given is None."""
    return {name: value for name, value in options.items() if value is not None}


def refuse(options: Mapping[str, object], reason: str) -> None:
    """Rejects options that would have no effect.

    Args:
        options: options in the form of `given`.
        reason: the rest of the sentence after the option's name.

    Raises:
        ConfigError: one of the options was given.
    """
    for name in options:
        raise ConfigError(f"--{name.replace('_', '-')} {reason}")


@contextmanager
def errors_name_options() -> Iterator[None]:
    """Replaces the argument of the library in an error by the command's option."""
    try:
        yield
    except ConfigError as error:
        name = error.field or ""
        if error.file is not None or not error.problem.startswith(f"{name} ") or name == "":
            raise
        option = "--set" if name == "settings" else f"--{name.replace('_', '-')}"
        raise ConfigError(option + error.problem[len(name) :]) from None


def takes(**groups: Mapping[str, Any]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Adds groups of options to a command, which gets a dict of the given options of each group.

    Args:
        groups: the options of each group by name, as annotations of typer, by the parameter of the
            command.
    """

    def decorate(function: Callable[..., None]) -> Callable[..., None]:
        own = [
            parameter
            for parameter in inspect.signature(function, eval_str=True).parameters.values()
            if parameter.name not in groups
        ]
        added = [
            inspect.Parameter(
                name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation
            )
            for options in groups.values()
            for name, annotation in options.items()
        ]

        def command(**typed: Any) -> None:
            values = {
                group: {name: each for name in options if (each := typed.pop(name)) not in _UNTYPED}
                for group, options in groups.items()
            }
            function(**typed, **values)

        signature = inspect.Signature([*own, *added])
        command.__signature__ = signature  # type: ignore[attr-defined]
        command.__annotations__ = {each.name: each.annotation for each in (*own, *added)}
        command.__name__, command.__doc__ = function.__name__, function.__doc__
        return command

    return decorate


def advanced(*flags: str, **settings: Any) -> Any:
    """An option below the common ones in the help of its command."""
    return typer.Option(*flags, rich_help_panel=ADVANCED, **settings)


def machine_option(description: str) -> object:
    """`--machine` for commands that need a certain kind of machine."""
    return typer.Option(
        "--machine", metavar="NAME", help=description, autocompletion=complete_machine
    )


# Options of every command.
AsJson = Annotated[bool, typer.Option("--json", help="print one JSON object instead of text")]
Jobs = Annotated[int, typer.Option("--jobs", metavar="N", min=0, help="processes; 0: one per core")]
Scheduler = Annotated[
    str | None,
    advanced(
        "--scheduler",
        metavar="HOST:PORT",
        help="a dask scheduler whose workers simulate instead",
    ),
]
Seed = Annotated[
    int,
    advanced(
        "--seed",
        metavar="N",
        min=0,
        max=_SEED_MAX,
        help="seed of what is random in the model",
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

# Options of what runs on a machine.
Machine = Annotated[str | None, machine_option("simulate on this machine: a name or a file")]
Hosts = Annotated[int | None, typer.Option("--hosts", metavar="N", help="hosts of the machine")]
Ranks = Annotated[
    int | None,
    advanced(
        "--ranks",
        metavar="N",
        help="GPUs or nodes of the whole machine",
    ),
]
RanksPerHost = Annotated[
    int | None,
    advanced(
        "--ranks-per-host",
        metavar="N",
        help="use only this many GPUs of each host",
    ),  # fmt: skip
]
CompleteFrom = Annotated[
    str | None,
    advanced(
        "--complete-from",
        metavar="NAME",
        help="the shipped machine that supplies what a topology file does not say",
        autocompletion=complete_machine,
    ),
]

Settings = Annotated[
    list[str] | None,
    advanced(
        "--set",
        metavar="PATH=VALUE",
        help="another value for a field of the machine: fabric.spine.oversubscription=2; `run` "
        "takes several values: 1,2,4",
    ),
]
Without = Annotated[
    list[str] | None,
    advanced(
        "--without",
        metavar="DEVICE",
        help="a device that has failed: host0/nic3, or nic3 for that of every host",
    ),
]

Live = Annotated[
    int | None,
    typer.Option("--live", metavar="RANKS", help="run between this many processes of this host"),
]

# The size and the state of a machine: options of `towpath.load`.
MACHINE: dict[str, Any] = {
    "hosts": Hosts, "ranks": Ranks, "ranks_per_host": RanksPerHost, "complete_from": CompleteFrom,
    "settings": Settings, "without": Without,
}  # fmt: skip


def request_options(*names: str) -> dict[str, Any]:
    """Options that are fields of `Request`, generated from its definition.

    Args:
        names: the options; none: all.
    """
    from towpath.api.request import option_fields

    options: dict[str, Any] = {}
    for each in option_fields():
        if names and each.name not in names:
            continue
        settings = dict(each.metadata)
        kind = settings.pop("type", type(each.default))
        flags = settings.pop("flags")
        name = "--" + each.name.replace("_", "-")
        if kind is bool:
            flags = (f"{name}/--no-{each.name}",)
        elif not any(flag.startswith("--") for flag in flags):
            flags = (name, *flags)
        settings.pop("only")
        panel = ADVANCED if settings.pop("advanced", False) else None
        option = typer.Option(*flags, rich_help_panel=panel, **settings)
        options[each.name] = Annotated[kind | None, option]
    return options


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
    advanced(
        "--result",
        metavar="NAME",
        help="the collective that a file with coll='custom' computes",
    ),  # fmt: skip
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
    advanced(
        "--chunks",
        metavar="N",
        min=1,
        help="pieces that chains and trees send per channel; default: 4",
    ),
]
Columns = Annotated[
    int | None,
    advanced(
        "--columns",
        metavar="N",
        min=1,
        help="grids: columns of the ranks; default: a single row",
    ),
]
