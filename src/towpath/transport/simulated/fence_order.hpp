// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace towpath::transport::simulated {

// The deliveries in flight from one rank to another. Fences divide them into epochs, which become
// visible in order. Within an epoch, a delivery is visible when it arrives.
//
//   delivery.epoch = epoch_;  // counts the rank's fences
//   order.add(delivery);      // sets delivery.before
//   ...
//   order.arrived(delivery, [](Delivery& visible) {...});
//
// The two calls share only the delivery: the ends may be in different partitions.
template <typename Delivery>
class FenceOrder {
 public:
  // Its epoch is that of the previous one, or later.
  void add(Delivery& delivery) {
    if (delivery.epoch != epoch_) {
      epoch_ = delivery.epoch;
      before_ = added_;
    }
    delivery.before = before_;
    ++added_;
  }

  // Calls `deliver` for it and for the deliveries that it held back, which may add more. If a
  // delivery from before its fence is still in flight, it is itself held back.
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
  // The sender's deliveries, and the number of them before the last fence.
  std::uint64_t epoch_ = 0;
  std::uint64_t before_ = 0;
  std::uint64_t added_ = 0;
  // The receiver's.
  std::uint64_t visible_ = 0;
  std::vector<Delivery*> held_;  // arrived before their turn
};

}  // namespace towpath::transport::simulated
