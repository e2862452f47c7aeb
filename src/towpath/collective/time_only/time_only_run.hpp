// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "towpath/collective/time_only/repetition.hpp"

// One plan on all ranks of a GPU cluster if only the time is needed: the times and loads of
// Executors over GpuRanks, equal to the picosecond, with far fewer events.
//
// TimeEngine advances thread blocks, and DirectSteps advances their moves through switches. Flows
// keeps the order of time on links on which messages meet. Agenda has the blocks that may continue.
// Repetition detects a steady state.
//
// Executors are the reference. They also have bytes, jitter, traces, all one-sided steps, and the
// description of a deadlock.

namespace towpath::collective {

class TimeOnlyRun {
 public:
  // True if this class supports this kind of plan.
  static bool can_run(const Plan& plan);
  // True if its ranks can access the groups that the plan moves data to and from. Folded ranks
  // cannot.
  static bool can_run(transport::simulated::GpuRanks& ranks, const Plan& plan);

  // The ranks outlive this object.
  TimeOnlyRun(transport::simulated::GpuRanks& ranks, std::shared_ptr<const Plan> plan);
  TimeOnlyRun(const TimeOnlyRun&) = delete;
  TimeOnlyRun& operator=(const TimeOnlyRun&) = delete;

  enum class End : std::uint8_t { finished, stands_still, beyond_limit };
  struct Outcome {
    End end = End::finished;
    Time finished;  // the last rank
  };
  // Every rank's host calls at now(). If some rank does not finish within `limit` from then on,
  // this is the last invocation.
  Outcome invoke(Time limit = Time::max());
  // No invocation takes less: the time for which the busiest link carries bytes of FIFOs.
  Time least() const { return least_; }

  // The end of all events: after the last rank has finished, credits still return.
  Time now() const { return engine_.now(); }
  // One per link of the machine. In a fold, only representatives have a load.
  std::vector<gpu_links::LinkLoad> loads() const { return flows_.loads(); }
  // Only the links that the simulated ranks use. See Flows.
  std::vector<std::pair<int, gpu_links::LinkLoad>> used_loads() const {
    return flows_.used_loads();
  }
  // See Network::has_ties.
  bool has_ties() const { return flows_.has_ties(); }
  // Number of slices, and of segments that met others on a link.
  std::uint64_t events() const { return engine_.slices() + flows_.meetings(); }
  // Number of iterations of each block that were counted as repetitions.
  std::uint64_t repeated_iterations() const { return repetition_.counted(); }

 private:
  void divide();
  Time busiest_link() const;
  void run_partitions();
  void run_partition(std::uint32_t number);

  gpu_links::FlowTable flow_table_;
  gpu_links::Flows flows_;
  time_only::BlockTable table_;
  time_only::DirectSteps direct_;
  time_only::Agenda agenda_;
  time_only::TimeEngine engine_;
  time_only::Repetition repetition_;
  Time least_;
};

}  // namespace towpath::collective
