# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""The code in README.md and docs/: Python runs as printed, commands parse, cheap ones run."""

import contextlib
import doctest
import os
import pty
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import typer.main

import towpath
from conftest import ROOT
from inside.cli import main as cli

sys.path.insert(0, str(ROOT / "tools"))

import follow_tutorial  # noqa: E402

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# What takes no simulation.
CHEAP = {"machines", "algorithms", "show", "routes", "export"}


def blocks(*languages: str):
    """(page:line, text) of the code blocks in these languages."""
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        for match in BLOCK.finditer(text):
            if match[1] in languages:
                line = text.count("\n", 0, match.start()) + 1
                yield pytest.param(match[2], id=f"{page.name}:{line}")


def commands():
    """(page:line, words) of every `towpath ...` in a block without a language."""
    for block in blocks("", "sh", "console"):
        lines = block.values[0].replace("\\\n", " ").splitlines()
        for number, line in enumerate(lines, 1):
            match = re.match(r"(?:\$ )?towpath (.*)", line)
            if match:
                words = shlex.split(match[1], comments=True)
                yield pytest.param(words, id=f"{block.id}+{number} {' '.join(words)[:40]}")


def commands_in_text():
    """(page:line, words) of every `towpath ...` in a sentence or on an indented line."""
    for page in PAGES:
        text = BLOCK.sub(lambda match: "\n" * match[0].count("\n"), page.read_text("utf-8"))
        found = re.finditer(r"`towpath ([^`]+)`|^ {4}(?:\$ )?towpath (.*)$", text, re.MULTILINE)
        for match in found:
            line = text.count("\n", 0, match.start()) + 1
            typed = re.sub(r"\s+", " ", match[1] or match[2])
            if "..." in typed or re.search(r"[][|;*]|^COMMAND|--install-", typed):
                continue
            words = shlex.split(typed.replace("COLLECTIVE", "all_reduce"), comments=True)
            yield pytest.param(words, id=f"{page.name}:{line} {' '.join(words)[:40]}")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_dialogues_of_a_page_say_what_python_says(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    result = doctest.testfile(str(page), module_relative=False, optionflags=flags)
    assert result.failed == 0


def programs():
    """The programs of the pages. test_installed_python.py runs the first one of README.md."""
    first, *others = blocks("python")
    assert first.id.startswith("README.md")
    return others


@pytest.mark.parametrize("text", programs())
def test_a_program_runs_as_printed(text, tmp_path):
    for module in ("torch", "tt_umd"):
        if f"import {module}" in text:
            pytest.importorskip(module, reason=f"{module} is not installed")
    program = tmp_path / "program.py"
    program.write_text(text, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, program.name], cwd=tmp_path, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("text", [block for block in blocks("yaml") if "name:" in block.values[0]])
def test_a_description_loads_as_printed(text, tmp_path):
    if "form: graph" in text:
        pytest.skip("fields that take the place of others; test_docs_machines.py puts them there")
    file = tmp_path / "machine.yaml"
    file.write_text(text, encoding="utf-8")
    assert towpath.load(file).show()


@pytest.mark.parametrize("words", list(commands()))
def test_a_command_parses(words):
    parse(words)


@pytest.mark.parametrize("words", list(commands_in_text()))
def test_what_a_sentence_says_to_type_is_a_command_with_its_options(words):
    try:
        parse(words)
    except typer.Exit:  # help and version
        pass
    except typer.TyperException as error:  # sentences name commands without their arguments
        problem = error.format_message()
        assert "No such" not in problem and "unexpected" not in problem, problem


def parse(words):
    command, arguments = typer.main.get_command(cli.app), list(words)
    while True:
        context = command.make_context("towpath", arguments)
        if not hasattr(command, "resolve_command"):
            return
        rest = [*getattr(context, "_protected_args", ()), *context.args]
        _, command, arguments = command.resolve_command(context, rest)


@pytest.mark.parametrize(
    "words", [command for command in commands() if command.values[0][0] in CHEAP]
)
def test_a_cheap_command_runs(words, tmp_path):
    if any(Path(word).suffix in (".yaml", ".xml", ".txt", ".csv") for word in words[1:2]):
        pytest.skip("about a file of the reader's own")
    done = subprocess.run(
        [sys.executable, "-m", "towpath", *words],
        cwd=tmp_path, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


def printed_in_a_terminal(words: list[str], columns: int) -> str:
    """The standard output of `towpath WORDS` in a terminal of this width."""
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "towpath", *words]
    environment = {**os.environ, "COLUMNS": str(columns)}
    printed = b""
    with (
        open(ours, "rb", buffering=0) as terminal,
        subprocess.Popen(
            command, stdout=theirs, stderr=subprocess.DEVNULL, env=environment
        ) as process,
    ):
        os.close(theirs)
        with contextlib.suppress(OSError):  # Linux: the last writer has closed the terminal
            while some := terminal.read(65536):
                printed += some
        assert process.wait(timeout=300) == 0
    return printed.decode().replace("\r\n", "\n")


def test_the_first_example_of_the_readme_prints_its_output():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    command = re.search(r"^towpath (expect .*)$", text, re.MULTILINE)[1]
    table = re.search(r"^```\n(# all_reduce.*?\n)```$", text, re.MULTILINE | re.DOTALL)[1]
    assert printed_in_a_terminal(shlex.split(command), columns=100) == table


def test_there_is_code_to_run():
    assert len(list(blocks("python"))) >= 3
    assert len(list(commands())) >= 8


def test_the_tutorial_about_an_own_machine_runs_as_printed(tmp_path):
    assert follow_tutorial.follow(ROOT / "docs" / "own_machine.md", tmp_path) is None
    assert "far below the 400 Gb/s" in (tmp_path / "mine.yaml").read_text()


TUTORIALS = sorted((ROOT / "docs").glob("tutorial_*.md"))


@pytest.mark.parametrize("page", TUTORIALS, ids=lambda page: page.name)
def test_a_tutorial_prints_what_its_page_says(page, tmp_path):
    text = page.read_text(encoding="utf-8")
    if "import torch" in text:
        pytest.importorskip("torch")
    assert follow_tutorial.follow(page, tmp_path) is None
