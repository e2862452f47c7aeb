// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/live/path_tuner.hpp"

#include <algorithm>
#include <bit>
#include <utility>

#include "towpath/base/index.hpp"

namespace towpath::live {

namespace {

// Every eighth call, so that clocks are rarely read.
constexpr std::uint32_t kCallsPerCheck = 8;
// If a virtual machine moves its processors, a path may take nine times as long: a staged broadcast
// of 1 MiB among 2 ranks takes 30 us with the cores near, 266 with them far.
constexpr double kMuchLonger = 2;
constexpr int kLongCallsMost = 3;

}  // namespace

void PathTuner::expect(CopyPath path) {
  if (is_expected_ && path == order_[0]) return;
  is_expected_ = true;
  order_ = {path, CopyPath::read, path == CopyPath::staged ? CopyPath::streamed : CopyPath::staged};
  entries_ = {};
}

PathTuner::Choice PathTuner::choose(Kind kind, std::uint64_t size_bytes, bool may_read) {
  Entry& entry = entry_of(kind, size_bytes);
  const Trials trials = trials_of(size_bytes);
  if (entry.calls >= period_of(entry, trials).rounds * trials.all()) restart(entry);
  const std::uint32_t call = entry.calls++;
  const std::optional<CopyPath> tried = tried_in(period_of(entry, trials), call / trials.all());
  entry.is_trial = tried && (may_read || *tried != CopyPath::read);
  if (!entry.is_trial) return {best(entry, may_read), call % kCallsPerCheck == 0};
  const std::uint32_t trial = call % trials.all();
  if (trial < trials.untimed) return {*tried};
  return {*tried, true, (trial - trials.untimed + 1) % trials.half() == 0};
}

void PathTuner::note(Kind kind, std::uint64_t size_bytes, CopyPath path, Time duration) {
  Entry& entry = entry_of(kind, size_bytes);
  const Trials trials = trials_of(size_bytes);
  double& least = entry.least[static_cast<std::size_t>(path)];
  const double per_byte = duration.seconds() / static_cast<double>(size_bytes);
  if (entry.is_trial) {
    note_trial(entry, trials, least, per_byte);
  } else {
    check(entry, trials, least, per_byte);
  }
}

PathTuner::Entry& PathTuner::entry_of(Kind kind, std::uint64_t size_bytes) {
  return entries_[static_cast<std::size_t>(kind)][index(std::bit_width(size_bytes))];
}

// The first calls of a trial find the stages in the cache or memory in which another path left
// them, until all stages have been used once. The number is the same for all sizes that share an
// entry.
PathTuner::Trials PathTuner::trials_of(std::uint64_t size_bytes) const {
  const std::uint64_t calls = stage_bytes_ / std::max<std::uint64_t>(std::bit_floor(size_bytes), 1);
  return {static_cast<std::uint32_t>(std::clamp<std::uint64_t>(calls, 1, 512)),
          static_cast<std::uint32_t>(std::clamp<std::uint64_t>(4 * calls, 2, 8))};
}

// The first round warms up pages and the lines that a probe left in several caches. Later trials
// are frequent enough to follow a virtual machine whose processors are moved, and so rare that two
// paths of six times the duration cost a twenty-fifth. A call that uses all stages at once uses
// memory on any path, and needs no expectation.
const PathTuner::Period& PathTuner::period_of(const Entry& entry, const Trials& trials) const {
  static constexpr Period kFirst{8, {0, 1, 2}};
  static constexpr Period kExpected{24, {0, 6, 12}};
  static constexpr Period kLater{256, {0, 1, 2}};
  if (!entry.is_first) return kLater;
  return is_expected_ && trials.untimed > 1 ? kExpected : kFirst;
}

// Interruptions only make calls longer, so only the faster half of the trials counts. The sum of
// that half counts, because calls overlap: if ranks share cores, a rank that got the core late
// finds all its data ready.
void PathTuner::note_trial(Entry& entry, const Trials& trials, double& least, double per_byte) {
  entry.half += per_byte;
  if (++entry.noted % trials.half() != 0) return;
  least = std::min(least, std::exchange(entry.half, 0.0));
}

// One long call is an interruption. Several in succession are a change, and restart the trials.
void PathTuner::check(Entry& entry, const Trials& trials, double least, double per_byte) {
  const bool is_long = per_byte * trials.half() > least * kMuchLonger;
  entry.long_calls = is_long ? entry.long_calls + 1 : 0;
  if (entry.long_calls == kLongCallsMost) restart(entry);
}

std::optional<CopyPath> PathTuner::tried_in(const Period& period, std::uint32_t round) const {
  const auto found = std::find(period.trials.begin(), period.trials.end(), round);
  if (found == period.trials.end()) return std::nullopt;
  return order_[index(found - period.trials.begin())];
}

CopyPath PathTuner::best(const Entry& entry, bool may_read) const {
  const auto least = [&](CopyPath path) { return entry.least[static_cast<std::size_t>(path)]; };
  CopyPath best = order_[0];
  for (const CopyPath path : order_) {
    if (path == CopyPath::read && !may_read) continue;
    if (least(path) < least(best)) best = path;
  }
  return best;
}

}  // namespace towpath::live
