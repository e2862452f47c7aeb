# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""What all groups of commands have in common."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any, ClassVar

import typer
import typer.main
from typer.core import TyperCommand, TyperGroup

from towpath.names import comparable

# The collectives, here for the names of commands: help must not load the compiled core.
COLLECTIVES = (
    "all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce", "all_to_all",
    "gather", "scatter", "all_to_all_v", "send_recv", "barrier",
)  # fmt: skip
_HELP = ("-h", "--help")


class Group(TyperGroup):
    """A group that prints its help if no command follows, and accepts all-reduce for all_reduce."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Prints help before parsing, which would load pydantic."""
        command: Any = self
        innermost = ctx
        words = list(args)
        while words and (name := _command_named(command, words[0])) is not None:
            command = command.commands[name]
            innermost = typer.Context(command, parent=innermost, info_name=name)
            del words[0]
        own = words[: words.index("--")] if "--" in words else words
        if set(_HELP) & set(own) or (not words and isinstance(command, TyperGroup)):
            if isinstance(command, CommandOfFile):
                command = command.of_file(words) or command
                innermost = typer.Context(
                    command, parent=innermost.parent, info_name=innermost.info_name
                )
            print(command.get_help(innermost))
            raise typer.Exit
        return super().parse_args(ctx, args)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        return super().resolve_command(ctx, [_command_named(self, args[0]) or args[0], *args[1:]])


class Command(TyperCommand):
    """A command whose help shows its advanced options below the common ones."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Writes the arguments and options under their headings."""
        sections: dict[str, list[tuple[str, str]]] = {"Arguments": [], "Options": []}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is not None:
                is_argument = parameter.param_type_name == "argument"
                panel = getattr(parameter, "rich_help_panel", None) or "Options"
                sections.setdefault("Arguments" if is_argument else panel, []).append(record)
        for heading, records in sections.items():
            if records:
                with formatter.section(heading):
                    formatter.write_dl(records)


class CommandOfFile(Command):
    """A command that passes its arguments on to another command, selected by a file among them."""

    def of_file(self, words: list[str]) -> TyperCommand | None:
        """The other command; None if no argument names such a file."""
        raise NotImplementedError


class _Elsewhere(TyperCommand):
    """Name and help of a command whose module is not imported yet."""

    def __init__(self, name: str, place: str, summary: str) -> None:
        super().__init__(name, help=summary)
        self._place = place

    def load(self) -> Any:
        """Imports the command."""
        module, _, attribute = self._place.partition(":")
        found = getattr(import_module(f"towpath.cli.{module}"), attribute)
        if isinstance(found, typer.Typer):
            return typer.main.get_group(found)
        alone = typer.Typer(add_completion=False, rich_markup_mode=None)
        alone.command(self.name, cls=Command)(found)
        return typer.main.get_command(alone)


class _Commands(dict[str, Any]):
    """Commands by name; `[]` and `items` import what they return, `get` does not."""

    def __getitem__(self, name: str) -> Any:
        found = super().__getitem__(name)
        if isinstance(found, _Elsewhere):
            found = self[name] = found.load()
        return found

    def items(self) -> Any:
        return [(name, self[name]) for name in self]


class LazyGroup(Group):
    """A group that imports only the called command; help shows the summaries of all commands.

    Reading the options of all commands takes longer than a small simulation.
    """

    # By heading and name: where a command is in this package, a function or a group, and its
    # summary.
    listed: ClassVar[Mapping[str, Mapping[str, tuple[str, str]]]] = {}

    def __init__(self, *args: Any, commands: Mapping[str, Any], **settings: Any) -> None:
        listed = {
            name: _Elsewhere(name, place, summary)
            for under in self.listed.values()
            for name, (place, summary) in under.items()
        }
        super().__init__(*args, commands=_Commands(listed | dict(commands)), **settings)

    def list_commands(self, ctx: Any) -> list[str]:
        return list(self.commands)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Writes the summaries under their headings, each in full."""
        names = {name for under in self.listed.values() for name in under}
        rest = {
            name: ("", self.commands[name].help or "")
            for name in self.commands
            if name not in names
        }
        for heading, under in [*self.listed.items(), ("Other", rest)]:
            with formatter.section(heading):
                formatter.write_dl([(name, summary) for name, (_, summary) in under.items()])

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name, _, rest = super().resolve_command(ctx, args)
        return name, self.commands[name], rest


class _Typer(typer.Typer):
    """A group that uses the command class of this module."""

    def command(self, name: str | None = None, **settings: Any) -> Any:
        return super().command(name, **{"cls": Command, **settings})


def group(description: str, kind: type[Group] = Group) -> typer.Typer:
    """Creates a group of commands.

    Args:
        description: help text of the group.
        kind: class of the group.
    """
    return _Typer(
        cls=kind,
        help=description,
        context_settings={"help_option_names": list(_HELP), "max_content_width": 100},
        pretty_exceptions_enable=False,
        rich_markup_mode=None,  # rich takes as long to load as everything else
    )


def _command_named(command: Any, word: str) -> str | None:
    """The name of the command in a group that a word selects."""
    names = {comparable(name): name for name in getattr(command, "commands", {})}
    return names.get(comparable(word))
