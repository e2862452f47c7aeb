// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>

#include "towpath/base/units.hpp"
#include "towpath/live/call.hpp"

namespace towpath::live {

enum class CopyPath : std::uint8_t {
  staged,    // stored to a stage
  streamed,  // stored to a stage past the caches
  read,      // read by the others in place
};

// Finds the fastest copy path for calls of a kind and size by trials on the calls themselves. The
// result depends on the pages of the program's arrays, on the distance between the cores and on the
// load of other ranks on the same core, which no separate measurement shows.
//
// A few calls use each path, and the fastest one is kept for a while, or until it becomes far
// slower. The path that is expected to be fastest comes first, and is used five times as often
// before each other path is tried, so a program with a hundred calls spends little time on slower
// paths.
class PathTuner {
 public:
  struct Choice {
    CopyPath path = CopyPath::staged;
    bool is_timed = false;  // note() expects the duration
    // The duration includes the reads of all other ranks. Other calls overlap with the next one.
    bool is_whole = false;
  };

  // `stage_bytes`: the bytes that are staged before memory is used again.
  explicit PathTuner(std::uint64_t stage_bytes) : stage_bytes_(stage_bytes) {}

  // Suggests the faster one of the two staged paths. Another suggestion restarts all trials.
  void expect(CopyPath path);
  // `size_bytes`: the bytes that a rank publishes. `may_read`: true if CopyPath::read is possible.
  Choice choose(Kind kind, std::uint64_t size_bytes, bool may_read);
  // The duration of a timed call.
  void note(Kind kind, std::uint64_t size_bytes, CopyPath path, Time duration);

 private:
  static constexpr std::size_t kPaths = 3;
  static constexpr double kNever = std::numeric_limits<double>::infinity();
  // Rounds of calls. A round has the number of calls of a trial.
  struct Period {
    std::uint32_t rounds;
    std::array<std::uint32_t, kPaths> trials;  // the round of each path, in their order
  };
  struct Trials {
    std::uint32_t untimed;
    std::uint32_t timed;
    std::uint32_t all() const { return untimed + timed; }
    std::uint32_t half() const { return timed / 2; }
  };
  // The trials of one kind, for sizes between two powers of two.
  struct Entry {
    bool is_first = true;     // period
    std::uint32_t calls = 0;  // in the period
    bool is_trial = false;    // the last call
    std::uint32_t noted = 0;
    int long_calls = 0;  // in succession, of the checked ones
    // Seconds per byte of the calls since the last half of the period, and the least such sum of
    // each path.
    double half = 0;
    std::array<double, kPaths> least{kNever, kNever, kNever};
  };

  Entry& entry_of(Kind kind, std::uint64_t size_bytes);
  Trials trials_of(std::uint64_t size_bytes) const;
  const Period& period_of(const Entry& entry, const Trials& trials) const;
  static void restart(Entry& entry) { entry = {.is_first = false}; }
  static void note_trial(Entry& entry, const Trials& trials, double& least, double per_byte);
  static void check(Entry& entry, const Trials& trials, double least, double per_byte);
  std::optional<CopyPath> tried_in(const Period& period, std::uint32_t round) const;
  CopyPath best(const Entry& entry, bool may_read) const;

  std::uint64_t stage_bytes_;
  bool is_expected_ = false;
  std::array<CopyPath, kPaths> order_{CopyPath::staged, CopyPath::read, CopyPath::streamed};
  std::array<std::array<Entry, 65>, kKinds> entries_;  // by kind, and by the bits of the size
};

}  // namespace towpath::live
