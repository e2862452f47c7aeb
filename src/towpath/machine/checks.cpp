// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/machine/checks.hpp"

#include <bit>
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

void Checks::parameter(std::string_view name, const void* block, const Parameter& parameter) const {
  const double value = value_of(block, parameter);
  const bool may_be_zero =
      parameter.form == Form::optional_quantity && parameter.default_source.empty();
  if (value == 0 && may_be_zero) return;
  const std::string problem = problem_of(value, parameter.allowed);
  if (!problem.empty()) fail_at(joined(name, parameter.name), "{}", problem);
}

void Checks::block(std::string_view name, const void* block,
                   std::span<const Parameter> table) const {
  for (const Parameter& row : table) parameter(name, block, row);
}

void Checks::blocks(const void* description, const BlockTable& table) const {
  const void* there = table.in(description);
  if (table.list == nullptr) return block(table.path, there, table.parameters);
  for (std::size_t i = 0; i < table.list->size(there); ++i) {
    block(fmt::format("{}[{}]", table.path, i), table.list->at(there, i), table.parameters);
  }
}

}  // namespace towpath::machine
