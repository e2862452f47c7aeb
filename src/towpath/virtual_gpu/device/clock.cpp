// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/virtual_gpu/device/clock.hpp"

#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <utility>

namespace towpath::virtual_gpu {
namespace {

// A read of the clock takes 20 to 30 ns on x86-64 with the time stamp counter (measured in a loop
// of clock_gettime). A program that waits by reading it continues.
constexpr std::int64_t kReadNs = 25;

std::atomic<std::int64_t> simulated_ns = 0;
thread_local bool has_real_time = false;
thread_local bool has_polled = false;

}  // namespace

bool is_time_simulated() {
  static const bool is_named = std::getenv("TOWPATH_TIMES") != nullptr;
  return is_named;
}

std::int64_t now_ns() {
  if (is_time_simulated()) return simulated_ns;
  timespec now{};
  syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &now);
  return now.tv_sec * std::int64_t{1'000'000'000} + now.tv_nsec;
}

std::int64_t read_clock_ns() {
  if (!is_time_simulated() || std::exchange(has_polled, false)) return now_ns();
  return simulated_ns.fetch_add(kReadNs) + kReadNs;
}

void reach(std::int64_t time_ns) {
  std::int64_t now = simulated_ns;
  while (now < time_ns && !simulated_ns.compare_exchange_weak(now, time_ns)) {
  }
}

void note_poll() { has_polled = true; }

bool read_real_time(bool is_real) { return std::exchange(has_real_time, is_real); }
bool reads_real_time() { return has_real_time || !is_time_simulated(); }

}  // namespace towpath::virtual_gpu
