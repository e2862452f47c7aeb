# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Compute kernels in TT-Metalium's source form: what numpy says, and the published rates."""

from __future__ import annotations

import numpy as np
import pytest

from towpath import CircularBuffer, KernelRun, MemoryBlock, SourceKernel, TowpathError, load

TILE = 32 * 32
LEFT, RIGHT, OUT = 0x20000, 0x30000, 0x40000
FLOAT32, FLOAT16_B, BFP8_B = 0, 5, 6
BYTES = {FLOAT32: 4096, FLOAT16_B: 2048, BFP8_B: 1088}
OPERATIONS = (
    "copy", "add", "sub", "mul", "matmul", "matmul_transposed", "row_sum", "column_sum", "sum",
    "row_max", "tilize", "untilize",
)  # fmt: skip

PUSH = """
#include "dataflow_api.h"
void kernel_main() {
  for (uint32_t buffer = 0; buffer < 2; ++buffer) {
    cb_reserve_back(buffer, get_arg_val<uint32_t>(0));
    cb_push_back(buffer, get_arg_val<uint32_t>(0));
  }
}
"""
COMPUTE = """
#include "api/compute/eltwise_binary.h"
#include "api/compute/matmul.h"
#include "api/compute/reduce.h"
#include "api/compute/tile_move_copy.h"
#include "api/compute/tilize.h"
#include "api/compute/untilize.h"
void kernel_main() {
  const uint32_t operation = get_arg_val<uint32_t>(0), tiles = get_arg_val<uint32_t>(1);
  binary_op_init_common(0, 1, 16);
  cb_wait_front(0, tiles);
  cb_wait_front(1, tiles);
  cb_reserve_back(16, tiles);
  {
    DeviceZoneScopedN("compute");
    if (operation == 10) {
      tilize_block(0, tiles, 16);
    } else if (operation == 11) {
      untilize_block(0, tiles, 16);
    } else {
      tile_regs_acquire();
      mm_init(0, 1, 16, operation == 5);
      for (uint32_t tile = 0; tile < tiles; ++tile) {
        switch (operation) {
          case 0: copy_tile(0, tile, 0); break;
          case 1: add_tiles(0, 1, tile, tile, 0); break;
          case 2: sub_tiles(0, 1, tile, tile, 0); break;
          case 3: mul_tiles(0, 1, tile, tile, 0); break;
          case 4: case 5: matmul_tiles(0, 1, tile, tile, 0); break;
          case 6: reduce_tile<PoolType::SUM, ReduceDim::REDUCE_ROW>(0, 1, tile, 0, 0); break;
          case 7: reduce_tile<PoolType::SUM, ReduceDim::REDUCE_COL>(0, 1, tile, 0, 0); break;
          case 8: reduce_tile<PoolType::SUM, ReduceDim::REDUCE_SCALAR>(0, 1, tile, 0, 0); break;
          case 9: reduce_tile<PoolType::MAX, ReduceDim::REDUCE_ROW>(0, 1, tile, 0, 0); break;
        }
      }
      tile_regs_commit();
      tile_regs_wait();
      pack_tile(0, 16);
      tile_regs_release();
    }
    cb_pop_front(0, tiles);
    cb_pop_front(1, tiles);
    cb_push_back(16, tiles);
  }
}
"""


def in_faces(tile: np.ndarray) -> np.ndarray:
    """A tile of 32 x 32 as four faces, one behind the other."""
    return tile.reshape(2, 16, 2, 16).swapaxes(1, 2).ravel()


def from_faces(numbers: np.ndarray) -> np.ndarray:
    return numbers.reshape(2, 2, 16, 16).swapaxes(1, 2).reshape(32, 32)


def rounded(numbers: np.ndarray) -> np.ndarray:
    """The nearest numbers with 16 bits."""
    bits = np.ascontiguousarray(numbers, np.float32).view(np.uint32)
    return (bits + 0x7FFF + (bits >> 16 & 1) & 0xFFFF0000).view(np.float32)


def encoded(numbers: np.ndarray, form: int) -> bytes:
    flat = np.ascontiguousarray(numbers, np.float32).ravel()
    if form == FLOAT32:
        return flat.tobytes()
    return (rounded(flat).view(np.uint32) >> 16).astype(np.uint16).tobytes()


def decoded(data: bytes, form: int) -> np.ndarray:
    if form == FLOAT32:
        return np.frombuffer(data, np.float32)
    return (np.frombuffer(data, np.uint16).astype(np.uint32) << 16).view(np.float32)


def run(
    operation: str, left: bytes, right: bytes, *, form: int, tiles: int = 1, out: int | None = None,
    fidelity: int = 4,
) -> KernelRun:  # fmt: skip
    out = form if out is None else out
    buffers = [
        CircularBuffer(0, LEFT, 4 * BYTES[form], BYTES[form], form),
        CircularBuffer(1, RIGHT, 4 * BYTES[form], BYTES[form], form),
        CircularBuffer(16, OUT, 4 * BYTES[out], BYTES[out], out),
    ]
    machine = load("wormhole")
    core = machine.spec.build().worker(0, 0)
    at = (core[0], core[1])
    return machine.run_kernels(
        [
            SourceKernel("push.cpp", text=PUSH, args=[tiles], circular_buffers=buffers),
            SourceKernel(
                "compute.cpp", text=COMPUTE, processor="compute",
                args=[OPERATIONS.index(operation), tiles], circular_buffers=buffers,
                defines={"MATH_FIDELITY": str(fidelity)},
            ),
        ],
        write=[MemoryBlock(at, LEFT, left), MemoryBlock(at, RIGHT, right)],
        read=[MemoryBlock(at, OUT, tiles * BYTES[out])],
    )  # fmt: skip


