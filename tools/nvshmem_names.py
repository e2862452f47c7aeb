#!/usr/bin/env python3
# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Which of NVSHMEM's functions Towpath has: the table in docs/nvshmem.md.

Usage: NVSHMEM_HOME=... tools/nvshmem_names.py > docs/nvshmem.md

The names are those of NVSHMEM's own headers, from its package or from PyPI's nvidia-nvshmem-cu13.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).parents[1]
OURS = ROOT / "src" / "towpath" / "gpu" / "include"
TYPES = (
    "bfloat16 half float double char schar short int long longlong uchar ushort uint ulong"
    " ulonglong int8 int16 int32 int64 uint8 uint16 uint32 uint64 size ptrdiff"
).split()
NAME = re.compile(r"\b(nvshmemx?_\w+)\s*\(")
HEAD = """# NVSHMEM's functions

`nvshmem.h` and `nvshmemx.h` of Towpath implement {count} of {total} functions of NVSHMEM {version}.
TYPE is one of NVSHMEM's types, and SIZE is 8, 16, 32, 64 or 128. A call of a function in the second
table does not compile. If the reason is not obvious, the compiler's message contains it.
`tools/nvshmem_names.py` generates this page.
"""


def preprocessed(text: str, include: list[Path], *flags: str) -> str:
    """Output of the preprocessor for a file with this text."""
    command = ["g++", "-std=c++20", "-E", "-x", "c++", *flags]
    command += [word for folder in include for word in ("-I", str(folder))]
    done = subprocess.run([*command, "-"], input=text, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(done.stderr)
    return done.stdout


def functions(text: str) -> set[str]:
    """The functions that a text declares or calls."""
    return {name for name in NAME.findall(text) if not name.startswith("nvshmemi_")}


def family(name: str) -> str:
    """The name with TYPE and SIZE in place of types and sizes."""
    for type_name in TYPES:
        name, count = re.subn(rf"^(nvshmemx?_(?:qp_)?){type_name}_", r"\1TYPE_", name)
        if count:
            return name
    return re.sub(r"(put|get)(8|16|32|64|128)(?=_|$)", r"\1SIZE", name)


def table(names: set[str]) -> str:
    """Rows of a table: families, and how many functions each has."""
    families: dict[str, int] = defaultdict(int)
    for name in names:
        families[family(name)] += 1
    rows = [f"| `{name}` | {count} |" for name, count in sorted(families.items())]
    return "\n".join(["| function | of them |", "|---|---|", *rows])


def main() -> None:
    """Writes the page to standard output."""
    home = Path(os.environ["NVSHMEM_HOME"]) / "include"
    api = '#include "host/nvshmem_api.h"\n#include "host/nvshmemx_api.h"\n'
    theirs = functions(preprocessed(api, [home, OURS], "-include", "cuda_runtime.h"))
    own = preprocessed("#include <nvshmemx.h>\n", [OURS], "-include", "cuda_runtime.h")
    refused = set(re.findall(r"\bint (nvshmemx?_\w+)\(Arguments", own))
    ours = functions(own) - refused
    version = re.search(
        r"NVSHMEM_VENDOR_MINOR_VERSION (\d+)", (home / "non_abi/nvshmem_version.h").read_text()
    )
    minor = version[1] if version else "x"
    have, lack = theirs & ours, theirs - ours
    print(HEAD.format(version=f"3.{minor}", total=len(theirs), count=len(have)))
    print(f"## Supported\n\n{table(have)}\n\n## Not supported\n\n{table(lack)}")


if __name__ == "__main__":
    main()
