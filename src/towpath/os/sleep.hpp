// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>

#include "towpath/base/units.hpp"

// How a process sleeps until another one that maps the same memory wakes it, without a price for
// those who find nobody asleep.
//
//   the sleeper                              who has news for it
//   bell.store(kAsleep)                      stores the news
//   wait_for_stores_of_all()                 order_before_bell()
//   looks for news; none: sleep_on(bell)     rings the bell, if it reads kAsleep
//
// One of the two must see the other's store. A processor may carry out a load before an earlier
// store, so that this takes a fence on both sides. The sleeper makes the kernel run it on all
// processors (membarrier), because it has time; the other side then only keeps its compiler from
// moving the load.

namespace towpath::os {

class Bell {
 public:
  // Whether somebody sleeps, or is about to.
  bool is_awaited() const { return word_.load(std::memory_order_relaxed) == kAsleep; }
  // By the sleeper: says that it is about to sleep.
  void announce() { word_.store(kAsleep, std::memory_order_seq_cst); }
  void withdraw() { word_.store(kAwake, std::memory_order_relaxed); }
  // After announce(): returns when somebody rings, or sooner. False when the time was up.
  bool sleep(Time most);
  // Wakes the sleeper, if there is one.
  void ring();

 private:
  static constexpr std::uint32_t kAwake = 0;
  static constexpr std::uint32_t kAsleep = 1;
  std::atomic<std::uint32_t> word_{kAwake};
};

// This process's side of the order above; made once, and kept.
class StoreOrder {
 public:
  StoreOrder();
  // By the sleeper, after announce(). False where the kernel does not offer it: then the sleeper
  // may miss what is rung, and sleeps in short naps only.
  bool wait_for_stores_of_all() const;
  // By who has news: between its store and its look at a bell.
  void order_before_bell() const {
    if (is_registered_) {
      std::atomic_signal_fence(std::memory_order_seq_cst);
    } else {
      std::atomic_thread_fence(std::memory_order_seq_cst);
    }
  }

 private:
  bool is_registered_;
};

}  // namespace towpath::os
