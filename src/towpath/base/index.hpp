// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

namespace towpath {

// Converts a non-negative number to a container index.
//
//   chips[index(link.from)]
//
// Wrong: a number that may be negative. Check it first.
constexpr std::size_t index(std::int64_t number) { return static_cast<std::size_t>(number); }

// a / b, rounded up. b must not be zero.
constexpr std::uint64_t divide_up(std::uint64_t a, std::uint64_t b) { return (a + b - 1) / b; }
// `value`, rounded up to a multiple of `step`.
constexpr std::uint64_t round_up(std::uint64_t value, std::uint64_t step) {
  return divide_up(value, step) * step;
}

}  // namespace towpath
