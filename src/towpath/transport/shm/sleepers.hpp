// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "towpath/os/sleep.hpp"
#include "towpath/os/spin_wait.hpp"

namespace towpath::transport::shm {

// The bells of all ranks, as one of them uses them.
class Sleepers {
 public:
  explicit Sleepers(int rank) : rank_(index(rank)) {}
  // By rank.
  void add(os::Bell& bell) { bells_.push_back(&bell); }

  // That rank may wait for what this one stored just now.
  void wake(int rank) {
    order_.order_before_bell();
    ring(*bells_[index(rank)]);
  }
  void wake_all() {
    order_.order_before_bell();
    for (os::Bell* bell : bells_) ring(*bell);
  }

  // This rank sleeps until one has news for it, or for a while. Returns whether there were some
  // already: it looks once more after it has said that it sleeps, because of what was stored before
  // nobody rings.
  bool sleep_unless(const std::function<bool()>& has_news, os::SpinWait& wait) {
    os::Bell& bell = *bells_[rank_];
    bell.announce();
    const bool is_heard = order_.wait_for_stores_of_all();
    const bool found = has_news();
    if (!found) bell.sleep(is_heard ? wait.nap() : os::SpinWait::kNapLeast);
    bell.withdraw();
    return found;
  }

 private:
  static std::size_t index(int rank) { return static_cast<std::size_t>(rank); }
  static void ring(os::Bell& bell) {
    if (bell.is_awaited()) bell.ring();
  }

  std::size_t rank_;
  std::vector<os::Bell*> bells_;  // by rank
  os::StoreOrder order_;
};

}  // namespace towpath::transport::shm
