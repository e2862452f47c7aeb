// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/collective/time_only/partitions.hpp"

#include <algorithm>
#include <numeric>

namespace towpath::collective::time_only {

Partitioning::Partitioning(std::uint32_t blocks) : parent_(blocks) {
  std::iota(parent_.begin(), parent_.end(), 0u);
}

std::uint32_t Partitioning::root(std::uint32_t block) {
  while (parent_[block] != block) block = parent_[block] = parent_[parent_[block]];
  return block;
}

// The root is the lowest number.
void Partitioning::join(std::uint32_t a, std::uint32_t b) {
  const auto [low, high] = std::minmax({root(a), root(b)});
  parent_[high] = low;
}

void Partitioning::join_at(int link, std::uint32_t block) {
  join(first_at_.try_emplace(link, block).first->second, block);
}

Partitions Partitioning::divide() {
  Partitions partitions;
  for (std::uint32_t block = 0; block < parent_.size(); ++block) {
    const std::uint32_t lowest = root(block);
    const bool is_new = lowest == block;
    partitions.of_block.push_back(is_new ? partitions.count++ : partitions.of_block[lowest]);
  }
  return partitions;
}

}  // namespace towpath::collective::time_only
