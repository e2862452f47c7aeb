# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Cuts the kernels of the GPU document out of it, for tests; none of it is part of the project.

python document_kernels.py DOCUMENT > document_kernels.h
"""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]


def find_document() -> Path | None:
    """The document, beside the data of others; None where it is absent."""
    data = Path(os.environ.get("TOWPATH_DATA", ROOT.parent / "shared" / "data"))
    found = sorted((data.parent / "seeds").glob("003_*.txt"))
    return found[0] if found else None


def blocks_of(text: str) -> list[str]:
    """The code blocks in C, in their order."""
    return re.findall(r"^```C\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


def function_in(block: str) -> str:
    """The first template with a body in a block, up to its closing brace."""
    begin = block.index("template")
    depth = 0
    for at in range(block.index("{", begin), len(block)):
        depth += {"{": 1, "}": -1}.get(block[at], 0)
        if depth == 0:
            return block[begin : at + 1]
    raise ValueError("a code block of the document has no end")


def vectorised(ring: str, blocks: list[str]) -> str:
    """The ring with the document's own replacements: its loops, and its signal."""
    pieces = [block for block in blocks if block.startswith("for (int i = threadIdx.x")]
    reduction = next(piece for piece in pieces if "P res;" in piece)
    copy = next(piece for piece in pieces if "P res;" not in piece and "recv_chunk" in piece)
    put = next(block for block in blocks if "stage, NVSHMEM_SIGNAL_SET, send_peer" in block[:400]
               and block.startswith("nvshmemx_putmem_signal_nbi_block"))  # fmt: skip
    put = put.replace("chunk*chunk_off,", "send_chunk*chunk_off,", 1)  # a slip of the document
    loop = re.compile(r"for \(int i = threadIdx\.x;.*?\n        \}\n", re.DOTALL)
    ring = loop.sub(lambda _: reduction, ring, count=1)
    first, broadcast, rest = ring.partition("// BROADCAST PHASE")
    rest = loop.sub(lambda _: copy, rest, count=1)
    ring = first + broadcast + rest
    call = re.compile(r"nvshmemx_putmem_signal_nbi_block\(.*?;\n", re.DOTALL)
    ring = call.sub(lambda _: put, ring)
    using = next(block for block in blocks if block.startswith("using P"))
    return ring.replace("{\n", "{\n" + using, 1)


def header(text: str) -> str:
    """The document's kernels as a header, each in a namespace of its own."""
    blocks = blocks_of(text)
    kernels = [function_in(block) for block in blocks if "__global__" in block]
    exchanges = [kernel for kernel in kernels if "exchange" in kernel]
    ring = next(kernel for kernel in kernels if "all_reduce_ring_kernel" in kernel)
    simple = next(kernel for kernel in kernels if "all_reduce_simple_ring_kernel" in kernel)
    array = next(block for block in blocks if "array_t {" in block)
    parts = {
        "plain_exchange": exchanges[0],
        "signal_exchange": exchanges[1],
        "ring": ring,
        "vectorised_ring": vectorised(ring, blocks),
        "simple_ring": simple,
    }
    spaces = [f"namespace {name} {{\n{code}\n}}\n" for name, code in parts.items()]
    return "#pragma once\n" + array + "".join(spaces)


if __name__ == "__main__":
    print(header(Path(sys.argv[1]).read_text(encoding="utf-8")))
