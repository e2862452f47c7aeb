// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/simulate/step_progress.hpp"

#include <algorithm>

#include "towpath/base/index.hpp"

namespace towpath::simulate {
namespace {

constexpr std::size_t kTrimMin = 64;    // fewer records of steps are not worth a look
constexpr std::size_t kReadersMax = 8;  // more are not worth one either

}  // namespace

void StepProgress::add_reader(std::uint32_t block) {
  readers_.push_back({block, 0});
  is_kept_ |= readers_.size() > kReadersMax;
}

void StepProgress::clear() {
  last_.fill({});
  before_.clear();
  for (Reader& reader : readers_) reader.place = 0;
}

void StepProgress::add(std::uint64_t step, Time complete) {
  if (before_.size() >= trim_at_) trim();
  Step& last = last_[added_++ % last_.size()];
  if (last.number != 0) before_.push_back(last);
  last = {step, complete};
}

// What a reader asks for is not far behind what it asked for before, if it does not go back.
const Time* StepProgress::find(std::uint64_t step, std::uint32_t reader) {
  const auto last = std::ranges::find(last_, step, &Step::number);
  const bool is_among_last = last != last_.end();
  std::size_t place = before_.size();
  if (is_kept_) {
    const auto at = std::ranges::lower_bound(before_, step, {}, &Step::number);
    if (!is_among_last) place = index(at - before_.begin());
  } else {
    const auto known = std::ranges::find(readers_, reader, &Reader::block);
    if (!is_among_last) place = known->place;
    while (place < before_.size() && before_[place].number < step) ++place;
    known->place = place;
  }
  if (is_among_last) return &last->complete;
  return place == before_.size() ? nullptr : &before_[place].complete;
}

void StepProgress::describe(sim::Snapshot& snapshot, std::uint64_t step, std::uint64_t zero) const {
  const auto add_later = [&](const Step& each) {
    if (each.number <= step) return;
    snapshot.add(each.number - zero);
    snapshot.add(each.complete);
  };
  std::ranges::for_each(before_, add_later);
  for (std::size_t i = 0; i < last_.size(); ++i) add_later(last_[(added_ + i) % last_.size()]);
}

void StepProgress::shift(std::uint64_t steps, Time by) {
  const auto move_on = [&](Step& each) {
    if (each.number == 0) return;  // none yet
    each.number += steps;
    each.complete += by;
  };
  std::ranges::for_each(before_, move_on);
  std::ranges::for_each(last_, move_on);
}

// Forgets what no reader asks for any more.
void StepProgress::trim() {
  if (is_kept_) return;
  std::size_t gone = before_.size();
  for (const Reader& reader : readers_) gone = std::min(gone, reader.place);
  for (Reader& reader : readers_) reader.place -= gone;
  before_.erase(before_.begin(), before_.begin() + static_cast<std::ptrdiff_t>(gone));
  trim_at_ = std::max<std::size_t>(kTrimMin, 2 * before_.size());
}

}  // namespace towpath::simulate
