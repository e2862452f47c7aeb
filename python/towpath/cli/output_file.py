# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Output of commands: text and files."""

from __future__ import annotations

import json
import os
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from towpath.errors import ConfigError, quoted
from towpath.files import write_text

if TYPE_CHECKING:
    from towpath.pages.provenance import Provenance
    from towpath.studies.page import Page


_PAGE_SUFFIXES = (".html", ".htm")


def check_output(path: Path | None) -> None:
    """Checks that a file can be written, before minutes of work for its content.

    Raises:
        ConfigError: the file cannot be written.
    """
    if path is None:
        return
    folder = path.parent
    if path.is_dir():
        problem = "it is a directory"
    elif not folder.is_dir():
        problem = f"there is no directory {quoted(str(folder))}"
    elif not os.access(path if path.exists() else folder, os.W_OK):
        problem = "permission denied"
    else:
        return
    raise ConfigError(f"cannot be written: {problem}", file=str(path))


def check_folder(path: Path | None) -> None:
    """Checks that a folder can be made or written to, before minutes of work for its files.

    Raises:
        ConfigError: it cannot.
    """
    if path is None:
        return
    place = path if path.exists() else path.parent
    if path.exists() and not path.is_dir():
        problem = "it is not a directory"
    elif not place.is_dir():
        problem = f"there is no directory {quoted(str(place))}"
    elif not os.access(place, os.W_OK):
        problem = "permission denied"
    else:
        return
    raise ConfigError(f"cannot be written: {problem}", file=str(path))


@dataclass(frozen=True)
class PageOutput:
    """The page that `--out` names, and the JSON next to it if `--out` names a folder."""

    page: Path
    json: Path | None

    def write(self, write_page: Callable[[Path], object], text: str) -> None:
        """Writes both files.

        Args:
            write_page: writes the page to a file.
            text: the JSON.
        """
        write_page(self.page)
        if self.json is not None:
            write_text(self.json, text + "\n")
        note(f"page: {self.page}")


def page_output(out: Path | None) -> PageOutput | None:
    """The target of `--out`: a file (.html), or a folder, which is created.

    Raises:
        ConfigError: it cannot be written.
    """
    if out is None:
        return None
    if out.suffix.lower() in _PAGE_SUFFIXES:
        check_output(out)
        return PageOutput(out, None)
    folder = results_folder(out, "")
    return PageOutput(folder / "study.html", folder / "study.json")


def results_folder(out: Path | None, name: str) -> Path:
    """The given folder, or a default folder of this name. It is created if necessary.

    Raises:
        ConfigError: the name is that of a page, or the folder cannot be written. OSError: the
        folder cannot be created.
    """
    folder = out or Path(name.replace("/", "-"))
    if folder.suffix.lower() in _PAGE_SUFFIXES:
        raise ConfigError(
            f"--out is {quoted(str(folder))}; this command writes a folder with several files"
        )
    folder.mkdir(parents=True, exist_ok=True)
    if not os.access(folder, os.W_OK):
        raise ConfigError("cannot be written: permission denied", file=str(folder))
    return folder


def command_line() -> str:
    """The command line as given, for the page of its result."""
    return shlex.join(["towpath", *sys.argv[1:]])


Found = Mapping[str, object] | Sequence[Mapping[str, object]]


def json_text(found: Found, made_with: Provenance | None = None) -> str:
    """Results as JSON: the shape of every command's `--json`.

    Args:
        found: one result or several, as plain data.
        made_with: the provenance; the default is the version of Towpath and the date.
    """
    from towpath.pages.provenance import provenance

    made = made_with or provenance()
    results = [found] if isinstance(found, Mapping) else list(found)
    envelope = {"command": command_line(), "provenance": made.to_dict(), "results": results}
    return json.dumps(envelope, indent=1)


def print_json(found: Found, made_with: Provenance | None = None) -> None:
    """Prints a result as JSON with its provenance."""
    print(json_text(found, made_with))


def note(sentence: str) -> None:
    """Prints a note to standard error."""
    if sys.stderr is not None:
        print(sentence, file=sys.stderr)


def deliver(
    found: Found, page: Page, folder: Path, as_json: bool, *, made_with: Provenance | None = None
) -> None:
    """Stores a result in its folder, as JSON and as a page, and prints it.

    Args:
        found: the result as plain data.
        page: the result for people: study.html, and the printed text.
        folder: the folder for study.json and study.html.
        as_json: True to print the JSON instead of the text.
        made_with: the provenance of the result.
    """
    from towpath.pages.html import write_page
    from towpath.pages.text import page_text

    plain = json_text(found, made_with)
    write_text(folder / "study.json", plain + "\n")
    write_page(page, folder / "study.html", made_with)
    print(plain if as_json else page_text(page))
    note(f"study: {folder / 'study.html'}")
