# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""The Python package as a program of someone else's finds it: a wheel, outside the checkout."""

import re

from conftest import ROOT


def test_the_program_of_the_readme_runs(run_installed):
    programs = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    (program,) = [program for program in programs if "torch" not in program]
    printed = run_installed("-c", program)
    assert re.fullmatch(
        r"\w+_all_reduce (Simple|LL|LL128)\n[0-9.]+ us, [0-9.]+ GB/s, 0 wrong\n", printed
    )


def test_every_public_name_can_be_used(run_installed, installed):
    program = "import towpath; print(towpath.__file__, *map(towpath.__getattr__, towpath.__all__))"
    assert run_installed("-c", program).startswith(str(installed))


def test_types_and_stubs_are_in_it(installed):
    assert (installed / "towpath" / "py.typed").is_file()
    stub = (installed / "towpath" / "_core.pyi").read_text()
    assert "class SimulatedRun:" in stub and "def verify(" in stub
