# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""The command `towpath new`: templates for projects."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

import typer

from towpath.cli import groups
from towpath.errors import ConfigError

app = groups.group("Create a project to start from.")

# What is both a target of CMake and a file's name.
PROJECT_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")
TEMPLATES = {"CMakeLists.txt.in": "CMakeLists.txt", "kernel.cpp.in": "{name}.cpp"}


@app.callback()
def new() -> None:
    """Create a project to start from."""


@app.command()
def kernel(
    folder: Annotated[Path, typer.Argument(help="a folder to make; its name is the project's")],
) -> None:
    """Create a C++ project with a kernel for a simulated Wormhole."""
    written = write_kernel_project(folder)
    print(f"wrote {' and '.join(str(path) for path in written)}")
    print(
        f"To build and run it, with towpath installed below PREFIX (`make install`):\n"
        f"  cmake -S {folder} -B {folder}/build -DCMAKE_PREFIX_PATH=PREFIX\n"
        f"  cmake --build {folder}/build\n"
        f"  {folder}/build/{written[1].stem}"
    )


def write_kernel_project(folder: Path) -> list[Path]:
    """Writes the two files of a project with one kernel.

    Args:
        folder: the target folder; it is created, and must not contain files of these names.

    Returns:
        The files, `CMakeLists.txt` first.

    Raises:
        ConfigError: the folder's name is not a valid CMake target, or one of the files exists.
    """
    name = folder.absolute().name
    if not PROJECT_NAME.fullmatch(name):
        raise ConfigError(
            f"{folder}: '{name}' cannot be a project's name; it must begin with a letter and "
            "have only letters, digits, _ and -"
        )
    files = {folder / target.format(name=name): source for source, target in TEMPLATES.items()}
    for path in files:
        if path.exists():
            raise ConfigError(f"{path}: exists already; choose another folder")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for path, source in files.items():
            path.write_text(template(source, name))
    except OSError as error:
        raise ConfigError(f"{folder}: cannot be written: {error.strerror}") from None
    return list(files)


def template(source: str, name: str) -> str:
    """The text of a template for a project of this name."""
    from importlib.metadata import version
    from importlib.resources import files

    text = files("towpath.cli").joinpath("new_kernel").joinpath(source).read_text()
    return text.replace("@NAME@", name).replace("@VERSION@", version("towpath"))
