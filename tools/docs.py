#!/usr/bin/env python3
# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Writes the reference of `import towpath` as HTML, from its docstrings.

Usage: tools/docs.py FOLDER
"""

from __future__ import annotations

import sys
from pathlib import Path

import pdoc

import towpath


def write_reference(folder: Path) -> None:
    """Every public name on one page; private modules get none."""
    for name in towpath.__all__:
        getattr(towpath, name)  # lazy names are members of the module from now on
    pdoc.render.configure(docformat="google", show_source=False)
    pdoc.pdoc("towpath", "!towpath.", output_directory=folder)


if __name__ == "__main__":
    write_reference(Path(sys.argv[1]))
    print(f"reference: {Path(sys.argv[1]) / 'towpath.html'}")
