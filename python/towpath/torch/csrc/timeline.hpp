// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

// What a program did, in its order: collectives that it began, waits for them, and what it computed
// between. towpath.torch.simulate makes simulated time of it.

namespace towpath_torch {

struct Event {
  // future: someone took the future of a work, and may wait for that. open and close: what is
  // between them happens during a computation.
  enum class Kind : uint8_t { begin, wait, future, compute, open, close };
  Kind kind = Kind::begin;
  uint64_t work = 0;  // of begin, wait and future
  std::string name;
  uint64_t size_bytes = 0;
  int peer = -1;               // the root or the other end, as a rank of the group
  std::vector<int64_t> ranks;  // the group, as global ranks
  double seconds = 0;          // of compute and open
};

class Timeline {
 public:
  // Returns the number of the work that begins.
  uint64_t begin(Event event) {
    const std::lock_guard lock(mutex_);
    event.work = ++works_;
    events_.push_back(std::move(event));
    return works_;
  }
  void note(Event::Kind kind, uint64_t work, double seconds = 0) {
    const std::lock_guard lock(mutex_);
    Event event;
    event.kind = kind;
    event.work = work;
    event.seconds = seconds;
    events_.push_back(std::move(event));
  }
  std::vector<Event> events() const {
    const std::lock_guard lock(mutex_);
    return events_;
  }
  void clear() {
    const std::lock_guard lock(mutex_);
    events_.clear();
  }

 private:
  mutable std::mutex mutex_;
  uint64_t works_ = 0;
  std::vector<Event> events_;
};

}  // namespace towpath_torch
