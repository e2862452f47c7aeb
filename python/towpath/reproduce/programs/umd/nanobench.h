// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <iostream>
#include <ostream>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "umd/device/cluster.hpp"

// The interface of a benchmark with simulated time: each measurement is ten calls, and prints a
// line "result: TITLE | NAME | BATCH | NANOSECONDS of a call".

namespace tt::umd {

// A cluster whose clock a benchmark reads, which has no handle of it.
class TimedCluster : public Cluster {
 public:
  TimedCluster() : TimedCluster(ClusterOptions{}) {}
  explicit TimedCluster(const ClusterOptions& options) : Cluster(options) { open().insert(this); }
  ~TimedCluster() { open().erase(this); }
  TimedCluster(const TimedCluster&) = delete;
  TimedCluster& operator=(const TimedCluster&) = delete;

  static std::set<TimedCluster*>& open() {
    static std::set<TimedCluster*> clusters;
    return clusters;
  }
};

}  // namespace tt::umd

// The benchmarks that include this name the type.
#define Cluster TimedCluster

namespace ankerl::nanobench {

inline double time_ns() {
  double sum_ns = 0;
  for (const tt::umd::TimedCluster* each : tt::umd::TimedCluster::open()) {
    sum_ns += each->simulated_time_ns();
  }
  return sum_ns;
}

struct Result {
  std::string name;
  double batch = 1;
  double call_ns = 0;
};

class Bench {
 public:
  Bench& title(std::string text) {
    title_ = std::move(text);
    return *this;
  }
  const std::string& title() const { return title_; }
  Bench& unit(const std::string&) { return *this; }
  Bench& name(std::string text) {
    name_ = std::move(text);
    return *this;
  }
  template <typename T>
  Bench& batch(T size) {
    batch_ = static_cast<double>(size);
    return *this;
  }
  Bench& relative(bool) { return *this; }
  Bench& epochs(std::size_t) { return *this; }
  Bench& epochIterations(std::uint64_t) { return *this; }
  Bench& minEpochIterations(std::uint64_t) { return *this; }
  template <typename Time>
  Bench& maxEpochTime(Time) {
    return *this;
  }
  template <typename Call>
  Bench& run(Call call) {
    constexpr int kCalls = 10;
    // A benchmark prepares its next measurement for longer than posted writes take to leave.
    for (auto* each : tt::umd::TimedCluster::open()) each->let_time_pass(1e7);
    const double begin_ns = time_ns();
    for (int i = 0; i < kCalls; ++i) call();
    const double call_ns = (time_ns() - begin_ns) / kCalls;
    results_.push_back({name_, batch_, call_ns});
    std::cout << "result: " << title_ << " | " << name_ << " | " << batch_ << " | " << call_ns
              << "\n";
    return *this;
  }
  const std::vector<Result>& results() const { return results_; }

 private:
  std::string title_, name_;
  double batch_ = 1;
  std::vector<Result> results_;
};

template <typename T>
void doNotOptimizeAway(const T&) {}
namespace templates {
inline const char* json() { return ""; }
inline const char* htmlBoxplot() { return ""; }
}  // namespace templates
inline void render(const char*, const std::vector<Result>&, std::ostream&) {}

}  // namespace ankerl::nanobench
