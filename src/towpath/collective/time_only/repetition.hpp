// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "towpath/collective/time_only/agenda.hpp"
#include "towpath/collective/time_only/rhythm.hpp"
#include "towpath/collective/time_only/time_engine.hpp"
#include "towpath/sim/snapshot.hpp"

namespace towpath::collective::time_only {

// Detects a steady state of a run. The remaining iterations are then counted instead of simulated.
//
// Thread blocks run ahead of each other, so they have no common present. A horizon defines one:
// everything that starts before it is simulated, and nothing else. Horizons are one period of a
// thread block apart. If the state relative to two horizons is equal, the iterations between them
// repeat as long as every chunk keeps its size.
class Repetition {
 public:
  Repetition(BlockTable& table, Flows& flows, Agenda& agenda, TimeEngine& engine);
  Repetition(const Repetition&) = delete;
  Repetition& operator=(const Repetition&) = delete;

  void begin_invocation();
  // Everything that starts before the horizon is simulated.
  void reach_horizon();
  // Number of counted iterations of each block.
  std::uint64_t counted() const { return counted_; }

 private:
  struct Moment {
    sim::Snapshot snapshot;
    std::uint64_t iteration = 0;  // of the leading block
    std::uint64_t slices = 0;
    Flows::Counts counts;
  };

  Block& lead() { return table_[lead_]; }
  void choose_lead();
  void note_iteration();
  void settle();
  void compare(Time period);
  std::uint64_t iterations_left() const;
  Moment moment();
  void describe(sim::Snapshot& snapshot, const Block& block);
  void describe_connection(sim::Snapshot& snapshot, const Block& sender);
  void describe_times(sim::Snapshot& snapshot, const Block& block);
  void repeat(const Moment& before, const Moment& now, std::uint64_t times);
  void stop_comparing(std::uint64_t look_at);

  BlockTable& table_;
  Flows& flows_;
  Agenda& agenda_;
  TimeEngine& engine_;
  std::uint32_t lead_ = kNobody;  // the block that the horizons follow
  Rhythm rhythm_;
  std::uint64_t whole_iterations_ = 0;  // in which every chunk has the elements of the first
  std::uint64_t look_at_ = 0;           // iteration of the lead
  std::uint64_t pause_ = 0;             // iterations without a look
  bool is_settled_ = false;
  Time period_;
  std::optional<Moment> before_;
  std::uint64_t compared_ = 0;  // moments, with before_
  std::uint64_t compared_max_ = 1;
  std::uint64_t counted_ = 0;
};

}  // namespace towpath::collective::time_only
