# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Random CUDA kernels with one access to memory each, right or wrong as main() is asked.

A source has many kernels. A case draws the access (type, way, thread), the allocation (who made it,
its size) and the error (kind, offset) from its seed.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

# Bytes on either side of an allocation to which no other one is nearer.
GAP_BYTES = {"shared": 32, "dynamic": 32}
GAP_BYTES_LEAST = 128

WIDTHS = {"char": 1, "short": 2, "int": 4, "float": 4, "double": 8, "unsigned long long": 8,
          "int2": 8, "float4": 16}  # fmt: skip
VECTORS = ("int2", "float4")
ATOMIC = ("int", "float", "unsigned long long")

# Each place of memory: its number in main(), and the call that a sentence names.
PLACES = {"device": (0, "cudaMalloc"), "managed": (1, "cudaMallocManaged"),
          "symmetric": (2, "nvshmem_malloc"), "host": (3, ""), "peer": (4, "nvshmem_align"),
          "shared": (5, "__shared__ array"), "dynamic": (5, "dynamic shared memory")}  # fmt: skip
ERRORS = {"beyond": "out_of_bounds", "before": "out_of_bounds", "freed": "use_after_free",
          "misaligned": "misaligned_access", "host": "host_memory"}  # fmt: skip

HEAD = """#include <cstdlib>
#include <nvshmem.h>
#include <nvshmemx.h>
"""

MAIN = """
int main(int argc, char** argv) {
  const int number = atoi(argv[1]), place = atoi(argv[2]), is_freed = atoi(argv[5]);
  const long size = atol(argv[3]);
  long at = atol(argv[4]);
  const unsigned shared = atoi(argv[6]);
  nvshmem_init();
  char *sink, *before, *behind, *memory = nullptr;
  cudaMalloc(&sink, 64);
  cudaMalloc(&before, size);
  char* const symmetric_before = static_cast<char*>(nvshmem_malloc(size));
  if (place == 0) cudaMalloc(&memory, size);
  if (place == 1) cudaMallocManaged(&memory, size);
  if (place == 2) memory = static_cast<char*>(nvshmem_malloc(size));
  if (place == 3) memory = static_cast<char*>(aligned_alloc(256, (size + 255) / 256 * 256));
  if (place == 4) memory = static_cast<char*>(nvshmem_align(16, size));
  cudaMalloc(&behind, size);
  char* const symmetric_behind = static_cast<char*>(nvshmem_malloc(size));
  if (place == 4) memory = static_cast<char*>(nvshmem_ptr(memory, 1 - nvshmem_my_pe()));
  if (is_freed && place < 2) cudaFree(memory);
  if (is_freed && place == 2) nvshmem_free(memory);
  void* arguments[] = {&memory, &at, &sink};
  if (nvshmem_my_pe() == 0) {
    cudaLaunchKernel(kernels[number], dim3(3), dim3(64), arguments, shared);
  }
  cudaDeviceSynchronize();
  nvshmem_finalize();
  return 0;
}
"""


@dataclass(frozen=True)
class Case:
    """One kernel and its access."""

    text: tuple[str, ...]  # of the kernel
    line: int  # of the access in it, from 0
    place: str
    size_bytes: int
    right: int  # offsets of the access in its allocation
    wrong: int
    error: str
    thread: tuple[int, int]

    @property
    def hazard(self) -> str:
        return ERRORS[self.error]

    def arguments(self, number: int, *, is_wrong: bool) -> list[str]:
        """Of main()."""
        place = self.place
        if place == "host" and not is_wrong:
            place = "device"
        is_freed = self.error == "freed" and is_wrong
        shared = self.size_bytes if place == "dynamic" else 0
        at = self.wrong if is_wrong else self.right
        return [str(number), str(PLACES[place][0]), str(self.size_bytes), str(at),
                str(int(is_freed)), str(shared)]  # fmt: skip


def access(draw: random.Random, type_name: str, pointer: str) -> list[str]:
    """The statements of an access; the first is the access itself."""
    ways = ["store", "load"]
    if type_name not in VECTORS:
        ways += ["volatile store", "volatile load", "cached load"]
    if type_name in ATOMIC:
        ways.append("atomic")
    way = draw.choice(ways)
    at = f"reinterpret_cast<{type_name}*>({pointer})"
    own = f"reinterpret_cast<{type_name}*>(sink)"
    if way == "store" and type_name in VECTORS:
        return [f"*{at} = *{own};"]
    if way == "store":
        return [f"*{at} = {type_name}(threadIdx.x);"] if " " not in type_name else [
            f"*{at} = threadIdx.x;"]  # fmt: skip
    if way == "volatile store":
        return [f"*const_cast<volatile {type_name}*>({at}) = 3;"]
    if way == "atomic":
        return [f"atomicAdd({at}, 1);"]
    if way == "volatile load":
        load = f"*const_cast<const volatile {type_name}*>({at})"
    else:
        load = f"__ldg({at})" if way == "cached load" else f"*{at}"
    return [f"const {type_name} value = {load};", f"*{own} = value;"]


def case(seed: int, number: int) -> Case:
    """The kernel of a seed, by its number in the source."""
    draw = random.Random(seed)
    type_name = draw.choice(list(WIDTHS))
    width = WIDTHS[type_name]
    place = draw.choice(list(PLACES))
    errors = ["beyond", "before"]
    if place in ("device", "managed", "symmetric"):
        errors.append("freed")
    if width > 1:
        errors.append("misaligned")
    error = "host" if place == "host" else draw.choice(errors)
    limit = 2_000 if place in ("shared", "dynamic") else 100_000
    size_bytes = 2 * width + draw.randrange(draw.choice([16, 300, limit]))
    right = draw.randrange(size_bytes // width) * width
    gap = GAP_BYTES.get(place, GAP_BYTES_LEAST)
    last_right = (size_bytes - width) // width * width
    wrong = {
        "beyond": last_right + width * (1 + draw.randrange((gap - width) // width)),
        "before": -width * (1 + draw.randrange(gap // width)),
        "misaligned": min(right, last_right - width) + draw.randrange(1, max(width, 2)),
    }.get(error, right)
    block, thread = draw.randrange(3), draw.randrange(64)
    fillers = [f"  sink[{draw.randrange(16, 64)}] = {i};" for i in range(draw.randrange(4))]
    declared = {
        "shared": [f"  __shared__ __align__(16) char array[{size_bytes}];",
                   "  __shared__ double others[4];",
                   "  others[threadIdx.x % 4] = array[0] = 1;"],
        "dynamic": ["  extern __shared__ char array[];", "  array[0] = 1;"],
    }.get(place, [])  # fmt: skip
    pointer = ("array" if declared else "memory") + " + at"
    before = [
        f"__global__ void kernel_{number}(char* memory, long at, char* sink) {{",
        *declared,
        *fillers,
        f"  if (blockIdx.x == {block} && threadIdx.x == {thread}) {{",
    ]
    accessed = [f"    {text}" for text in access(draw, type_name, pointer)]
    return Case(
        (*before, *accessed, "  }", *reversed(fillers), "}"), len(before), place, size_bytes,
        right, wrong, error, (block, thread),
    )  # fmt: skip


def source(cases: list[Case]) -> tuple[str, list[int]]:
    """A source with all kernels, and the line of each access, from 1."""
    lines = HEAD.splitlines()
    places = []
    for each in cases:
        places.append(len(lines) + each.line + 1)
        lines += each.text
    table = ", ".join(f"kernel_{i}" for i in range(len(cases)))
    lines.append(f"void (*const kernels[])(char*, long, char*) = {{{table}}};")
    return "\n".join(lines) + MAIN, places
