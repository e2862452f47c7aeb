// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "towpath/base/units.hpp"
#include "towpath/collective/execute/executor.hpp"

// Repeated invocations over a live transport, each timed separately.

namespace towpath::collective {

// Evenly spaced samples of a sequence of any length, in bounded memory. At first it takes every
// value. When there is no room left, it drops every second sample and then takes only every second
// value.
class Samples {
 public:
  static constexpr std::size_t kCountMax = 1 << 16;

  void add(Time value) {
    if (seen_++ % stride_ != 0) return;
    if (values_.size() == kCountMax) halve();
    if ((seen_ - 1) % stride_ == 0) values_.push_back(value);
  }
  const std::vector<Time>& values() const { return values_; }

 private:
  void halve();

  std::vector<Time> values_;
  std::uint64_t seen_ = 0;
  std::uint64_t stride_ = 1;
};

struct Repetition {
  Time mean;
  std::vector<Time> samples;  // durations of single invocations, in order
};

// Starts and finishes `times` invocations back to back. About every millisecond it checks that the
// peers are alive, even if no invocation waits for long.
Repetition repeat(Executor& executor, transport::Transport& transport, const Buffers& buffers,
                  int times, Time timeout);

}  // namespace towpath::collective
