// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace towpath::os {

struct CommandResult {
  static constexpr int kNotFound = 127;

  int status = 0;
  std::string output;
  std::string errors;
};

// Runs a program from PATH, without a shell, and waits for it. `input` is its standard input.
CommandResult run_command(const std::vector<std::string>& words, const std::string& input = {});

}  // namespace towpath::os
