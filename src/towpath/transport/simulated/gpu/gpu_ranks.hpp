// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "towpath/gpu_links/network.hpp"
#include "towpath/machine/machine.hpp"
#include "towpath/sim/simulation.hpp"
#include "towpath/transport/simulated/gpu/direct_moves.hpp"
#include "towpath/transport/simulated/gpu/step_cost.hpp"
#include "towpath/transport/transport.hpp"

// The transports of all ranks of a simulated GPU cluster: real bytes, simulated time.
//
// A put by a thread block costs its protocol's send overhead, and then moves at the block's rate
// through the network. With a fencing protocol the signal leaves only when the payload is
// acknowledged, and travels separately. Payloads are read when the Move starts and become visible
// when they arrive. machine::KernelCost has the costs of the accesses of kernels (gpu_memory.hpp).

namespace towpath::transport::simulated {

struct GpuRanksOptions {
  std::vector<int> places;  // rank -> GPU of the machine, empty for rank r on GPU r
  bool carries_data = true;
  std::uint64_t heap_bytes = 64ull << 30;  // per rank, takes memory when touched
  std::uint32_t signals = 1u << 16;        // most that a rank can have
  // Maximum random delay of every arrival and completion, so that a run explores another
  // interleaving for each seed of the simulation. Zero for timing.
  Time jitter_max;
  // Only ranks below the period are simulated. Rank r represents r + k * period, and each link
  // represents the links that are folded to it. 0: all ranks are simulated.
  int period = 0;
  std::shared_ptr<const std::vector<gpu_links::FoldedLink>> folded_links{};
};

class GpuEndpoint;

class GpuRanks {
 public:
  // Ranks in several parts have neither jitter nor direct moves, and do not call is_quiet().
  GpuRanks(const gpu_links::Parts& parts, std::shared_ptr<const machine::Machine> machine,
           const GpuRanksOptions& options);
  ~GpuRanks();

  int ranks() const { return static_cast<int>(options_.places.size()); }
  // Ranks that are not folded.
  int simulated_ranks() const { return options_.period > 0 ? options_.period : ranks(); }
  // A rank that is simulated.
  Transport& transport(int rank);
  const gpu_links::Network& network() const { return network_; }
  // Starts to record the bytes of all links in the history, which the caller owns.
  void record(gpu_links::LinkHistory* history) { network_.record(history); }
  // Valid for the lifetime of the ranks.
  const gpu_links::Route& route(int from, int to) {
    return network_.route(options_.places[static_cast<std::size_t>(from)],
                          options_.places[static_cast<std::size_t>(to)]);
  }
  // The simulation of a rank.
  sim::Simulation& simulation(int rank) const { return *parts_.simulations[part_of(rank)]; }
  // For routes and error messages.
  DirectMoves& direct_moves() { return *direct_moves_; }
  void set_kernel(const Kernel& kernel) {
    kernel_ = kernel;
    direct_moves_->set_kernel(kernel);
  }
  // The cost of a step of a rank.
  StepCost step_cost(int rank, Protocol protocol) const {
    return {cost_of(rank), protocol, kernel_};
  }
  // An empty message, one way.
  Time latency(int from, int to) { return route(from, to).latency; }
  // The costs of a rank's GPU.
  const machine::GpuCost& cost_of(int rank) const {
    return network_.machine().gpu_of_rank(options_.places[static_cast<std::size_t>(rank)]);
  }

 private:
  friend class GpuEndpoint;
  friend class GpuMemory;

  void add_endpoints();
  std::uint32_t part_of(int rank) const {
    return parts_.of(
        network_.machine().device_of_rank(options_.places[static_cast<std::size_t>(rank)]));
  }

  gpu_links::Parts parts_;
  std::vector<sim::Crossing> crossings_;  // of each part, to the senders of deliveries
  gpu_links::Network network_;
  GpuRanksOptions options_;
  sim::Random random_;
  Kernel kernel_;
  std::unique_ptr<DirectMoves> direct_moves_;
  std::vector<std::unique_ptr<GpuEndpoint>> endpoints_;  // made when the first is asked for
};

}  // namespace towpath::transport::simulated
