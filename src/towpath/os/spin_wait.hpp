// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sched.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "towpath/base/units.hpp"

namespace towpath::os {

using literals::operator""_ms;
using literals::operator""_us;

inline void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

inline void yield() { ::sched_yield(); }

// Wait policy of a rank. It spins first, because a peer on another core answers within a
// microsecond. Then it yields, because the peer may need this core. After a long time it sleeps,
// because the peer is busy. Repeated failure to spin long enough means that the peer shares this
// core or is slow, so spins get shorter. They get longer again on success.
//
// A long yield means that the core went to a computing thread of this process or to another
// program. A yielding thread gets the core back at the end of a time slice, a sleeping thread on
// its wake-up. The next waits therefore sleep directly after spinning, for longer after each long
// yield, then yielding is tried again. Among ranks that share cores a long yield has no meaning,
// because the other threads are ranks.
class SpinWait {
 public:
  static constexpr Time kNapLeast = 50_us;

  // `is_crowded`: more ranks than cores, so spinning takes time from a peer.
  explicit SpinWait(bool is_crowded)
      : is_crowded_(is_crowded), spins_most_(is_crowded ? 0 : kSpinsMost) {}

  // Between two polls at the start of a wait.
  void relax() const { is_crowded_ ? yield() : pause(); }

  // False if spinning is no longer worthwhile.
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

  // After spin(): yields the core briefly. Returns false if it is time to sleep.
  bool rest(Time now) {
    if (resting_since_ == Time::max()) resting_since_ = now;
    if (now - resting_since_ >= kYieldFor) return false;
    if (!is_crowded_) return yields();
    yield();
    return true;
  }
  // Duration of the next nap. An event without a wake-up is detected late by a fraction of its
  // duration.
  Time nap() { return std::exchange(nap_, std::min(nap_ + nap_, kNapMost)); }
  void rest_or_nap(Time now) {
    if (!rest(now)) std::this_thread::sleep_for(std::chrono::nanoseconds(kNapLeast.ps() / 1000));
  }

  // Called on success and at the start of a new wait.
  void renew() {
    if (spins_ > 0 && spins_ <= spins_max_) spins_max_ = std::min(spins_max_ * 2, spins_most_);
    spins_ = 0;
    resting_since_ = Time::max();
    nap_ = kNapLeast;
    if (waits_without_yield_ > 0) {
      --waits_without_yield_;
    } else if (has_yielded_) {
      without_yield_ /= 2;
    }
    has_yielded_ = false;
  }

 private:
  static constexpr Time kYieldFor = 20_ms;
  // Less than a time slice of Linux, and more than a peer takes to return the core.
  static constexpr std::chrono::milliseconds kLongYield{1};
  static constexpr int kWithoutYieldLeast = 4;
  // Limits the 3 ms cost of a retry to a small part of the time.
  static constexpr int kWithoutYieldMost = 256;
  static constexpr Time kNapMost = 1_ms;

  bool yields() {
    if (waits_without_yield_ > 0) return false;
    const auto begin = std::chrono::steady_clock::now();
    yield();
    has_yielded_ = true;
    if (std::chrono::steady_clock::now() - begin < kLongYield) return true;
    without_yield_ = std::clamp(2 * without_yield_, kWithoutYieldLeast, kWithoutYieldMost);
    waits_without_yield_ = without_yield_;
    return false;
  }

  static constexpr int kSpinsLeast = 20;
  static constexpr int kSpinsMost = 400;

  bool is_crowded_;
  int spins_most_;
  int spins_max_ = spins_most_;
  int spins_ = 0;
  Time resting_since_ = Time::max();
  Time nap_ = kNapLeast;
  bool has_yielded_ = false;     // in this wait
  int without_yield_ = 0;        // length of the next period without yields
  int waits_without_yield_ = 0;  // remaining waits of the current period
};

}  // namespace towpath::os
