# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""The program that holds functions to their limits sees each kind of breach, and no other."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[3] / "tools"))
limits = pytest.importorskip("limits", reason="needs lizard, which `make build` installs")


def cpp_function(lines: int) -> str:
    return "int f() {\n" + "  g();\n" * (lines - 2) + "}\n"


def test_a_function_may_have_70_lines():
    assert limits.breaches("src/a.cpp", cpp_function(70)) == []
    (breach,) = limits.breaches("src/a.cpp", cpp_function(71))
    assert breach == "src/a.cpp:1: f has 71 lines; at most 70"


def test_a_function_may_branch_14_times():
    branches = "  if (a) g();\n"
    assert limits.breaches("src/a.cpp", "int f(int a) {\n" + branches * 14 + "}\n") == []
    (breach,) = limits.breaches("src/a.cpp", "int f(int a) {\n" + branches * 15 + "}\n")
    assert "16 complexity; at most 15" in breach


def test_a_function_may_have_5_parameters():
    five = "int a, int b, int c, int d, int e"
    assert limits.breaches("src/a.cpp", f"void f({five}) {{}}\n") == []
    (breach,) = limits.breaches("src/a.cpp", f"void f({five}, int g) {{}}\n")
    assert "6 parameters; at most 5" in breach


def test_what_bindings_take_is_what_python_gives():
    text = "void f(int a, int b, int c, int d, int e, int g) {}\n"
    assert limits.breaches("src/towpath/bindings/run.cpp", text) == []


def test_a_function_of_the_vendor_has_the_parameters_of_its_document():
    parameters = "int a, int b, int c, int d, int e, int g"
    name = "EthernetCore::eth_send_bytes_over_channel"
    assert limits.breaches("src/a.cpp", f"void {name}({parameters}) {{}}\n") == []
    assert len(limits.breaches("src/a.cpp", f"void {name}_2({parameters}) {{}}\n")) == 1


def test_keywords_self_and_options_of_commands_do_not_count():
    assert limits.breaches("a.py", "def f(a, b, c, d, e, *, g, h): pass\n") == []
    assert limits.breaches("a.py", "class C:\n    def f(self, a, b, c, d, e): pass\n") == []
    command = "def f(a, b, c, d, e, g: Annotated[int, typer.Option()]): pass\n"
    assert limits.breaches("a.py", command) == []
    assert limits.breaches("a.py", "def f(a, b, c, d, e, seed: Seed = 1): pass\n") == []
    (breach,) = limits.breaches("a.py", "def f(a, b, c, d, e, g): pass\n")
    assert breach == "a.py:1: f has 6 parameters; at most 5"
