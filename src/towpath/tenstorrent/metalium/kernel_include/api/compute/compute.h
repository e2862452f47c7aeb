// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "api/compute/tiles.h"

// The calls of compute kernels under their names (tt-metal, hw/inc/api/compute): a useful part of
// them. Headers of a checkout define the others by the low-level kernels behind UNPACK, MATH and
// PACK, which refuse here with the name of the call.

#define TOWPATH_UNMODELLED                                                                \
  towpath::compute::refuse_call(__func__)
#define UNPACK(...) TOWPATH_UNMODELLED
#define MATH(...) TOWPATH_UNMODELLED
#define PACK(...) TOWPATH_UNMODELLED

namespace towpath::compute {

inline void refuse_call(const char* call) {
  TOWPATH_CALL(refuse_compute, call);
}

TOWPATH_PLAIN inline void matmul(float* to, const float* left, const float* right,
                                 bool transposes) {
  for (std::uint32_t row = 0; row < kSide; ++row) {
    for (std::uint32_t k = 0; k < kSide; ++k) {
      const float factor = left[row * kSide + k];
      for (std::uint32_t column = 0; column < kSide; ++column) {
        const std::uint32_t at = transposes ? column * kSide + k : k * kSide + column;
        to[row * kSide + column] += factor * right[at];
      }
    }
  }
}

template <typename Combine>
TOWPATH_PLAIN inline void combine(float* to, const float* left, const float* right,
                                  const Combine& with) {
  for (std::uint32_t i = 0; i < kElements; ++i) to[i] = with(left[i], right[i]);
}

template <typename Combine>
inline void combine_tiles(std::uint32_t buffer0, std::uint32_t buffer1, std::uint32_t tile0,
                          std::uint32_t tile1, std::uint32_t index, std::uint64_t cycles,
                          const Combine& with) {
  static float left[kElements];
  static float right[kElements];
  float* const to = destination(index);
  read_tile(buffer0, tile0, left);
  read_tile(buffer1, tile1, right);
  combine(to, left, right, with);
  unpack_two(buffer0, buffer1);
  compute(cycles);
}

}  // namespace towpath::compute

// --- set-up, which takes no time ----------------------------------------------------------------

enum class PoolType : std::uint8_t { SUM, AVG, MAX, MIN };
enum class ReduceDim : std::uint8_t { REDUCE_ROW, REDUCE_COL, REDUCE_SCALAR };
#ifndef REDUCE_OP
#define REDUCE_OP PoolType::SUM
#endif
#ifndef REDUCE_DIM
#define REDUCE_DIM ReduceDim::REDUCE_ROW
#endif

