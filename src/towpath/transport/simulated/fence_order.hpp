// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace towpath::transport::simulated {

// What one rank has under way to another. Fences divide it into epochs, which become visible one
// behind the other; within an epoch whatever arrives is visible at once.
//
//   delivery.epoch = epoch_;  // counts the rank's fences
//   order.add(delivery);      // sets delivery.before
//   ...
//   order.arrived(delivery, [](Delivery& visible) {...});
//
// The two calls share nothing but the delivery: each end may be in a partition of its own.
template <typename Delivery>
class FenceOrder {
 public:
  // Its epoch is that of the one before, or later.
  void add(Delivery& delivery) {
    if (delivery.epoch != epoch_) {
      epoch_ = delivery.epoch;
      before_ = added_;
    }
    delivery.before = before_;
    ++added_;
  }

  // Calls `deliver` for it and for those that it held back, which may add more; or not yet, when
  // something from before its fence is still under way.
  template <typename Deliver>
  void arrived(Delivery& delivery, const Deliver& deliver) {
    if (delivery.before > visible_) {
      held_.push_back(&delivery);
      return;
    }
    ++visible_;
    deliver(delivery);
    while (!held_.empty()) {
      const auto next = std::ranges::find_if(
          held_, [&](const Delivery* held) { return held->before <= visible_; });
      if (next == held_.end()) return;
      Delivery& ready = **next;
      held_.erase(next);
      ++visible_;
      deliver(ready);
    }
  }

 private:
  // The sender's: those that were added, and how many of them before the last fence.
  std::uint64_t epoch_ = 0;
  std::uint64_t before_ = 0;
  std::uint64_t added_ = 0;
  // The receiver's.
  std::uint64_t visible_ = 0;
  std::vector<Delivery*> held_;  // arrived before their turn
};

}  // namespace towpath::transport::simulated
