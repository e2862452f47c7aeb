// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>

#include "towpath/base/units.hpp"

namespace towpath::machine {

// The largest figures of a description: beyond every machine, and small enough for all sums.
inline constexpr int kCyclesMax = 1'000'000;
inline constexpr int kCountMax = 65'536;
inline constexpr std::uint64_t kMemoryMax = std::uint64_t{1} << 40;
inline constexpr Time kTimeMax = Time::from_seconds(1);
inline constexpr Rate kRateMax = Rate::from_gb_per_s(1e6);
inline constexpr double kBytesPerCycleMax = 1e6;

// Checks of a description's figures. Each throws std::invalid_argument with one sentence that names
// the owner, the field, its value and what is allowed.
class Checks {
 public:
  // The owner in words, such as "host 'blackhole-host'".
  explicit Checks(std::string owner) : owner_(std::move(owner)) {}

  void number(const char* field, std::int64_t value, std::int64_t min, std::int64_t max) const {
    if (value < min || value > max) fail("{} is {}; it must be {} to {}", field, value, min, max);
  }
  void memory(const char* field, std::uint64_t bytes) const {
    if (bytes < 1 || bytes > kMemoryMax) {
      fail("{} is {}; it must be 1 to {}", field, bytes, kMemoryMax);
    }
  }
  void time(const char* field, Time time, Time min = Time()) const {
    if (time < min || time > kTimeMax) {
      fail("{} is {} ns; it must be {} to {}", field, time.ns(), min.ns(), kTimeMax.ns());
    }
  }
  void rate(const char* field, Rate rate) const {
    if (rate <= Rate() || rate > kRateMax) {
      fail("{} is {} GB/s; it must be positive, {} at most", field, rate.gb_per_s(),
           kRateMax.gb_per_s());
    }
  }
  void power_of_two(const char* field, int value, int max) const {
    if (value < 1 || value > max || (value & (value - 1)) != 0) {
      fail("{} is {}; it must be a power of two, {} at most", field, value, max);
    }
  }

  template <typename... Arguments>
  [[noreturn]] void fail(fmt::format_string<Arguments...> format, Arguments&&... arguments) const {
    throw std::invalid_argument(
        fmt::format("{}: {}", owner_, fmt::format(format, std::forward<Arguments>(arguments)...)));
  }

 private:
  std::string owner_;
};

}  // namespace towpath::machine
