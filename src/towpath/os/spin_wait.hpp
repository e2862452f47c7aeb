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
// then it yields, because the peer may need this core; after a long time it sleeps, because the
// peer is busy with something else. Repeated failure to spin long enough means that the peer shares
// this core, or takes long: spinning gets shorter, and longer again when it succeeds.
//
// A yield that takes long went to somebody who computes here: a thread of this process, or another
// program. Who yields to such a one gets the processor back when its time slice ends, but who
// sleeps gets it when woken. So the next waits go from spinning to sleep, the more of them the
// oftener that happens; then yielding is tried again. Among ranks that share cores a long yield
// says nothing, because the others are ranks.
class SpinWait {
 public:
  static constexpr Time kNapLeast = 50_us;

  // `is_crowded`: there are more ranks than cores, so that spinning keeps a peer from working.
  explicit SpinWait(bool is_crowded)
      : is_crowded_(is_crowded), spins_most_(is_crowded ? 0 : kSpinsMost) {}

  // Between two looks at the beginning of a wait.
  void relax() const { is_crowded_ ? yield() : pause(); }

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

  // After spin(): gives the processor away for a moment. False where it is time to sleep.
  bool rest(Time now) {
    if (resting_since_ == Time::max()) resting_since_ = now;
    if (now - resting_since_ >= kYieldFor) return false;
    if (!is_crowded_) return yields();
    yield();
    return true;
  }
  // How long to sleep then: what has no way to wake a sleeper is noticed late by a part of the time
  // that it took.
  Time nap() { return std::exchange(nap_, std::min(nap_ + nap_, kNapMost)); }
  void rest_or_nap(Time now) {
    if (!rest(now)) std::this_thread::sleep_for(std::chrono::nanoseconds(kNapLeast.ps() / 1000));
  }

  // Called when something happened, and when a new wait begins.
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
  // Less than a time slice of Linux, and more than peers take to give the core back.
  static constexpr std::chrono::milliseconds kLongYield{1};
  static constexpr int kWithoutYieldLeast = 4;
  // The slice of 3 ms that it takes to try again is then a small part of the time.
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
  int without_yield_ = 0;        // how many waits go without, the next time
  int waits_without_yield_ = 0;  // how many are left
};

}  // namespace towpath::os
