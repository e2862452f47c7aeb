# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Cuts the kernels of document 003 out of its text. None of them is part of the project."""

from __future__ import annotations

import re


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


def vectorized(ring: str, blocks: list[str]) -> str:
    """The ring with the document's own replacements: its loops, and its signal."""
    pieces = [block for block in blocks if block.startswith("for (int i = threadIdx.x")]
    reduction = next(piece for piece in pieces if "P res;" in piece)
    copy = next(piece for piece in pieces if "P res;" not in piece and "recv_chunk" in piece)
    put = next(
        block
        for block in blocks
        if "stage, NVSHMEM_SIGNAL_SET, send_peer" in block[:400]
        and block.startswith("nvshmemx_putmem_signal_nbi_block")
    )
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


def replaced(text: str, pattern: str, piece: str) -> str:
    """The text with the one place that the pattern matches replaced."""
    changed, count = re.subn(pattern, lambda _: piece, text, flags=re.DOTALL)
    if count != 1:
        raise ValueError(f"the document has {count} places that match {pattern!r}; 1 is expected")
    return changed


def fused(exchange: str, blocks: list[str]) -> str:
    """The exchange with a signal and the document's three replacements."""
    put = next(block for block in blocks if block.startswith("nvshmemx_putmem_signal_block"))
    wait = next(
        block
        for block in blocks
        if block.startswith("if (threadIdx.x == 0)\n") and "signal_wait_until" in block
    )
    copy = next(
        block
        for block in blocks
        if block.startswith("for (int i = threadIdx.x") and "sizeof(float4)" in block
    )
    exchange = replaced(exchange, r"nvshmemx_putmem_block\(.*?__syncthreads\(\);\n", "")
    exchange = replaced(exchange, r"if \(threadIdx\.x == 0\)\n    \{.*?\n    \}\n", put)
    exchange = replaced(exchange, r"    nvshmem_signal_wait_until\(.*?;\n", wait)
    return replaced(exchange, r"for \(int i = threadIdx\.x;.*?;\n(?=\})", copy)


def alternating(ring: str, blocks: list[str]) -> str:
    """The vectorized ring with the document's seats in alternating rings.

    The document says that the rest looks more or less the same. Ours are: a signal for each ring,
    a swap, and the brace before the chunks, which are used after it.
    """
    seats = next(block for block in blocks if "const uint64_t base_off" in block)
    following = next(block for block in blocks if block.startswith("if(ring_id%2 == 1"))
    chunks = seats.index("    int send_chunk")
    end = seats.rindex("}")
    seats = seats[:chunks] + "}\n" + seats[chunks:end]
    ring = replaced(ring, r"const uint64_t off = .*?int recv_chunk = [^\n]*\n", seats)
    ring = replaced(ring, r"signal \+ blockIdx\.x;", "signal + ring_id * gridDim.x + blockIdx.x;")
    ring, count = re.subn(
        r"recv_chunk = \(n_pes \+ recv_chunk - 1\)%n_pes;", lambda _: following, ring
    )
    if count != 2:
        raise ValueError(
            f"the document's ring continues with the next chunk {count} times, not twice"
        )
    swap = "template <typename T> __device__ void swap_cu(T& a, T& b) { T c = a; a = b; b = c; }\n"
    return swap + "constexpr bool INTERNODE = true;\n" + ring


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
        "fused_exchange": fused(exchanges[1], blocks),
        "ring": ring,
        "vectorised_ring": vectorized(ring, blocks),
        "simple_ring": simple,
        "alternating_rings": alternating(vectorized(ring, blocks), blocks),
    }
    spaces = [f"namespace {name} {{\n{code}\n}}\n" for name, code in parts.items()]
    return "#pragma once\n" + array + "".join(spaces)
