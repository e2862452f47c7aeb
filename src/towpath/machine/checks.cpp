// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/machine/checks.hpp"

#include <cmath>

namespace towpath::machine {

namespace {

bool is_power_of_two(double value) {
  return value >= 1 && value == std::floor(value) &&
         std::has_single_bit(static_cast<std::uint64_t>(value));
}

}  // namespace

std::string problem_of(double value, const Allowed& allowed) {
  const bool is_within = value >= allowed.min && value <= allowed.max;
  if (is_within && (!allowed.is_power_of_two || is_power_of_two(value))) return "";
  return fmt::format("is {}; it must be {}{} to {}", value,
                     allowed.is_power_of_two ? "a power of two, " : "", allowed.min, allowed.max);
}

}  // namespace towpath::machine
