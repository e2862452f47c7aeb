// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "towpath/machine/parameters.hpp"

namespace towpath::machine {

// One sentence on a description that cannot be: whose it is, what is wrong, and what is allowed.
class DescriptionError : public std::invalid_argument {
 public:
  // The owner in words, such as "host 'xeon'". The field, such as "router.hop_cycles", is empty
  // where the problem is not one field's.
  DescriptionError(const std::string& owner, std::string field, std::string problem)
      : std::invalid_argument(field.empty() ? fmt::format("{}: {}", owner, problem)
                                            : fmt::format("{}: {} {}", owner, field, problem)),
        field_(std::move(field)),
        problem_(std::move(problem)) {}

  const std::string& field() const { return field_; }
  const std::string& problem() const { return problem_; }

 private:
  std::string field_;
  std::string problem_;
};

// The sentence on a value that is not allowed; empty if it is allowed.
std::string problem_of(double value, const Allowed& allowed);

// A member's value in the unit of its parameter's name, which ends in _us where it is not in ns.
inline double shown(int value, std::string_view) { return value; }
inline double shown(bool value, std::string_view) { return value ? 1 : 0; }
inline double shown(double value, std::string_view) { return value; }
inline double shown(std::uint64_t value, std::string_view) { return static_cast<double>(value); }
inline double shown(BytesPerCycle rate, std::string_view) { return rate.value(); }
inline double shown(Rate rate, std::string_view) { return rate.gb_per_s(); }
inline double shown(Frequency clock, std::string_view) {
  return static_cast<double>(clock.hz()) / 1e6;
}
inline double shown(Time time, std::string_view name) {
  return name.ends_with("_us") ? time.us() : time.ns();
}

template <typename Block>
double value_of(const Block& block, const Parameter<Block>& parameter) {
  return parameter.member.visit([&](auto member) { return shown(block.*member, parameter.name); });
}

inline std::string joined(std::string_view block, std::string_view name) {
  return block.empty() ? std::string(name) : fmt::format("{}.{}", block, name);
}

// Checks of one description. Each throws DescriptionError.
class Checks {
 public:
  explicit Checks(std::string owner) : owner_(std::move(owner)) {}

  // A parameter of a block is within its bounds. An optional one may be zero, its default.
  template <typename Block>
  void parameter(std::string_view name, const Block& block,
                 const Parameter<Block>& parameter) const {
    const double value = value_of(block, parameter);
    if (value == 0 && parameter.form == Form::optional_quantity) return;
    const std::string problem = problem_of(value, parameter.allowed);
    if (!problem.empty()) fail_at(joined(name, parameter.name), "{}", problem);
  }

  // Every parameter of a block, or of a list of blocks.
  template <typename Block, std::size_t kSize>
  void block(std::string_view name, const Block& block,
             const Parameter<Block> (&table)[kSize]) const {
    for (const Parameter<Block>& row : table) parameter(name, block, row);
  }
  template <typename Block, std::size_t kSize>
  void block(std::string_view name, const std::vector<Block>& blocks,
             const Parameter<Block> (&table)[kSize]) const {
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      block(fmt::format("{}[{}]", name, i), blocks[i], table);
    }
  }

  // A parameter that another one bounds from above, or from below.
  void at_most(std::string_view field, double value, double most, std::string_view bound) const {
    if (value > most) fail_at(field, "is {}; it must be at most {}, {}", value, most, bound);
  }
  void at_least(std::string_view field, double value, double least, std::string_view bound) const {
    if (value < least) fail_at(field, "is {}; it must be at least {}, {}", value, least, bound);
  }
  void number(std::string_view field, std::int64_t value, std::int64_t min,
              std::int64_t max) const {
    if (value < min || value > max) fail_at(field, "is {}; it must be {} to {}", value, min, max);
  }

  template <typename... Arguments>
  [[noreturn]] void fail_at(std::string_view field, fmt::format_string<Arguments...> format,
                            Arguments&&... arguments) const {
    throw DescriptionError(owner_, std::string(field),
                           fmt::format(format, std::forward<Arguments>(arguments)...));
  }

  template <typename... Arguments>
  [[noreturn]] void fail(fmt::format_string<Arguments...> format, Arguments&&... arguments) const {
    throw DescriptionError(owner_, "", fmt::format(format, std::forward<Arguments>(arguments)...));
  }

 private:
  std::string owner_;
};

}  // namespace towpath::machine