@pytest.mark.parametrize("operation", OPERATIONS[:10])
def test_tiles_are_what_numpy_says(operation: str) -> None:
    random = np.random.default_rng(1)
    left = rounded(random.uniform(-4, 4, (32, 32)).astype(np.float32))
    right = rounded(random.uniform(-4, 4, (32, 32)).astype(np.float32))
    if "sum" in operation or "max" in operation:
        right[:] = 0.5
    expected = np.zeros((32, 32), np.float32)
    match operation:
        case "copy":
            expected = left
        case "add":
            expected = left + right
        case "sub":
            expected = left - right
        case "mul":
            expected = left * right
        case "matmul":
            expected = left @ right
        case "matmul_transposed":
            expected = left @ right.T
        case "row_sum":
            expected[:, 0] = left.sum(1) / 2
        case "column_sum":
            expected[0] = left.sum(0) / 2
        case "sum":
            expected[0, 0] = left.sum() / 4
        case "row_max":
            expected[:, 0] = left.max(1) / 2
    data = [encoded(in_faces(one), FLOAT16_B) for one in (left, right)]
    found = run(operation, *data, form=FLOAT16_B)
    result = from_faces(decoded(found.read[0], FLOAT16_B))
    np.testing.assert_allclose(result, rounded(expected), rtol=1 / 128, atol=1e-3)


def test_products_of_two_tiles_are_added_up() -> None:
    random = np.random.default_rng(2)
    left, right = (random.uniform(-1, 1, (2, 32, 32)).astype(np.float32) for _ in range(2))
    data = [b"".join(encoded(in_faces(tile), FLOAT32) for tile in one) for one in (left, right)]
    found = run("matmul", *data, form=FLOAT32, tiles=2)
    result = from_faces(decoded(found.read[0][: BYTES[FLOAT32]], FLOAT32))
    np.testing.assert_allclose(
        result, left[0] @ right[0] + left[1] @ right[1], rtol=1e-4, atol=1e-4
    )


def test_rows_become_tiles_and_back() -> None:
    rows = np.arange(32 * 64, dtype=np.float32).reshape(32, 64)
    tiles = [in_faces(rows[:, :32].copy()), in_faces(rows[:, 32:].copy())]
    as_rows = encoded(rows, FLOAT32)
    as_tiles = b"".join(encoded(tile, FLOAT32) for tile in tiles)
    assert run("tilize", as_rows, as_rows, form=FLOAT32, tiles=2).read == [as_tiles]
    assert run("untilize", as_tiles, as_tiles, form=FLOAT32, tiles=2).read == [as_rows]


def test_a_block_format_keeps_seven_bits() -> None:
    left = np.linspace(-1, 1, TILE, dtype=np.float32).reshape(32, 32)
    data = encoded(in_faces(left), FLOAT32)
    packed = run("copy", data, data, form=FLOAT32, out=BFP8_B).read[0]
    exponents = np.frombuffer(packed[:64], np.uint8).astype(int).repeat(16) - 127
    elements = np.frombuffer(packed[64:], np.uint8)
    numbers = (elements & 0x7F) / 64 * np.exp2(exponents) * np.where(elements & 0x80, -1, 1)
    np.testing.assert_allclose(from_faces(numbers), left, atol=1 / 64)


@pytest.mark.parametrize(("fidelity", "cycles"), [(0, 16), (2, 32), (4, 64)])
def test_a_product_takes_its_published_time(fidelity: int, cycles: int) -> None:
    data = bytes(4 * BYTES[FLOAT16_B])
    one, four = (
        run("matmul", data, data, form=FLOAT16_B, tiles=tiles, fidelity=fidelity).zones[0].cycles
        for tiles in (1, 4)
    )
    unpacked = 2 * BYTES[FLOAT16_B] / 80  # what both unpackers read, per product
    assert (four - one) / 3 == pytest.approx(max(cycles, unpacked), rel=0.05)


def refused(text: str) -> str:
    kernel = SourceKernel("refused.cpp", text=text, processor="compute")
    with pytest.raises(TowpathError) as error:
        load("wormhole").run_kernels([kernel])
    return str(error.value)


def test_what_is_not_modelled_is_refused_by_name() -> None:
    call = "inline void exp_tile(uint32_t i) { MATH((llk_math_exp(i))); }"
    head = '#include "api/compute/matmul.h"\n'
    text = f"{head}{call}\nvoid kernel_main() {{ exp_tile(0); }}"
    assert "compute call 'exp_tile' is not modeled" in refused(text)
    text = f"{head}void kernel_main() {{ matmul_tiles(0, 1, 0, 0, 0); }}"
    assert "needs tile_regs_acquire" in refused(text)
    text = f"{head}void kernel_main() {{ noc_async_read(get_noc_addr(0), 0x20000, 32); }}"
    assert "compute cores, which have neither" in refused(text)
