# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Hooks of mkdocs: references from the code, and linked files outside of docs/."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer
import typer.main
from mkdocs.structure.files import File, Files, InclusionLevel

import towpath
from towpath.cli import main as cli

ROOT = Path(__file__).resolve().parents[1]
COPIED = "repository"  # the folder of the site that has files from outside of docs/
LINK = re.compile(r"(\]\()([^)\s#:]+)(#[^)\s]*)?\)")
CODE = re.compile(r"^```.*?^```$|`[^`\n]+`", re.MULTILINE | re.DOTALL)


def on_files(files: Files, config: Any) -> Files:
    """Adds the generated pages, and all that a page links to outside of docs/."""
    files.append(File.generated(config, "reference_cli.md", content=cli_reference()))
    files.append(File.generated(config, "reference_python.md", content=python_reference()))
    waiting = [Path(file.abs_src_path) for file in files.documentation_pages() if file.abs_src_path]
    seen = set(waiting)
    while waiting:
        page = waiting.pop()
        for target in targets(page):
            if target in seen or not is_copied(target):
                continue
            seen.add(target)
            name = f"{COPIED}/{target.relative_to(ROOT)}"
            copied = File.generated(config, name, abs_src_path=str(target))
            copied.inclusion = InclusionLevel.NOT_IN_NAV
            files.append(copied)
            if target.suffix == ".md":
                waiting.append(target)
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """The links of a page as links between pages of the site; links to folders become text."""
    name = page.file.src_uri
    copied = name.startswith(COPIED + "/")
    source = ROOT / name.removeprefix(COPIED + "/") if copied else ROOT / "docs" / name
    markdown = re.sub(r"^```\w+\.(\w+)$", language, markdown, flags=re.MULTILINE)
    return outside_code(markdown, lambda text: LINK.sub(lambda m: new_link(m, source, name), text))


def language(match: re.Match[str]) -> str:
    """The fence of a block that has the name of a file."""
    return "```" + {"txt": "text", "py": "python", "cu": "cpp", "cpp": "cpp"}[match[1]]


def new_link(match: re.Match[str], source: Path, name: str) -> str:
    target = (source.parent / match[2]).resolve()
    if not target.exists():
        return match[0]  # mkdocs reports it
    if target.is_relative_to(ROOT / "docs"):
        uri = str(target.relative_to(ROOT / "docs"))
    elif is_copied(target):
        uri = f"{COPIED}/{target.relative_to(ROOT)}"
    elif target.is_dir() and is_copied(target / "README.md"):
        uri = f"{COPIED}/{target.relative_to(ROOT)}/README.md"
    else:
        return match[0]  # mkdocs reports it
    return f"]({os.path.relpath(uri, Path(name).parent)}{match[3] or ''})"


def outside_code(text: str, change: Any) -> str:
    """`text` with `change` made between its pieces of code."""
    result, at = [], 0
    for code in CODE.finditer(text):
        result += [change(text[at : code.start()]), code[0]]
        at = code.end()
    return "".join([*result, change(text[at:])])


def targets(page: Path) -> Iterator[Path]:
    text = CODE.sub("", page.read_text(encoding="utf-8"))
    for match in LINK.finditer(text):
        target = (page.parent / match[2]).resolve()
        yield target / "README.md" if target.is_dir() else target


def is_copied(target: Path) -> bool:
    return (
        target.is_file()
        and target.is_relative_to(ROOT)
        and not target.is_relative_to(ROOT / "docs")
    )


def python_reference() -> str:
    """Every public name, in the order of `towpath.__all__`."""
    lines = [
        "# Python API",
        "",
        "All public names. [The guide](python.md) has examples.",
        "",
    ]
    for name in towpath.__all__:
        if not name.startswith("__"):
            lines += [f"::: towpath.{name}", ""]
    return "\n".join([*lines, "Next: [the guide to Python](python.md).", ""])


def cli_reference() -> str:
    """The help of every command."""
    lines = [
        "# Command line",
        "",
        "Every command. [The guide](cli.md) has examples.",
        "",
    ]
    root = typer.main.get_command(cli.app)
    lines += list(
        help_of(root, typer.Context(root, info_name="towpath", **root.context_settings), 2)
    )
    return "\n".join([*lines, "Next: [the guide to the command line](cli.md).", ""])


def help_of(command: Any, context: typer.Context, level: int) -> Iterator[str]:
    """The lines of a command and of the commands below it."""
    command.rich_markup_mode = None  # text without boxes
    yield from ("#" * level + f" {context.command_path}", "", "```text", command.get_help(context))
    yield from ("```", "")
    for name in command.list_commands(context) if hasattr(command, "list_commands") else []:
        below = command.commands[name]  # which imports it
        if not below.hidden:
            inner = typer.Context(below, info_name=name, parent=context)
            yield from help_of(below, inner, level + 1)
