// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "towpath/gpu/pe.hpp"
#include "towpath/machine/machine.hpp"
#include "towpath/sim/simulation.hpp"
#include "towpath/transport/simulated/gpu/gpu_ranks.hpp"

namespace towpath::gpu {

struct SimulatedOptions {
  int pes = 0;  // 0: one per GPU of the machine
  std::uint64_t seed = 1;
  sim::Trace* trace = nullptr;
  // Number of records of each kind that the profile keeps. 0: no profile.
  std::size_t profile_records_max = 0;
  Time kernel_limit = kKernelLimit;
  bool checks_races = false;  // of blocks, for a word of global memory
};

// The PEs of a compiled source on the GPUs of a described machine, in one simulation.
class SimulatedPes {
 public:
  SimulatedPes(std::shared_ptr<const machine::Machine> machine, const std::filesystem::path& object,
               const SimulatedOptions& options);
  ~SimulatedPes();

  int pes() const { return run_.ranks; }
  Pe& pe(int rank) { return *pes_[static_cast<std::size_t>(rank)]; }
  sim::Simulation& simulation() { return *simulation_; }

  // The end of the last host program. Its transfers may have arrived later.
  Time finished_at() const { return finished_at_; }

  // Sentences about the run that are not errors.
  const std::set<std::string>& remarks() const { return run_.remarks; }

  // The record of the run, or null. It contains blocks that have ended.
  const Profile* profile() const { return profile_.get(); }
  const gpu_links::LinkHistory* link_history() const { return link_history_.get(); }
  const gpu_links::Network& network() const { return ranks_.network(); }
  // The minimum time from a put or a signal to the end of a wait for it: its path, the adapter's
  // part if the peer is on another host, and one poll.
  Time latency(int from, int to);

  // Runs main() on every PE. Returns the highest status.
  int run_main(const std::vector<std::string>& arguments);
  // Runs `body` as the host program of every PE. Throws KernelError if the run is stuck.
  void run(const std::function<void(Pe&)>& body);

 private:
  void finish();
  std::unique_ptr<Profile> new_profile(std::size_t records_max) const;

  std::shared_ptr<const machine::Machine> machine_;
  std::unique_ptr<sim::Simulation> simulation_;
  std::unique_ptr<Profile> profile_;  // outlives the blocks
  std::unique_ptr<gpu_links::LinkHistory> link_history_;
  transport::simulated::GpuRanks ranks_;
  Time finished_at_{};
  ThreadStack stack_;
  RaceMonitor races_;
  Run run_;
  std::vector<std::unique_ptr<Pe>> pes_;
};

}  // namespace towpath::gpu
