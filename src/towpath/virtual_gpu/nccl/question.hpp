// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace towpath::virtual_gpu {

struct Operation {
  std::string collective;  // "all_reduce"
  std::uint64_t size_bytes;
};

// The calls whose launches are asked for: lines "KEYWORD VALUE ..." of a file.
struct Question {
  int nodes = 1;
  int gpus_per_node = 1;
  // Only the ranks of the first node run, as the program of replicated/ needs it.
  bool is_replicated = false;
  int deadline_s = 60;
  std::uint64_t memory_max_bytes = std::uint64_t{4} << 30;  // of each node's process
  std::string log_file;                                     // one per node, with ".NODE"
  std::vector<Operation> operations;

  // Ends the process by `stop` if the file cannot be read or a line is wrong.
  static Question read(const char* path);
};

// Prints a line of the answer to stdout in one write.
void answer(const std::string& line);

}  // namespace towpath::virtual_gpu