namespace towpath::compute {
inline bool transposes_right;
}
inline void compute_kernel_hw_startup(std::uint32_t, std::uint32_t, std::uint32_t = 0) {}
inline void unary_op_init_common(std::uint32_t, std::uint32_t, std::uint32_t = 0) {}
inline void binary_op_init_common(std::uint32_t, std::uint32_t, std::uint32_t, std::uint32_t = 0) {}
inline void copy_tile_init(std::uint32_t, std::uint32_t = 0) {}
inline void copy_tile_to_dst_init_short(std::uint32_t = 0, std::uint32_t = 0, std::uint32_t = 0) {}
inline void copy_tile_to_dst_init_short_with_dt(std::uint32_t, std::uint32_t, std::uint32_t = 0) {}
inline void add_tiles_init(std::uint32_t, std::uint32_t, bool = false, std::uint32_t = 0) {}
inline void sub_tiles_init(std::uint32_t, std::uint32_t, bool = false, std::uint32_t = 0) {}
inline void mul_tiles_init(std::uint32_t, std::uint32_t, std::uint32_t = 0) {}
inline void mm_init(std::uint32_t, std::uint32_t, std::uint32_t, std::uint32_t transpose = 0,
                    std::uint32_t = 0) {
  towpath::compute::transposes_right = transpose != 0;
}
inline void mm_init_short(std::uint32_t, std::uint32_t, std::uint32_t transpose = 0,
                          std::uint32_t = 0) {
  towpath::compute::transposes_right = transpose != 0;
}
inline void mm_block_init(std::uint32_t, std::uint32_t, std::uint32_t, std::uint32_t transpose = 0,
                          std::uint32_t = 1, std::uint32_t = 1, std::uint32_t = 1,
                          std::uint32_t = 0) {
  towpath::compute::transposes_right = transpose != 0;
}
inline void mm_block_init_short(std::uint32_t, std::uint32_t, std::uint32_t transpose = 0,
                                std::uint32_t = 1, std::uint32_t = 1, std::uint32_t = 1) {
  towpath::compute::transposes_right = transpose != 0;
}
template <PoolType type = REDUCE_OP, ReduceDim dim = REDUCE_DIM, bool = false>
inline void reduce_init(std::uint32_t, std::uint32_t, std::uint32_t, std::uint32_t = 0) {}
template <bool = false>
inline void reduce_uninit(std::uint32_t = 0) {}
inline void tilize_init(std::uint32_t, std::uint32_t, std::uint32_t, std::uint32_t = 0) {}
inline void tilize_uninit(std::uint32_t, std::uint32_t) {}
inline void untilize_init(std::uint32_t, std::uint32_t = 0) {}
inline void untilize_uninit(std::uint32_t) {}
template <bool = false>
inline void pack_reconfig_data_format(std::uint32_t, std::uint32_t = 0) {}
template <bool = false>
inline void reconfig_data_format(std::uint32_t, std::uint32_t, std::uint32_t = 0,
                                 std::uint32_t = 0) {}
template <bool = false>
inline void reconfig_data_format_srca(std::uint32_t, std::uint32_t = 0) {}
template <bool = false>
inline void reconfig_data_format_srcb(std::uint32_t, std::uint32_t = 0) {}
inline void pack_reconfig_l1_acc(std::uint32_t is_on) {
  towpath::compute::engine.accumulates_in_l1 = is_on != 0;
}

// --- registers ----------------------------------------------------------------------------------

inline void tile_regs_acquire() {
  using namespace towpath::compute;
  if (engine.state != Registers::free) refuse("tile_regs_acquire finds the registers acquired");
  engine.state = Registers::acquired;
  for (std::uint32_t tile = 0; tile < kRegistersMax; ++tile) {
    if (!engine.is_written[tile]) continue;
    std::fill_n(engine.registers[tile], kElements, 0.0f);
    engine.is_written[tile] = false;
  }
}
inline void tile_regs_commit() {
  using namespace towpath::compute;
  if (engine.state != Registers::acquired) refuse("tile_regs_commit needs tile_regs_acquire");
  engine.state = Registers::committed;
}
inline void tile_regs_wait() {
  using namespace towpath::compute;
  if (engine.state != Registers::committed) refuse("tile_regs_wait needs tile_regs_commit");
  engine.state = Registers::packing;
}
inline void tile_regs_release() {
  using namespace towpath::compute;
  if (engine.state != Registers::packing) refuse("tile_regs_release needs tile_regs_wait");
  engine.state = Registers::free;
}
// Both in one, as older kernels have it.
inline void acquire_dst() { tile_regs_acquire(); }
inline void release_dst() { towpath::compute::engine.state = towpath::compute::Registers::free; }

// --- the matrix engine --------------------------------------------------------------------------

