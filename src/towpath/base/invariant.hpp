// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <stdexcept>
#include <string>

// A broken invariant is a bug in the program, never bad input. The check stays in release builds,
// and the core never catches the error.
//
//   TOWPATH_CHECK(credits >= 0, "port {} has {} credits; at least 0 are possible", port, credits);
//
// Wrong: checking user input. That has its own error type, with file and field.

namespace towpath {

class InvariantError : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

[[noreturn]] void throw_invariant_error(const std::string& sentence);

}  // namespace towpath

#define TOWPATH_CHECK(condition, ...)                               \
  do {                                                              \
    if (!(condition)) [[unlikely]] {                                \
      ::towpath::throw_invariant_error(::fmt::format(__VA_ARGS__)); \
    }                                                               \
  } while (false)
