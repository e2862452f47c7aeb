// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <utility>

#include "towpath/base/units.hpp"
#include "towpath/live/call.hpp"

// Which way of showing bytes to other ranks is fastest for calls of a kind and size, by trying. It
// depends on the pages of the program's own arrays, on how far the cores are from each other, and
// on what other ranks do on the same core, so that no measurement beside the calls tells. A few
// calls go each way, and the best one is kept for a while, or until it takes far longer than it
// did. Where one is expected to be best, calls begin with it, and it is used five times as often
// before each other one is tried: who calls a hundred times pays little for ways that are not kept.

namespace towpath::live {

enum class Way : std::uint8_t {
  staged,    // stored to a stage
  streamed,  // stored to a stage past the caches
  read,      // read by the others where it is
};

class FastestWay {
 public:
  struct Choice {
    Way way = Way::staged;
    bool is_timed = false;  // note() is to be told its time
    // The time until all have read what was shown: of others the next call begins before.
    bool is_whole = false;
  };

  // `stage_bytes`: what is staged until memory is used again.
  explicit FastestWay(std::uint64_t stage_bytes) : stage_bytes_(stage_bytes) {}

  // Of what is staged, this is likely best. Where that changes, all is tried anew.
  void expect(Way way) {
    if (is_expected_ && way == order_[0]) return;
    is_expected_ = true;
    order_ = {way, Way::read, way == Way::staged ? Way::streamed : Way::staged};
    entries_ = {};
  }
  // `size_bytes`: what a rank shows. `may_read`: whether the last way is possible.
  Choice choose(Kind kind, std::uint64_t size_bytes, bool may_read) {
    Entry& entry = entry_of(kind, size_bytes);
    const Trials trials = trials_of(size_bytes);
    if (entry.calls >= period_of(entry, trials).rounds * trials.all()) begin_again(entry);
    const std::uint32_t turn = entry.calls++;
    const std::optional<Way> way = tried_in(period_of(entry, trials), turn / trials.all());
    entry.is_trial = way && (may_read || *way != Way::read);
    if (!entry.is_trial) return {best(entry, may_read), turn % kCallsPerLook == 0};
    const std::uint32_t trial = turn % trials.all();
    if (trial < trials.untimed) return {*way};
    return {*way, true, (trial - trials.untimed + 1) % trials.half() == 0};
  }
  // How long a call took.
  void note(Kind kind, std::uint64_t size_bytes, Way way, Time time) {
    Entry& entry = entry_of(kind, size_bytes);
    const Trials trials = trials_of(size_bytes);
    double& least = entry.least[static_cast<std::size_t>(way)];
    const double per_byte = time.seconds() / static_cast<double>(size_bytes);
    if (entry.is_trial) {
      note_trial(entry, trials, least, per_byte);
    } else {
      look(entry, trials, least, per_byte);
    }
  }

 private:
  static constexpr std::size_t kWays = 3;
  // So many rounds of calls, as many as there are trials of a way; in which of them the ways are
  // tried, in their order.
  struct Period {
    std::uint32_t rounds;
    std::array<std::uint32_t, kWays> trials;
  };
  // Much is new to the first calls: pages, and lines that a probe left in several caches.
  static constexpr Period kFirstPeriod{8, {0, 1, 2}};
  static constexpr Period kExpectedPeriod{24, {0, 6, 12}};
  // Trials are repeated soon enough to follow a virtual machine whose processors are moved, and so
  // seldom that two ways that take six times as long cost a twenty-fifth.
  static constexpr Period kLaterPeriod{256, {0, 1, 2}};

  // Calls of each way. The first ones find stages where another way left them, in a cache or in
  // memory, until all have been used once; at least one finds new pages.
  struct Trials {
    std::uint32_t untimed;
    std::uint32_t timed;
    std::uint32_t all() const { return untimed + timed; }
    std::uint32_t half() const { return timed / 2; }
  };
  // The same for all sizes that share an entry.
  Trials trials_of(std::uint64_t size_bytes) const {
    const std::uint64_t calls =
        stage_bytes_ / std::max<std::uint64_t>(std::bit_floor(size_bytes), 1);
    return {static_cast<std::uint32_t>(std::clamp<std::uint64_t>(calls, 1, 512)),
            static_cast<std::uint32_t>(std::clamp<std::uint64_t>(4 * calls, 2, 8))};
  }

  // Where processors are moved meanwhile, a way may take nine times as long: a staged broadcast of
  // 1 MiB among 2 ranks 30 us with the cores near, 266 with them far. The rest of a period would be
  // long then. Every eighth call, so that clocks are seldom looked at.
  static constexpr std::uint32_t kCallsPerLook = 8;
  static constexpr double kMuchLonger = 2;
  static constexpr int kLooksMost = 3;

  static constexpr double kNever = std::numeric_limits<double>::infinity();
  struct Entry {
    bool is_first = true;     // period
    std::uint32_t calls = 0;  // in it
    bool is_trial = false;    // the last one
    std::uint32_t noted = 0;
    int long_calls = 0;  // one after the other, of those that were looked at
    // Seconds per byte of several calls: of those since the last half, and the least by way.
    double half = 0;
    std::array<double, kWays> least{kNever, kNever, kNever};
  };
  Entry& entry_of(Kind kind, std::uint64_t size_bytes) {
    const auto width = static_cast<std::size_t>(std::bit_width(size_bytes));
    return entries_[static_cast<std::size_t>(kind)][width];
  }
  // What comes in between only makes calls longer, so that the better half of the trials counts.
  // Its sum does: calls overlap, and where ranks share cores, one that got the core late finds all
  // that it waits for.
  static void note_trial(Entry& entry, const Trials& trials, double& least, double per_byte) {
    entry.half += per_byte;
    if (++entry.noted % trials.half() != 0) return;
    least = std::min(least, std::exchange(entry.half, 0.0));
  }
  // One long call is an interruption. Several are a change, and all ways are tried anew.
  static void look(Entry& entry, const Trials& trials, double least, double per_byte) {
    const bool is_long = per_byte * trials.half() > least * kMuchLonger;
    entry.long_calls = is_long ? entry.long_calls + 1 : 0;
    if (entry.long_calls == kLooksMost) begin_again(entry);
  }
  // What uses up the stages at once goes through memory in any way, and no way is far from the
  // best.
  const Period& period_of(const Entry& entry, const Trials& trials) const {
    if (!entry.is_first) return kLaterPeriod;
    return is_expected_ && trials.untimed > 1 ? kExpectedPeriod : kFirstPeriod;
  }
  static void begin_again(Entry& entry) { entry = {.is_first = false}; }
  std::optional<Way> tried_in(const Period& period, std::uint32_t round) const {
    const auto found = std::find(period.trials.begin(), period.trials.end(), round);
    if (found == period.trials.end()) return std::nullopt;
    return order_[static_cast<std::size_t>(found - period.trials.begin())];
  }
  Way best(const Entry& entry, bool may_read) const {
    Way best = order_[0];
    for (const Way way : order_) {
      if (way == Way::read && !may_read) continue;
      if (least_of(entry, way) < least_of(entry, best)) best = way;
    }
    return best;
  }
  static double least_of(const Entry& entry, Way way) {
    return entry.least[static_cast<std::size_t>(way)];
  }

  std::uint64_t stage_bytes_;
  bool is_expected_ = false;
  std::array<Way, kWays> order_{Way::staged, Way::read, Way::streamed};
  std::array<std::array<Entry, 65>, kKinds> entries_;  // by kind, and by the bits of the size
};

}  // namespace towpath::live
