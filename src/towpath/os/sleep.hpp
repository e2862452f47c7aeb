// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>

#include "towpath/base/units.hpp"

// Lets a process sleep until another process with the same mapping wakes it. Costs the waker almost
// nothing if no process sleeps.
//
//   sleeper                                  waker
//   flag.announce()                          stores the data
//   wait_for_stores_of_all()                 order_before_look()
//   rechecks; no data: flag.sleep()          flag.wake(), if flag.is_awaited()
//
// One of the two must observe the other's store. A processor may execute a load before an earlier
// store, so both sides need a fence. The sleeper has time, so it makes the kernel fence all
// processors (membarrier). The waker then only needs a compiler barrier.

namespace towpath::os {

class WakeFlag {
 public:
  // True if a process sleeps or is about to.
  bool is_awaited() const { return word_.load(std::memory_order_relaxed) == kAsleep; }
  // Called by the sleeper before it sleeps.
  void announce() { word_.store(kAsleep, std::memory_order_seq_cst); }
  void withdraw() { word_.store(kAwake, std::memory_order_relaxed); }
  // After announce(): returns on a wake(), or earlier. Returns false on timeout.
  bool sleep(Time most);
  // Wakes the sleeper, if any.
  void wake();

 private:
  static constexpr std::uint32_t kAwake = 0;
  static constexpr std::uint32_t kAsleep = 1;
  std::atomic<std::uint32_t> word_{kAwake};
};

// The memory order described above, for this process. Created once and kept.
class StoreOrder {
 public:
  StoreOrder();
  // Called by the sleeper after announce(). Returns false without kernel support. A wake() may then
  // be missed, so the sleeper uses short naps.
  bool wait_for_stores_of_all() const;
  // Called by the waker between its store and its load of a flag.
  void order_before_look() const {
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
