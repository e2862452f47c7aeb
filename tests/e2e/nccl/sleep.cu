// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
// Prints the microseconds that a program sees while it sleeps for 2 ms and 3 ms.

#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <thread>

#include "nccl.h"

int main() {
  int version = 0;
  ncclGetVersion(&version);  // without a call the program is not linked to NCCL
  const auto begin = std::chrono::steady_clock::now();
  usleep(2000);
  std::this_thread::sleep_for(std::chrono::milliseconds(3));
  const std::chrono::duration<double, std::micro> time = std::chrono::steady_clock::now() - begin;
  std::printf("%.3f\n", time.count());
  return 0;
}
