// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "towpath/machine/machine.hpp"
#include "towpath/simulate/fold.hpp"
#include "towpath/simulate/simulated_ranks.hpp"
#include "towpath/transport/simulated/gpu/gpu_ranks.hpp"

namespace towpath::simulate {

struct SimulatedGpusOptions {
  std::vector<int> places;  // rank -> GPU of the machine, empty for the first ones
  bool carries_data = true;
  std::uint64_t seed = 1;
  Time jitter_max{};  // explores interleavings, zero for timing
  Fold fold{};        // from find_fold(), without data and jitter only
  // Time-only runs also use executors, event by event: the reference.
  bool is_plain = false;
  // With data, or if is_plain: worker threads, each of which runs hosts as partitions. Results do
  // not depend on their number. 0: one simulation for all hosts, the reference. Not for schedules
  // with one-sided steps, nor with jitter.
  int threads = 0;
};

// Ranks on the GPUs of a machine. A rank starts when its kernel has been launched.
class SimulatedGpus final : public SimulatedRanks {
 public:
  SimulatedGpus(std::shared_ptr<const machine::Machine> machine, int ranks,
                const SimulatedGpusOptions& options = {});

  sim::SimulationGroup& simulations() override { return simulations_; }
  sim::Simulation& simulation(int rank = 0) override { return ranks_.simulation(rank); }
  transport::Transport& transport(int rank) override { return ranks_.transport(rank); }
  collective::TimeOnlyRun* time_only(std::shared_ptr<const collective::Plan> plan) override;
  void start(int rank, const collective::Schedule& schedule) override;
  void run(Time limit = Time::max()) override { simulations_.run(limit); }
  int simulated_ranks(int ranks) const override { return fold_ ? fold_.period : ranks; }
  bool may_differ() const override {
    return time_only_ != nullptr ? time_only_->has_ties() : ranks_.network().has_ties();
  }
  std::vector<gpu_links::LinkLoad> loads() override {
    return fold_.unfolded(time_only_ != nullptr ? time_only_->loads() : ranks_.network().loads());
  }

 private:
  struct Launch {
    SimulatedGpus* gpus;
    int rank;
  };

  bool is_time_only_;
  Fold fold_;
  gpu_links::HostParts cut_;
  sim::SimulationGroup simulations_;
  transport::simulated::GpuRanks ranks_;
  std::vector<Launch> launches_;                        // one per rank
  std::unique_ptr<collective::TimeOnlyRun> time_only_;  // null if executors run the plan
};

}  // namespace towpath::simulate
