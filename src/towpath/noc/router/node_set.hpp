// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace towpath::noc {

// Nodes to examine in this cycle, one bit each.
class NodeSet {
 public:
  explicit NodeSet(int nodes) : words_(static_cast<std::size_t>(nodes + 63) / 64) {}
  void insert(int node) { words_[word(node)] |= bit(node); }
  bool empty() const {
    for (const std::uint64_t word : words_) {
      if (word != 0) return false;
    }
    return true;
  }
  // Adds the node if `is_member` is 1, not if it is 0.
  void insert_if(int node, std::uint64_t is_member) {
    words_[word(node)] |= is_member << (node & 63);
  }
  // Calls visit(node) -> bool for each node, in order. A node leaves the set on false, unless it
  // was inserted meanwhile.
  template <typename Visit>
  void filter(Visit visit) {
    for (std::size_t word = 0; word < words_.size(); ++word) {
      for (std::uint64_t rest = std::exchange(words_[word], 0); rest != 0; rest &= rest - 1) {
        const int lowest = std::countr_zero(rest);
        const bool stays = visit(static_cast<int>(word * 64) + lowest);
        words_[word] |= std::uint64_t{stays} << lowest;
      }
    }
  }

 private:
  static std::size_t word(int node) { return static_cast<std::size_t>(node) >> 6; }
  static std::uint64_t bit(int node) { return std::uint64_t{1} << (node & 63); }
  std::vector<std::uint64_t> words_;
};

}  // namespace towpath::noc
