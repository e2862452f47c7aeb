// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

#include "tensix_types.h"
#include "towpath_prelude.h"

// The compute engine of a worker, included by dataflow_api.h for compute kernels: its destination
// registers, and when its three parts are free. They work at the same time; the kernel, which on
// hardware is three kernels, is one here, and waits for a part where the part's own kernel would:
// for the unpackers before it pops pages, for the packers before it pushes them.
//
// Rates: tt-metal, tech_reports/matrix_engine: in a cycle 8x16 by 16x16 multiplied, 8x16 elements
// added or multiplied, 16x16 reduced; products take as many passes as the fidelity says.
// tt-isa-documentation, WormholeB0/TensixTile/L1.md: one unpacker reads 64 bytes per cycle, two
// together 80, and four packers write 64. A copy into the registers is taken to be a sum.

namespace towpath::compute {

inline constexpr std::uint32_t kSide = 32;
inline constexpr std::uint32_t kElements = kSide * kSide;
inline constexpr std::uint32_t kRegistersMax = 16;
inline constexpr std::uint32_t kFaceSide = 16;
inline constexpr std::uint64_t kPasses = MATH_FIDELITY < 1 ? 1 : MATH_FIDELITY;
inline constexpr std::uint64_t kMatmulCycles = kSide * kElements / 2048 * kPasses;
inline constexpr std::uint64_t kSumCycles = kElements / 128;
inline constexpr std::uint64_t kProductCycles = kSumCycles * kPasses;
inline constexpr std::uint64_t kReduceCycles = kElements / 256;
inline constexpr std::uint64_t kUnpackBytesPerCycle = 64;
inline constexpr std::uint64_t kUnpackTwoBytesPerCycle = 80;
inline constexpr std::uint64_t kPackBytesPerCycle = 64;

enum class Registers : std::uint8_t { free, acquired, committed, packing };

struct Engine {
  float registers[kRegistersMax][kElements];  // row by row
  bool is_written[kRegistersMax];
  Registers state;
  bool accumulates_in_l1;
  std::uint64_t unpacked_at;
  std::uint64_t computed_at;
  std::uint64_t packed_at;
  std::uint32_t packed_tiles[32];  // since the last push of each buffer
};
inline Engine engine;

inline void wait_until(std::uint64_t cycle) {
  const std::uint64_t now = TOWPATH_CALL(cycle);
  if (cycle > now) TOWPATH_CALL(work, cycle - now);
}
// Work of a part that begins when both it and what it needs are ready.
inline std::uint64_t busy(std::uint64_t& part, std::uint64_t ready, std::uint64_t cycles) {
  part = std::max({part, ready, static_cast<std::uint64_t>(TOWPATH_CALL(cycle))}) + cycles;
  return part;
}
inline void unpack(std::uint64_t bytes, std::uint64_t bytes_per_cycle) {
  busy(engine.unpacked_at, 0, (bytes + bytes_per_cycle - 1) / bytes_per_cycle);
}
inline void compute(std::uint64_t cycles) { busy(engine.computed_at, engine.unpacked_at, cycles); }

}  // namespace towpath::compute
