// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/collective/execute/repeat.hpp"

#include <algorithm>

namespace towpath::collective {

using namespace literals;

namespace {
constexpr Time kLookInterval = 1_ms;
}  // namespace

void Samples::halve() {
  for (std::size_t i = 0; 2 * i < values_.size(); ++i) values_[i] = values_[2 * i];
  values_.resize((values_.size() + 1) / 2);
  stride_ *= 2;
}

Repetition repeat(Executor& executor, transport::Transport& transport, const Buffers& buffers,
                  int times, Time timeout) {
  Samples samples;
  const Time first = transport.now();
  Time begin = first;
  Time next_look = first + kLookInterval;
  for (int i = 0; i < times; ++i) {
    executor.start(buffers);
    executor.finish(timeout);
    const Time end = transport.now();
    samples.add(end - begin);
    begin = end;
    if (end < next_look) continue;
    transport.progress();
    next_look = end + kLookInterval;
  }
  return {Time::from_ps((begin - first).ps() / std::max(times, 1)), samples.values()};
}

}  // namespace towpath::collective
