// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <queue>
#include <vector>

#include "towpath/noc/router/packet.hpp"

namespace towpath::noc {

// Events of later cycles, in order of time and then of insertion.
template <typename Event>
class Timers {
 public:
  void add(Cycle at, const Event& event) { entries_.push({at, sequence_++, event}); }
  // The cycle of the first event, or kNever if there is none.
  Cycle next() const { return entries_.empty() ? kNever : entries_.top().at; }
  // Calls run(event) for each event up to `now`, including events that run() adds.
  template <typename Run>
  void run_until(Cycle now, Run run) {
    while (next() <= now) {
      const Event event = entries_.top().event;
      entries_.pop();
      run(event);
    }
  }

 private:
  struct Entry {
    Cycle at;
    std::uint64_t sequence;
    Event event;
    bool operator>(const Entry& other) const {
      return at != other.at ? at > other.at : sequence > other.sequence;
    }
  };
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> entries_;
  std::uint64_t sequence_ = 0;
};

}  // namespace towpath::noc
