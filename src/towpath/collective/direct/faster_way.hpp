// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "towpath/base/units.hpp"
#include "towpath/collective/direct/call.hpp"

// Which of two ways is faster for calls of a kind and size, by trying: what it takes to read the
// memory of another process depends on the pages of the program's own arrays, so that no
// measurement on others tells. A few calls go one way, a few the other, and the better one is kept
// for a while.

namespace towpath::collective::direct {

class FasterWay {
 public:
  struct Choice {
    bool is_second = false;
    bool is_trial = false;  // its time is wanted
  };

  Choice choose(Kind kind, std::uint64_t size_bytes) {
    Entry& entry = entry_of(kind, size_bytes);
    const std::uint32_t turn = entry.calls++ % kPeriod;
    if (turn == 0) entry.least = {Time::max(), Time::max()};
    if (turn < 2 * kTrials) return {turn >= kTrials, turn % kTrials >= kUntimed};
    return {entry.least[1] < entry.least[0], false};
  }
  // How long the call of a trial took. What comes in between only makes it longer, so that the
  // least counts.
  void note(Kind kind, std::uint64_t size_bytes, bool is_second, Time time) {
    Time& least = entry_of(kind, size_bytes).least[is_second ? 1 : 0];
    if (time < least) least = time;
  }

 private:
  // The first calls of each way touch new pages, and find room that the other way left free. Tried
  // again soon enough to follow a virtual machine whose processors are moved, and so seldom that a
  // way that takes four times as long costs a twentieth.
  static constexpr std::uint32_t kTrials = 4;
  static constexpr std::uint32_t kUntimed = 2;
  static constexpr std::uint32_t kPeriod = 256;

  struct Entry {
    std::uint32_t calls = 0;
    std::array<Time, 2> least{Time::max(), Time::max()};
  };
  Entry& entry_of(Kind kind, std::uint64_t size_bytes) {
    const auto width = static_cast<std::size_t>(std::bit_width(size_bytes));
    return entries_[static_cast<std::size_t>(kind)][width];
  }
  std::array<std::array<Entry, 65>, kKinds> entries_;  // by kind, and by the bits of the size
};

}  // namespace towpath::collective::direct
