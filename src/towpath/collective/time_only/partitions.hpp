// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

// Thread blocks that share events are kept in order of time. All others may run independently.

namespace towpath::collective::time_only {

struct Partitions {
  std::vector<std::uint32_t> of_block;  // in the order of their first blocks
  std::uint32_t count = 0;
};

class Partitioning {
 public:
  explicit Partitioning(std::uint32_t blocks);
  void join(std::uint32_t a, std::uint32_t b);
  // All blocks that use the same link.
  void join_at(int link, std::uint32_t block);
  Partitions divide();

 private:
  std::uint32_t root(std::uint32_t block);

  std::vector<std::uint32_t> parent_;
  std::unordered_map<int, std::uint32_t> first_at_;  // by link
};

}  // namespace towpath::collective::time_only
