// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
// Prints the microseconds that a program sees while it sleeps for 2 ms and 3 ms, the microseconds
// while two threads sleep for 400 ms at the same time, and "right" if errno has the errors of
// nanosleep only.

#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <thread>

#include "nccl.h"

namespace {

using Microseconds = std::chrono::duration<double, std::micro>;

bool reports_errors() {
  errno = ENOENT;
  const timespec shortly{0, 1};
  const bool is_kept = nanosleep(&shortly, nullptr) == 0 && errno == ENOENT;
  const timespec wrong{0, -1};
  const bool is_set = nanosleep(&wrong, nullptr) == -1 && errno == EINVAL;
  errno = ENOENT;
  const bool is_returned =
      clock_nanosleep(CLOCK_MONOTONIC, 0, &wrong, nullptr) == EINVAL && errno == ENOENT;
  return is_kept && is_set && is_returned;
}

}  // namespace

int main() {
  int version = 0;
  ncclGetVersion(&version);  // without a call the program is not linked to NCCL
  const auto begin = std::chrono::steady_clock::now();
  usleep(2000);
  std::this_thread::sleep_for(std::chrono::milliseconds(3));
  const Microseconds time = std::chrono::steady_clock::now() - begin;
  const auto both_begin = std::chrono::steady_clock::now();
  std::thread other([] { usleep(400'000); });
  usleep(400'000);
  other.join();
  const Microseconds both = std::chrono::steady_clock::now() - both_begin;
  std::printf("%.3f %.3f %s\n", time.count(), both.count(), reports_errors() ? "right" : "wrong");
  return 0;
}
