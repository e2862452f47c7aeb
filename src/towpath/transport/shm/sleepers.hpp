// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <vector>

#include "towpath/base/index.hpp"
#include "towpath/os/sleep.hpp"
#include "towpath/os/spin_wait.hpp"

namespace towpath::transport::shm {

// The wake flags of all ranks, as used by one of them.
class Sleepers {
 public:
  explicit Sleepers(int rank) : rank_(rank) {}
  // By rank.
  void add(os::WakeFlag& flag) { flags_.push_back(&flag); }

  // That rank may wait for a store that this one just made.
  void wake(int rank) {
    order_.order_before_look();
    wake(*flags_[index(rank)]);
  }
  void wake_all() {
    order_.order_before_look();
    for (os::WakeFlag* flag : flags_) wake(*flag);
  }

  // Sleeps until another rank wakes this one, or for a while. Returns true if has_arrived() already
  // held: it is checked once more after the announcement, because earlier stores do not wake this
  // rank.
  bool sleep_unless(const std::function<bool()>& has_arrived, os::SpinWait& wait) {
    os::WakeFlag& flag = *flags_[index(rank_)];
    flag.announce();
    const bool is_ordered = order_.wait_for_stores_of_all();
    const bool found = has_arrived();
    if (!found) flag.sleep(is_ordered ? wait.nap() : os::SpinWait::kNapLeast);
    flag.withdraw();
    return found;
  }

 private:
  static void wake(os::WakeFlag& flag) {
    if (flag.is_awaited()) flag.wake();
  }

  int rank_;
  std::vector<os::WakeFlag*> flags_;  // by rank
  os::StoreOrder order_;
};

}  // namespace towpath::transport::shm
