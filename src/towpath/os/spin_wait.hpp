// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sched.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "towpath/base/units.hpp"

namespace towpath::os {

using literals::operator""_ms;

// Tells the processor that this thread only looks at a word again and again.
inline void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

// Gives the processor to another thread that is ready.
inline void yield() { ::sched_yield(); }

// How a rank waits: first it spins, because a peer on another core answers within a microsecond;
// then it yields, because the peer may need this core; after a long time it sleeps in short naps,
// because the peer is busy with something else. Repeated failure to spin long enough means that
// the peer shares this core, or takes long: spinning gets shorter, and longer again when it
// succeeds.
class SpinWait {
 public:
  // `is_crowded`: there are more ranks than cores, so that spinning keeps a peer from working.
  explicit SpinWait(bool is_crowded) : spins_most_(is_crowded ? 0 : kSpinsMost) {}

  // False once spinning is no longer worth it.
  bool spin() {
    if (spins_ > spins_max_) return false;
    if (++spins_ > spins_max_) {
      spins_max_ = std::max(spins_max_ / 2, std::min(kSpinsLeast, spins_most_));
      spins_ = spins_max_ + 1;
      return false;
    }
    pause();
    return true;
  }

  void rest(Time now) {
    if (resting_since_ == Time::max()) resting_since_ = now;
    if (now - resting_since_ < kYieldFor) {
      yield();
    } else {
      std::this_thread::sleep_for(kNap);
    }
  }

  // Called when something happened, and when a new wait begins.
  void renew() {
    if (spins_ > 0 && spins_ <= spins_max_) spins_max_ = std::min(spins_max_ * 2, spins_most_);
    spins_ = 0;
    resting_since_ = Time::max();
  }

 private:
  static constexpr Time kYieldFor = 20_ms;
  static constexpr std::chrono::microseconds kNap{50};

  static constexpr int kSpinsLeast = 20;
  static constexpr int kSpinsMost = 400;

  int spins_most_;
  int spins_max_ = spins_most_;
  int spins_ = 0;
  Time resting_since_ = Time::max();
};

}  // namespace towpath::os
