// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "towpath/base/units.hpp"

namespace towpath::sim {

// A seeded generator (xoshiro256**) with the same numbers on every platform and compiler. It uses
// integer arithmetic and single roundings, not the standard library's distributions.
//
//   Random random(seed, "link 3 bit errors");
//
// Wrong: two models sharing one Random. An extra draw in one model changes the results of the
// other. Use one stream per model.
class Random {
 public:
  // Streams of one seed are independent of each other and of their construction order.
  Random(std::uint64_t seed, std::string_view stream);

  std::uint64_t bits() {
    const std::uint64_t result = rotate_left(state_[1] * 5, 7) * 9;
    const std::uint64_t shifted = state_[1] << 17;
    state_[2] ^= state_[0];
    state_[3] ^= state_[1];
    state_[1] ^= state_[2];
    state_[0] ^= state_[3];
    state_[2] ^= shifted;
    state_[3] = rotate_left(state_[3], 45);
    return result;
  }

  // Uniform in [0, bound), without bias. `bound` is at least 1.
  std::uint64_t below(std::uint64_t bound);

  // Uniform in [first, last].
  std::int64_t between(std::int64_t first, std::int64_t last);

  // Uniform in [0, 1), a multiple of 2^-53.
  double uniform() { return static_cast<double>(bits() >> 11) * 0x1p-53; }

  // Mean 1.
  double exponential();

  // Rounded to the nearest picosecond.
  Time exponential(Time mean);

 private:
  static constexpr std::uint64_t rotate_left(std::uint64_t x, int bits) {
    return x << bits | x >> (64 - bits);
  }
  std::array<std::uint64_t, 4> state_;
};

}  // namespace towpath::sim