inline void copy_tile(std::uint32_t in_cb_id, std::uint32_t in_tile_index,
                      std::uint32_t dst_tile_index) {
  using namespace towpath::compute;
  read_tile(in_cb_id, in_tile_index, destination(dst_tile_index));
  unpack_one(in_cb_id);
  compute(kSumCycles);
}
inline void copy_block_matmul_partials(std::uint32_t in_cb_id, std::uint32_t start_in_tile_index,
                                       std::uint32_t start_dst_tile_index, std::uint32_t ntiles) {
  for (std::uint32_t tile = 0; tile < ntiles; ++tile) {
    copy_tile(in_cb_id, start_in_tile_index + tile, start_dst_tile_index + tile);
  }
}
inline void add_tiles(std::uint32_t icb0, std::uint32_t icb1, std::uint32_t itile0,
                      std::uint32_t itile1, std::uint32_t idst) {
  using namespace towpath::compute;
  combine_tiles(icb0, icb1, itile0, itile1, idst, kSumCycles,
                [](float left, float right) { return left + right; });
}
inline void sub_tiles(std::uint32_t icb0, std::uint32_t icb1, std::uint32_t itile0,
                      std::uint32_t itile1, std::uint32_t idst) {
  using namespace towpath::compute;
  combine_tiles(icb0, icb1, itile0, itile1, idst, kSumCycles,
                [](float left, float right) { return left - right; });
}
inline void mul_tiles(std::uint32_t icb0, std::uint32_t icb1, std::uint32_t itile0,
                      std::uint32_t itile1, std::uint32_t idst) {
  using namespace towpath::compute;
  combine_tiles(icb0, icb1, itile0, itile1, idst, kProductCycles,
                [](float left, float right) { return left * right; });
}
// Added to what is in the register.
inline void matmul_tiles(std::uint32_t in0_cb_id, std::uint32_t in1_cb_id,
                         std::uint32_t in0_tile_index, std::uint32_t in1_tile_index,
                         std::uint32_t idst) {
  using namespace towpath::compute;
  static float left[kElements];
  static float right[kElements];
  float* const to = destination(idst);
  read_tile(in0_cb_id, in0_tile_index, left);
  read_tile(in1_cb_id, in1_tile_index, right);
  matmul(to, left, right, transposes_right);
  unpack_two(in0_cb_id, in1_cb_id);
  compute(kMatmulCycles);
}
inline void matmul_block(std::uint32_t in0_cb_id, std::uint32_t in1_cb_id,
                         std::uint32_t in0_tile_index, std::uint32_t in1_tile_index,
                         std::uint32_t idst, std::uint32_t transpose, std::uint32_t ct_dim,
                         std::uint32_t rt_dim, std::uint32_t kt_dim) {
  towpath::compute::transposes_right = transpose != 0;
  for (std::uint32_t row = 0; row < rt_dim; ++row) {
    for (std::uint32_t column = 0; column < ct_dim; ++column) {
      matmul_tiles(in0_cb_id, in1_cb_id, in0_tile_index + row * kt_dim, in1_tile_index + column,
                   idst + row * ct_dim + column);
    }
  }
}

// Combines the rows, columns or all of a tile with what is in the register, in its first column,
// row or element. A sum is multiplied by the scaler for each axis; the mean's scaler is the host's.
template <PoolType type = REDUCE_OP, ReduceDim dim = REDUCE_DIM, bool = false>
TOWPATH_PLAIN inline void reduce_tile(std::uint32_t icb, std::uint32_t icb_scaler,
                                      std::uint32_t itile, std::uint32_t itile_scaler,
                                      std::uint32_t idst) {
  using namespace towpath::compute;
  static_assert(type != PoolType::MIN, "a tile is reduced by SUM, AVG or MAX");
  static float numbers[kElements];
  static float scaler[kElements];
  const bool is_first = !engine.is_written[idst % kRegistersMax];
  float* const to = destination(idst);
  read_tile(icb, itile, numbers);
  read_tile(icb_scaler, itile_scaler, scaler);
  const float factor = dim == ReduceDim::REDUCE_SCALAR ? scaler[0] * scaler[0] : scaler[0];
  bool is_seen[kElements] = {};
  for (std::uint32_t i = 0; i < kElements; ++i) {
    const std::uint32_t row = dim == ReduceDim::REDUCE_ROW ? i / kSide : 0;
    const std::uint32_t column = dim == ReduceDim::REDUCE_COL ? i % kSide : 0;
    float& result = to[row * kSide + column];
    const float number = numbers[i] * factor;
    if (type != PoolType::MAX) {
      result += number;
    } else {
      bool& is_known = is_seen[row * kSide + column];
      result = is_first && !is_known ? number : std::max(result, number);
      is_known = true;
    }
  }
  unpack_two(icb, icb_scaler);
  compute(type == PoolType::MAX ? kReduceCycles : kReduceCycles * kPasses);
}

