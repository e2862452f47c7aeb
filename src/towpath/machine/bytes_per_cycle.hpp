// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstdint>

namespace towpath::machine {

// Bytes per cycle of the chip's clock, in 1/256 byte: exact for every value in a spec.
class BytesPerCycle {
 public:
  constexpr BytesPerCycle() = default;
  static constexpr BytesPerCycle from(double bytes_per_cycle) {
    return BytesPerCycle(static_cast<std::uint32_t>(bytes_per_cycle * 256 + 0.5));
  }
  constexpr double value() const { return in_256ths_ / 256.0; }
  constexpr auto operator<=>(const BytesPerCycle&) const = default;

 private:
  explicit constexpr BytesPerCycle(std::uint32_t in_256ths) : in_256ths_(in_256ths) {}
  std::uint32_t in_256ths_ = 0;
};

}  // namespace towpath::machine
