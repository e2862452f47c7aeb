// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "towpath/gpu/pe.hpp"
#include "towpath/machine/machine.hpp"
#include "towpath/sim/simulation.hpp"
#include "towpath/transport/simulated/gpu/gpu_ranks.hpp"

namespace towpath::gpu {

struct SimulatedOptions {
  int pes = 0;  // 0: one for each GPU of the machine
  std::uint64_t seed = 1;
  sim::Trace* trace = nullptr;
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

  // When the last host program had ended; what it started may have arrived later.
  Time finished_at() const { return finished_at_; }

  // Runs main() on every PE; the highest status that one returns.
  int run_main(const std::vector<std::string>& arguments);
  // Runs `body` as the host program of every PE. Throws KernelError where nothing can go on.
  void run(const std::function<void(Pe&)>& body);

 private:
  void finish();

  std::shared_ptr<const machine::Machine> machine_;
  std::unique_ptr<sim::Simulation> simulation_;
  transport::simulated::GpuRanks ranks_;
  Time finished_at_{};
  ThreadStack stack_;
  Run run_;
  std::vector<std::unique_ptr<Pe>> pes_;
};

}  // namespace towpath::gpu
