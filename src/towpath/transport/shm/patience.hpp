// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sched.h>

#include <chrono>
#include <thread>

#include "towpath/units/units.hpp"

namespace towpath::transport::shm {

// How a rank waits: first it spins, because a peer on another core answers within a microsecond;
// then it yields, because the peer may need this core; after a long time it sleeps in short naps,
// because the peer is busy with something else.
class Patience {
 public:
  // `is_crowded`: there are more ranks than cores, so that spinning keeps a peer from working.
  explicit Patience(bool is_crowded) : spins_max_(is_crowded ? 20 : 400) {}

  // Whether it was still worth spinning.
  bool spin() {
    if (spins_ >= spins_max_) return false;
    ++spins_;
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
    return true;
  }

  void rest(Time now) {
    if (resting_since_ == Time::max()) resting_since_ = now;
    if (now - resting_since_ < kYieldFor) {
      ::sched_yield();
    } else {
      std::this_thread::sleep_for(kNap);
    }
  }

  void renew() {
    spins_ = 0;
    resting_since_ = Time::max();
  }

 private:
  static constexpr Time kYieldFor = Time::from_ps(20'000'000'000);  // 20 ms
  static constexpr std::chrono::microseconds kNap{50};

  int spins_max_;
  int spins_ = 0;
  Time resting_since_ = Time::max();
};

}  // namespace towpath::transport::shm
