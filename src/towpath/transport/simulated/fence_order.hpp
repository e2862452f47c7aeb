// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

namespace towpath::transport::simulated {

// What one rank has under way to another. Fences divide it into epochs, which become visible one
// behind the other; within an epoch whatever arrives is visible at once.
//
//   delivery.epoch = epoch_;  // counts the rank's fences
//   order.add(delivery);
//   ...
//   order.arrived(delivery, [](Delivery& visible) {...});
template <typename Delivery>
class FenceOrder {
 public:
  // Its epoch is that of the one before, or later.
  void add(const Delivery& delivery) {
    Epoch& youngest = later_.empty() ? oldest_ : later_.back();
    if (youngest.number == delivery.epoch) {
      ++youngest.under_way;
    } else if (youngest.under_way > 0) {
      later_.push_back({delivery.epoch, 1});
    } else {
      oldest_ = {delivery.epoch, 1};  // one with nothing under way is the oldest one, and over
    }
  }

  // Calls `deliver` for it and for those that it held back, which may add more; or not yet, when
  // something from before its fence is still under way.
  template <typename Deliver>
  void arrived(Delivery& delivery, const Deliver& deliver) {
    if (delivery.epoch != oldest_.number) {
      held_.push_back(&delivery);
      return;
    }
    --oldest_.under_way;
    deliver(delivery);
    while (oldest_.under_way == 0 && !later_.empty()) {
      oldest_ = later_.front();
      later_.erase(later_.begin());
      std::vector<Delivery*> ready;
      std::erase_if(held_, [&](Delivery* held) {
        const bool is_next = held->epoch == oldest_.number;
        if (is_next) ready.push_back(held);
        return is_next;
      });
      for (Delivery* next : ready) {
        --oldest_.under_way;
        deliver(*next);
      }
    }
  }

 private:
  struct Epoch {
    std::uint64_t number = 0;
    std::uint64_t under_way = 0;
  };
  Epoch oldest_;
  std::vector<Epoch> later_;     // oldest first
  std::vector<Delivery*> held_;  // arrived before their turn
};

}  // namespace towpath::transport::simulated
