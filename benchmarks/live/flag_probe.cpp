// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
// Prints how many nanoseconds a flag takes from one core to another: the median of batches of round
// trips between two threads, pinned to the first two cores that the process may use. Processors of
// a virtual machine may be near each other, behind one last cache, or far apart, and are moved:
//
//   flag_probe
#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <thread>
#include <vector>

namespace {

constexpr int kBatches = 15;
constexpr int kTrips = 2000;

struct alignas(128) Flag {
  std::atomic<int> trips = 0;
};

std::vector<int> cores() {
  cpu_set_t allowed;
  sched_getaffinity(0, sizeof(allowed), &allowed);
  std::vector<int> numbers;
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(core, &allowed)) numbers.push_back(core);
  }
  return numbers;
}

void pin(int core) {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(core, &one);
  pthread_setaffinity_np(pthread_self(), sizeof(one), &one);
}

void wait_for(const Flag& flag, int trips) {
  while (flag.trips.load(std::memory_order_acquire) < trips) {
  }
}

}  // namespace

int main() {
  const std::vector<int> numbers = cores();
  if (numbers.size() < 2) {
    std::fputs("flag_probe: there is one core; a flag needs two\n", stderr);
    return 1;
  }
  std::array<Flag, 2> flags;
  std::thread other([&] {
    pin(numbers[1]);
    for (int trip = 1; trip <= kBatches * kTrips; ++trip) {
      wait_for(flags[0], trip);
      flags[1].trips.store(trip, std::memory_order_release);
    }
  });
  pin(numbers[0]);
  std::vector<double> one_way_ns;
  for (int batch = 0; batch < kBatches; ++batch) {
    const auto begin = std::chrono::steady_clock::now();
    for (int trip = batch * kTrips + 1; trip <= (batch + 1) * kTrips; ++trip) {
      flags[0].trips.store(trip, std::memory_order_release);
      wait_for(flags[1], trip);
    }
    const std::chrono::duration<double, std::nano> taken = std::chrono::steady_clock::now() - begin;
    one_way_ns.push_back(taken.count() / kTrips / 2);
  }
  other.join();
  std::sort(one_way_ns.begin(), one_way_ns.end());
  std::printf("%.1f\n", one_way_ns[kBatches / 2]);
}
