// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <iostream>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "umd/device/cluster.hpp"

// The interface of a benchmark with simulated time: each measurement is ten calls, and prints a
// line "result: TITLE | NAME | BATCH | NANOSECONDS of a call".

namespace ankerl::nanobench {

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
    tt::umd::let_time_pass(1e7);
    const double begin_ns = tt::umd::simulated_time_ns();
    for (int i = 0; i < kCalls; ++i) call();
    const double call_ns = (tt::umd::simulated_time_ns() - begin_ns) / kCalls;
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
