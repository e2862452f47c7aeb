# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""What all groups of commands have in common."""

from __future__ import annotations

from typing import Any

import typer
from typer.core import TyperGroup

# The collectives, here for the names of commands: help must not load the compiled core.
COLLECTIVES = (
    "all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce", "all_to_all",
    "gather", "scatter", "all_to_all_v", "send_recv", "barrier",
)  # fmt: skip
_HELP = ("-h", "--help")


class Group(TyperGroup):
    """A group that prints its help when no command follows, and finds all-reduce as all_reduce."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Print help before anything is parsed, which would load pydantic."""
        command: Any = self
        innermost = ctx
        words = list(args)
        while words and (name := _command_named(command, words[0])) is not None:
            command = command.commands[name]
            innermost = typer.Context(command, parent=innermost, info_name=name)
            del words[0]
        if set(_HELP) & set(words) or (not words and isinstance(command, TyperGroup)):
            print(command.get_help(innermost))
            raise typer.Exit
        return super().parse_args(ctx, args)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        return super().resolve_command(ctx, [_command_named(self, args[0]) or args[0], *args[1:]])


def group(description: str) -> typer.Typer:
    """A new group of commands.

    Args:
        description: its help.
    """
    return typer.Typer(
        cls=Group,
        help=description,
        context_settings={"help_option_names": list(_HELP), "max_content_width": 100},
        pretty_exceptions_enable=False,
        rich_markup_mode=None,  # rich takes as long to load as everything else
    )


def _command_named(command: Any, word: str) -> str | None:
    """The name of the command of a group that a word means."""
    names = {_key(name): name for name in getattr(command, "commands", {})}
    return names.get(_key(word))


def _key(name: str) -> str:
    return name.lower().replace("-", "").replace("_", "")
