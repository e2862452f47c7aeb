// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>
#include <span>
#include <type_traits>
#include <vector>

#include "towpath/transport/reduction.hpp"

// Encoding of small whole numbers in each element type, and comparison with them. Independent of
// the reductions under test.

namespace towpath::collective {

// A built-in type.
template <class T>
struct PlainFormat {
  using Stored = T;
  static constexpr bool kIsFloat = std::is_floating_point_v<T>;
  // Rounding error of an average's division. Doubles are compared exactly.
  static constexpr double kAverageStep = sizeof(T) == 4 ? 0x1p-22 : 0.0;
  static T stored(std::uint8_t value) { return static_cast<T>(value); }
  static double number(T found) { return static_cast<double>(found); }
  static bool differs(T found, T expected) { return found != expected; }
};

// IEEE binary16 as bits.
struct Float16Format {
  using Stored = std::uint16_t;
  static constexpr bool kIsFloat = true;
  static constexpr double kAverageStep = 0x1p-10;
  static constexpr std::uint16_t kMinusZero = 0x8000;

  static std::uint16_t stored(std::uint8_t value) {
    if (value == 0) return 0;
    const int exponent = std::bit_width(value) - 1;
    const int fraction = (value << (10 - exponent)) & 0x3ff;
    return static_cast<std::uint16_t>(((exponent + 15) << 10) | fraction);
  }
  static double number(std::uint16_t found) {
    const int exponent = (found >> 10) & 0x1f;
    const int fraction = found & 0x3ff;
    double magnitude = 0;
    if (exponent == 0) {
      magnitude = std::ldexp(fraction, -24);
    } else if (exponent < 0x1f) {
      magnitude = std::ldexp(fraction + 0x400, exponent - 25);
    } else {
      using Limits = std::numeric_limits<double>;
      magnitude = fraction == 0 ? Limits::infinity() : Limits::quiet_NaN();
    }
    return (found & kMinusZero) != 0 ? -magnitude : magnitude;
  }
  static bool differs(std::uint16_t found, std::uint16_t expected) {
    return found != expected && !(found == kMinusZero && expected == 0);
  }
};

// The upper half of a float32 as bits.
struct BFloat16Format {
  using Stored = std::uint16_t;
  static constexpr bool kIsFloat = true;
  static constexpr double kAverageStep = 0x1p-7;

  // Exact: whole numbers below 256 fit into the upper half of a float32.
  static std::uint16_t stored(std::uint8_t value) {
    return static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(static_cast<float>(value)) >>
                                      16);
  }
  static double number(std::uint16_t found) {
    return std::bit_cast<float>(static_cast<std::uint32_t>(found) << 16);
  }
  static bool differs(std::uint16_t found, std::uint16_t expected) { return found != expected; }
};

// Calls `function` with the format of a type.
template <class Function>
void with_format(transport::DataType type, Function function) {
  using transport::DataType;
  switch (type) {
    case DataType::int8: return function(PlainFormat<std::int8_t>());
    case DataType::uint8: return function(PlainFormat<std::uint8_t>());
    case DataType::int32: return function(PlainFormat<std::int32_t>());
    case DataType::uint32: return function(PlainFormat<std::uint32_t>());
    case DataType::int64: return function(PlainFormat<std::int64_t>());
    case DataType::uint64: return function(PlainFormat<std::uint64_t>());
    case DataType::float16: return function(Float16Format());
    case DataType::bfloat16: return function(BFloat16Format());
    case DataType::float32: return function(PlainFormat<float>());
    case DataType::float64: return function(PlainFormat<double>());
  }
}

// Fills `elements` with `values`, repeated.
template <class Format>
void fill(std::span<std::byte> elements, std::span<const std::uint8_t> values) {
  using Stored = typename Format::Stored;
  std::vector<Stored> stored(values.size());
  std::ranges::transform(values, stored.begin(), Format::stored);
  const std::span<const std::byte> period = std::as_bytes(std::span(stored));
  for (std::size_t begin = 0; begin < elements.size(); begin += period.size()) {
    const std::size_t some = std::min(period.size(), elements.size() - begin);
    std::memcpy(elements.data() + begin, period.data(), some);
  }
}

// Number of elements for which `is_wrong(element, value index)` holds. The index cycles below
// `period`, which is at least 1 if there are elements.
template <class Format, class IsWrong>
std::uint64_t count_where(std::span<const std::byte> found, std::size_t period, IsWrong is_wrong) {
  using Stored = typename Format::Stored;
  const std::size_t count = found.size() / sizeof(Stored);
  std::uint64_t wrong = 0;
  for (std::size_t begin = 0; begin < count; begin += period) {
    const std::byte* const from = found.data() + begin * sizeof(Stored);
    const std::size_t some = std::min(period, count - begin);
    for (std::size_t i = 0; i < some; ++i) {
      Stored each;
      std::memcpy(&each, from + i * sizeof(Stored), sizeof(Stored));
      wrong += is_wrong(each, i) ? 1 : 0;
    }
  }
  return wrong;
}

// Number of elements that differ from the repeated `values`, divided by `divisor` if it is set.
// Integer quotients are truncated. Float quotients may have a rounding error.
template <class Format>
std::uint64_t count_different(std::span<const std::byte> found,
                              std::span<const std::uint8_t> values,
                              std::optional<std::uint64_t> divisor) {
  using Stored = typename Format::Stored;
  if (Format::kIsFloat && divisor) {
    std::vector<double> expected(values.size());
    std::ranges::transform(values, expected.begin(), [&](std::uint8_t value) {
      return static_cast<double>(value) / static_cast<double>(*divisor);
    });
    return count_where<Format>(found, values.size(), [&](Stored each, std::size_t i) {
      const double error = std::abs(Format::number(each) - expected[i]);
      return !(error <= expected[i] * Format::kAverageStep);  // also counts a NaN
    });
  }
  std::vector<Stored> expected(values.size());
  std::ranges::transform(values, expected.begin(), [&](std::uint8_t value) {
    return Format::stored(static_cast<std::uint8_t>(value / divisor.value_or(1)));
  });
  return count_where<Format>(found, values.size(), [&](Stored each, std::size_t i) {
    return Format::differs(each, expected[i]);
  });
}

}  // namespace towpath::collective
