// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "towpath/ethernet/link.hpp"
#include "towpath/machine/chip_cluster.hpp"
#include "towpath/sim/simulation_group.hpp"
#include "towpath/tenstorrent/device/device.hpp"
#include "towpath/tenstorrent/device/program.hpp"
#include "towpath/tenstorrent/dispatch/host_access.hpp"
#include "towpath/tenstorrent/hazards/errors.hpp"
#include "towpath/tenstorrent/hazards/hazard_monitor.hpp"

// Chips joined by Ethernet, with the programs that run on them.
//
//   Cluster cluster(n300, {.program_skew_cycles = 1000});
//   const LogicalCore sender = cluster.device(0).get_active_ethernet_cores(true).front();
//   const auto [chip, receiver] = cluster.device(0).get_connected_ethernet_core(sender);
//   cluster.create_program(0).create_kernel(sender, {.name = "send"},
//                                           [](EthernetCore& core) {...});
//   cluster.create_program(chip).create_kernel(receiver, {.name = "receive"}, ...);
//   cluster.run();
//
// Start times of programs of different chips are not specified. A kernel that sends to another chip
// waits for its peer first.

namespace towpath::tenstorrent {

class Cluster {
 public:
  using Options = RunOptions;
  // Throws std::invalid_argument for invalid options of dispatch.
  Cluster(std::shared_ptr<const machine::ChipCluster> cluster, const Options& options);
  Cluster(const Cluster&) = delete;
  Cluster& operator=(const Cluster&) = delete;
  ~Cluster();

  const machine::ChipCluster& description() const { return *description_; }
  const Options& options() const { return options_; }
  // One partition, or one for each chip.
  sim::SimulationGroup& simulations() { return simulations_; }
  const sim::SimulationGroup& simulations() const { return simulations_; }
  bool is_partitioned() const { return simulations_.partitions() > 1; }
  // The only partition.
  sim::Simulation& simulation();
  // The minimum time of a frame from one chip to another, and so of any effect. The origin if no
  // link joins them.
  Time lookahead() const { return lookahead_; }
  Device& device(int chip);
  std::size_t devices() const { return devices_.size(); }
  // The link of that number in the description.
  ethernet::Link& link(std::size_t number) { return *links_[number]; }
  const ethernet::Link& link(std::size_t number) const { return *links_[number]; }

  // Creates a program that runs on a chip after all earlier programs. Programs of different chips
  // with the same generation belong together. By default these are the n-th programs of all chips.
  Program& create_program(int chip) {
    return create_program(chip, static_cast<int>(device(chip).programs()));
  }
  Program& create_program(int chip, int generation);

  // Adds a process of the host, which runs from the start, alongside the programs. Throws
  // std::invalid_argument if the cluster carries no data, or is partitioned.
  void run_host(std::string name, std::function<void(HostAccess&)> body);

  // Runs all programs and processes of the host to their end, once. Returns the time at which the
  // last of them ended. Throws the errors of ChipProgram::run(), HazardError, and exceptions of a
  // process of the host.
  Time run();

  // Starts the first program of each chip, for callers that run the simulation themselves, with
  // kernels that do not end.
  void start();
  // Throws the error of run() for kernels that wait forever.
  [[noreturn]] void fail_waiting() const;
  // Throws the error of run() for the limit of cycles.
  [[noreturn]] void fail_at_limit() const;

 private:
  void dispatch_slowly();
  void dispatch_fast();
  void run_until_over();
  bool is_over() const;
  bool all_blocked() const;
  // A number that changes whenever anything has moved.
  std::int64_t progress() const;
  bool is_ethernet_at_rest() const;
  std::size_t kernels() const;
  std::size_t running() const;
  std::string describe_waits() const;
  std::vector<const Program::Entry*> waiting() const;
  std::vector<KernelName> find_cycle() const;
  void check_links() const;
  std::string describe_links() const;

  std::shared_ptr<const machine::ChipCluster> description_;
  Options options_;
  std::vector<std::unique_ptr<Program>> programs_;  // outlive the simulation
  std::optional<HazardMonitor> monitor_;
  std::optional<Host> host_;  // if it has processes
  Time lookahead_;
  sim::SimulationGroup simulations_;
  std::vector<std::unique_ptr<Device>> devices_;
  std::vector<std::unique_ptr<ethernet::Link>> links_;
  bool has_run_ = false;
};

}  // namespace towpath::tenstorrent
