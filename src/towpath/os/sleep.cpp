// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/os/sleep.hpp"

#include <linux/futex.h>
#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>

namespace towpath::os {

namespace {

long futex(std::atomic<std::uint32_t>& word, int operation, std::uint32_t value,
           const timespec* timeout) {
  static_assert(sizeof(word) == sizeof(std::uint32_t));
  return ::syscall(SYS_futex, &word, operation, value, timeout, nullptr, 0);
}

bool membarrier(int command) { return ::syscall(SYS_membarrier, command, 0, 0) == 0; }

}  // namespace

bool WakeFlag::sleep(Time most) {
  constexpr std::int64_t kPicosecondsPerNanosecond = 1000;
  constexpr std::int64_t kNanosecondsPerSecond = 1'000'000'000;
  const std::int64_t ns = most.ps() / kPicosecondsPerNanosecond;
  const timespec timeout{ns / kNanosecondsPerSecond, ns % kNanosecondsPerSecond};
  // Spurious wake-ups, an earlier wake(), and signals also return true. The caller
  // rechecks.
  return futex(word_, FUTEX_WAIT, kAsleep, &timeout) == 0 || errno != ETIMEDOUT;
}

void WakeFlag::wake() {
  if (word_.exchange(kAwake, std::memory_order_relaxed) == kAsleep) {
    futex(word_, FUTEX_WAKE, 1, nullptr);
  }
}

StoreOrder::StoreOrder() : is_registered_(membarrier(MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED)) {}

bool StoreOrder::wait_for_stores_of_all() const {
  return membarrier(MEMBARRIER_CMD_GLOBAL_EXPEDITED);
}

}  // namespace towpath::os
