# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""`import towpath`: what it offers, what it costs, and that all of it is documented."""

import ast
import inspect
import re
import subprocess
import sys
import textwrap

import pytest

import towpath
from inside.layout import CORE

NAMES = towpath.__all__


def test_the_table_of_contents_lists_every_public_name_in_order():
    contents = towpath.__doc__.split("**Machines.**")[1].split("`__version__`")[0]
    assert re.findall(r"`(\w+)`", contents) == NAMES


def test_every_public_name_exists_and_no_other_is_offered():
    for name in NAMES:
        assert getattr(towpath, name).__name__ == name
    assert set(dir(towpath)) == {*NAMES, "__version__"}
    with pytest.raises(AttributeError, match="no attribute 'machnes'"):
        _ = towpath.machnes


def test_the_version_is_that_of_the_package():
    assert re.fullmatch(r"\d+\.\d+\.\d+.*", towpath.__version__)


def test_importing_loads_nothing_heavy():
    heavy = ("numpy", "pydantic", "rich", "typer", "yaml", CORE)
    code = f"import sys, towpath; print([name for name in {heavy} if name in sys.modules])"
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert printed.stdout.strip() == "[]", printed.stderr


def members():
    """(name, object) of every public name and of what a public class has of its own."""
    for name in NAMES:
        thing = getattr(towpath, name)
        yield name, thing
        if not inspect.isclass(thing):
            continue
        for own in (base for base in thing.__mro__ if base.__module__.startswith("towpath")):
            for member, value in vars(own).items():
                if not member.startswith("_") and member not in fields_of(thing):
                    yield f"{name}.{member}", value


def fields_of(thing):
    return set(getattr(thing, "__dataclass_fields__", ())) | set(getattr(thing, "_fields", ()))


MEMBERS = dict(members())


@pytest.mark.parametrize("name", MEMBERS)
def test_it_has_a_docstring(name):
    value = MEMBERS[name]
    value = getattr(value, "__func__", value)
    if isinstance(value, (str, int, type(None))):
        pytest.skip("a constant; the docstring of its class names it")
    assert inspect.getdoc(getattr(value, "fget", value)), name


def functions():
    for name, value in MEMBERS.items():
        function = getattr(value, "__func__", value)
        if inspect.isfunction(function):
            yield name, function


@pytest.mark.parametrize(
    ("name", "function"), [pytest.param(*each, id=each[0]) for each in functions()]
)
def test_its_docstring_says_what_goes_in_and_out(name, function):
    document = inspect.getdoc(function)
    signature = inspect.signature(function)
    for parameter in (each for each in signature.parameters if each not in ("self", "cls")):
        explained = rf"^ +(\w+, )*\*{{0,2}}{parameter}(, \w+)*:"
        assert re.search(explained, document, re.MULTILINE), f"{name}: {parameter}"
    if signature.return_annotation not in (None, "None", inspect.Signature.empty):
        assert "Returns:" in document, f"{name}: its docstring has no Returns"
    tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    if any(isinstance(node, ast.Raise) for node in ast.walk(tree)):
        assert "Raises:" in document, f"{name}: its docstring has no Raises"


def test_the_fields_of_public_data_are_explained():
    for name in NAMES:
        thing = getattr(towpath, name)
        if inspect.isclass(thing):
            for field in fields_of(thing):
                assert re.search(rf"^ +{field}:", thing.__doc__, re.MULTILINE), f"{name}.{field}"
