// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "towpath/base/units.hpp"

namespace towpath::sim {

// Time-relative state: equal snapshots evolve identically.
//
//   Snapshot snapshot(now);
//   snapshot.add(link.free_at);
//   snapshot.add(queue.size());
class Snapshot {
 public:
  explicit Snapshot(Time since = Time()) : since_(since) {}

  Time since() const { return since_; }
  void add(std::uint64_t word) { words_.push_back(word); }
  // Two 32-bit numbers in one word.
  void add(std::uint32_t high, std::uint32_t low) { add(std::uint64_t{high} << 32 | low); }
  // The distance from `since`. Time::max() stands for an unknown time.
  void add(Time time) {
    add(static_cast<std::uint64_t>(time == Time::max() ? time.ps() : (time - since_).ps()));
  }
  // For times that matter only if they are later than `since`.
  void add_if_later(Time time) { add(time > since_ ? time : since_); }
  bool has_equal_words(const Snapshot& other) const { return words_ == other.words_; }

 private:
  Time since_;
  std::vector<std::uint64_t> words_;
};

}  // namespace towpath::sim
