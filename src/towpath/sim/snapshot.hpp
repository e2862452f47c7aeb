// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "towpath/base/units.hpp"

namespace towpath::sim {

// All that decides what follows, seen from a moment on: what follows two moments with equal words
// is the same, but for the time between them.
//
//   Snapshot snapshot(now);
//   snapshot.add(link.free_at);
//   snapshot.add(queue.size());
class Snapshot {
 public:
  explicit Snapshot(Time since = Time()) : since_(since) {}

  Time since() const { return since_; }
  void add(std::uint64_t word) { words_.push_back(word); }
  // Two numbers of 32 bits in a word.
  void add(std::uint32_t high, std::uint32_t low) { add(std::uint64_t{high} << 32 | low); }
  // How much later than `since` it is; Time::max() stands for a time that is not known.
  void add(Time time) {
    add(static_cast<std::uint64_t>(time == Time::max() ? time.ps() : (time - since_).ps()));
  }
  // The same of a time that only matters when it comes later than `since`.
  void add_if_later(Time time) { add(time > since_ ? time : since_); }
  bool has_equal_words(const Snapshot& other) const { return words_ == other.words_; }

 private:
  Time since_;
  std::vector<std::uint64_t> words_;
};

}  // namespace towpath::sim
