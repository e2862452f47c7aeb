// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "towpath/collective/time_only/repetition.hpp"

// One plan on all ranks of a GPU cluster if only the time is asked for: the times and loads of
// Executors over GpuRanks, to the picosecond, with far fewer events.
//
// TimeEngine advances thread blocks, DirectSteps their moves through switches. Flows keeps the
// order of time on links on which messages meet. Agenda has the blocks that may continue.
// Repetition detects a steady state.
//
// Executors are the reference. They also have bytes, jitter, traces, all one-sided steps, and the
// words for a schedule that stands still.

namespace towpath::collective {

class TimeOnlyRun {
 public:
  // Whether this kind of plan runs here.
  static bool can_run(const Plan& plan);
  // Whether its ranks reach the groups that the plan moves to and from. Folded ones do not.
  static bool can_run(transport::simulated::GpuRanks& ranks, const Plan& plan);

  // The ranks outlive it.
  TimeOnlyRun(transport::simulated::GpuRanks& ranks, std::shared_ptr<const Plan> plan);
  TimeOnlyRun(const TimeOnlyRun&) = delete;
  TimeOnlyRun& operator=(const TimeOnlyRun&) = delete;

  enum class End : std::uint8_t { finished, stands_still, beyond_limit };
  struct Outcome {
    End end = End::finished;
    Time finished;  // the last rank
  };
  // Every rank's host calls at now(). Unless all finish, within `limit` from there, this is
  // the last invocation.
  Outcome invoke(Time limit = Time::max());

  // The end of all that has happened: after the last rank has finished, credits still come back.
  Time now() const { return engine_.now(); }
  // One per link of the machine. In a fold, only representatives have a load.
  std::vector<gpu_links::LinkLoad> loads() const { return flows_.loads(); }
  // Only the links that the simulated ranks use. See Flows.
  std::vector<std::pair<int, gpu_links::LinkLoad>> used_loads() const {
    return flows_.used_loads();
  }
  // As Network::has_ties.
  bool has_ties() const { return flows_.has_ties(); }
  // Slices, and segments that met others on a link.
  std::uint64_t events() const { return engine_.slices() + flows_.meetings(); }
  // Iterations of each block that were counted as those before.
  std::uint64_t repeated_iterations() const { return repetition_.counted(); }

 private:
  void divide();
  void run_partitions();
  void run_partition(std::uint32_t number);

  gpu_links::FlowTable flow_table_;
  gpu_links::Flows flows_;
  time_only::BlockTable table_;
  time_only::DirectSteps direct_;
  time_only::Agenda agenda_;
  time_only::TimeEngine engine_;
  time_only::Repetition repetition_;
};

}  // namespace towpath::collective
