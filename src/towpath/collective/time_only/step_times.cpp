// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/collective/time_only/step_times.hpp"

#include <algorithm>

namespace towpath::collective::time_only {
namespace {

constexpr std::size_t kTrimMin = 64;    // fewer steps are not worth a look
constexpr std::size_t kReadersMax = 8;  // more are not worth one either

}  // namespace

void StepTimes::add_reader(std::uint32_t block) {
  readers_.push_back({block, 0});
  is_kept_ |= readers_.size() > kReadersMax;
}

void StepTimes::clear() {
  steps_.clear();
  for (Reader& reader : readers_) reader.asked = 0;
}

void StepTimes::add(std::uint64_t step, Time finished) {
  if (steps_.size() >= trim_at_) trim();
  steps_.push_back({step, finished});
}

const Time* StepTimes::find(std::uint64_t step, std::uint32_t reader) {
  if (!is_kept_) std::ranges::find(readers_, reader, &Reader::block)->asked = step;
  if (steps_.empty() || steps_.back().number < step) return nullptr;
  if (steps_.back().number == step)
    return &steps_.back().finished;  // most readers are right behind
  return &std::ranges::lower_bound(steps_, step, {}, &Step::number)->finished;
}

void StepTimes::describe(sim::Snapshot& snapshot, std::uint64_t step, std::uint64_t zero) const {
  for (const Step& each : steps_) {
    if (each.number <= step) continue;
    snapshot.add(each.number - zero);
    snapshot.add(each.finished);
  }
}

void StepTimes::shift(std::uint64_t steps, Time by) {
  for (Step& each : steps_) {
    each.number += steps;
    each.finished += by;
  }
  for (Reader& reader : readers_) reader.asked += steps;
}

// Drops the steps that no reader needs any more.
void StepTimes::trim() {
  if (is_kept_) return;
  const std::uint64_t asked = std::ranges::min(readers_, {}, &Reader::asked).asked;
  std::erase_if(steps_, [&](const Step& step) { return step.number < asked; });
  trim_at_ = std::max<std::size_t>(kTrimMin, 2 * steps_.size());
}

}  // namespace towpath::collective::time_only
