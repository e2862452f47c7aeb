// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sched.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <vector>

// What the programs that measure other libraries share. Each sends a message to and fro between two
// processes and prints one line of JSON.

namespace peer {

using Clock = std::chrono::steady_clock;

inline constexpr int kWarmup = 1000;

class Stopwatch {
 public:
  // One way in nanoseconds since the last call, half of a round trip.
  double lap_ns() {
    const Clock::time_point now = Clock::now();
    const double passed_ns = std::chrono::duration<double, std::nano>(now - last_).count();
    last_ = now;
    return passed_ns / 2;
  }

 private:
  Clock::time_point last_ = Clock::now();
};

// To one of the two cores that the command line may end with, by the process's number.
inline void pin(char** cores, int process) {
  if (cores[0] == nullptr) return;
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(std::atoi(cores[process]), &set);
  sched_setaffinity(0, sizeof(set), &set);
}

inline void print_result(std::vector<double> one_way_ns, double messages_per_s) {
  std::sort(one_way_ns.begin(), one_way_ns.end());
  const auto percentile = [&](std::size_t percent) {
    return one_way_ns[std::min(one_way_ns.size() - 1, one_way_ns.size() * percent / 100)];
  };
  std::printf("{\"median_ns\": %.1f, \"p99_ns\": %.1f, \"messages_per_s\": %.0f}\n", percentile(50),
              percentile(99), messages_per_s);
}

// The median rate of blocks, each of which began at a stamp and ended at the next.
inline double median_rate(const std::vector<Clock::time_point>& stamps, int block_messages) {
  std::vector<double> rates;
  for (std::size_t i = 1; i < stamps.size(); ++i) {
    const std::chrono::duration<double> passed = stamps[i] - stamps[i - 1];
    rates.push_back(block_messages / passed.count());
  }
  std::sort(rates.begin(), rates.end());
  return rates[rates.size() / 2];
}

}  // namespace peer
