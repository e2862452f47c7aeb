// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdexcept>
#include <string>

namespace towpath {

// What is said when the action is refused; empty when it is not.
template <typename Error = std::invalid_argument, typename Action>
std::string sentence_of(const Action& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace towpath