// --- packing ------------------------------------------------------------------------------------

template <bool out_of_order_output = false>
TOWPATH_PLAIN inline void pack_tile(std::uint32_t ifrom_dst, std::uint32_t icb,
                                    std::uint32_t output_tile_index = 0) {
  using namespace towpath::compute;
  if (engine.state == Registers::free || engine.state == Registers::committed) {
    refuse("pack_tile needs tile_regs_wait before it");
  }
  if (ifrom_dst >= kRegistersMax) refuse("pack_tile names a tile register above 15");
  std::uint32_t& packed = engine.packed_tiles[icb % 32];
  const std::uint32_t tile = out_of_order_output ? output_tile_index : packed++;
  const std::uint32_t address = get_write_ptr(icb) + tile * get_tile_size(icb);
  if (engine.accumulates_in_l1) refuse("pack_tile adds to what is in L1, which is not modelled");
  write_tile(icb, address, engine.registers[ifrom_dst]);
  busy(engine.packed_at, engine.computed_at,
       (get_tile_size(icb) + kPackBytesPerCycle - 1) / kPackBytesPerCycle);
}
inline void pack_tile_block(std::uint32_t ifrom_dst, std::uint32_t icb, std::uint32_t ntiles) {
  for (std::uint32_t tile = 0; tile < ntiles; ++tile) pack_tile(ifrom_dst + tile, icb);
}

// --- rows and tiles -----------------------------------------------------------------------------

namespace towpath::compute {

// Rows of `block` tiles' width, 32 of them, at the front of a buffer, from or to a tile.
TOWPATH_PLAIN inline void move_rows(std::uint32_t buffer, std::uint32_t address,
                                    std::uint32_t block, std::uint32_t tile, float* numbers,
                                    bool is_store) {
  static Raw raw;
  const DataFormat format = get_dataformat(buffer);
  const std::uint32_t bytes = element_bytes(format);
  if (bytes == 1) refuse("rows that are no tiles are of Float32 or Float16_b");
  for (std::uint32_t row = 0; row < kSide; ++row) {
    const std::uint32_t at = address + (row * block + tile) * kSide * bytes;
    if (is_store) {
      put_numbers(raw, format, numbers + row * kSide, kSide);
      TOWPATH_CALL(store, at, raw.bytes, kSide * bytes, nullptr);
    } else {
      load_raw(at, raw, kSide * bytes);
      for (std::uint32_t i = 0; i < kSide; ++i) {
        numbers[row * kSide + i] = number_of(raw, format, i);
      }
    }
  }
}

// What goes through the registers on its way from one buffer to the other.
inline void pass(std::uint32_t from, std::uint32_t to) {
  unpack_one(from);
  compute(kSumCycles);
  busy(engine.packed_at, engine.computed_at,
       (get_tile_size(to) + kPackBytesPerCycle - 1) / kPackBytesPerCycle);
}

}  // namespace towpath::compute

inline void tilize_block(std::uint32_t icb, std::uint32_t block, std::uint32_t ocb,
                         std::uint32_t input_tile_index = 0, std::uint32_t output_tile_index = 0) {
  using namespace towpath::compute;
  static float numbers[kElements];
  for (std::uint32_t tile = 0; tile < block; ++tile) {
    move_rows(icb, tile_address(icb, input_tile_index), block, tile, numbers, false);
    write_tile(ocb, get_write_ptr(ocb) + (output_tile_index + tile) * get_tile_size(ocb), numbers);
    pass(icb, ocb);
  }
}
template <std::uint32_t block_ct_dim = 1>
inline void untilize_block(std::uint32_t icb, std::uint32_t full_ct_dim, std::uint32_t ocb) {
  using namespace towpath::compute;
  static float numbers[kElements];
  for (std::uint32_t tile = 0; tile < full_ct_dim; ++tile) {
    read_tile(icb, tile, numbers);
    move_rows(ocb, get_write_ptr(ocb), full_ct_dim, tile, numbers, true);
    pass(icb, ocb);
  }
}
