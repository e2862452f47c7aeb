// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "towpath/machine/parameters.hpp"

namespace towpath::machine {

// An invalid description: its owner, the problem, and the allowed values, in one sentence.
class DescriptionError : public std::invalid_argument {
 public:
  // The owner as text, e.g. "host 'xeon'". The field, e.g. "router.hop_cycles", is empty if the
  // problem is not in a single field.
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

// The error text for a disallowed value; empty if it is allowed.
std::string problem_of(double value, const Allowed& allowed);

inline std::string joined(std::string_view block, std::string_view name) {
  return block.empty() ? std::string(name) : fmt::format("{}.{}", block, name);
}

// Checks of one description. Each throws DescriptionError.
class Checks {
 public:
  explicit Checks(std::string owner) : owner_(std::move(owner)) {}

  // Checks that a parameter of a block is within its bounds. An optional one without a default may
  // be zero.
  void parameter(std::string_view name, const void* block, const Parameter& parameter) const;
  // Every parameter of a block.
  void block(std::string_view name, const void* block, std::span<const Parameter> table) const;
  // Every parameter of a block of a description, or of a list of blocks.
  void blocks(const void* description, const BlockTable& table) const;

  // Checks that a parameter is at most, or at least, the value of another one.
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
