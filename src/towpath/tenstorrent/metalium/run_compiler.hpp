// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace towpath::tenstorrent::metalium {

struct CompilerResult {
  bool is_missing = false;
  int status = 0;
  std::string output;  // of both kinds
};

// Runs a program to its end. The first word is its name, searched for in $PATH.
CompilerResult run_compiler(const std::vector<std::string>& command);

}  // namespace towpath::tenstorrent::metalium
