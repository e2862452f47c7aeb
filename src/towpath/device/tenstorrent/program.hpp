// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "towpath/device/tenstorrent/data_movement_core.hpp"
#include "towpath/machine/chip.hpp"
#include "towpath/noc/chip_network.hpp"
#include "towpath/sim/simulation.hpp"

// Kernels on the cores of one chip, run together in simulated time.
//
//   Program program(chip, {});
//   const std::size_t ready = program.create_semaphore(0);
//   program.create_kernel({.core = {1, 1}, .name = "sender"}, [=](DataMovementCore& core) {...});
//   program.create_kernel({.core = {2, 1}, .name = "receiver"}, [=](DataMovementCore& core) {...});
//   const ProgramResult result = program.run();

namespace towpath::device::tenstorrent {

struct ProgramResult {
  struct KernelTimes {
    noc::Cycle begin = 0;
    noc::Cycle end = 0;
  };
  std::vector<KernelTimes> kernels;  // in the order in which they were created
  noc::Cycle cycles = 0;             // when the last one ended
  std::int64_t flit_hops = 0;
};

class Program {
 public:
  struct Options {
    std::uint64_t seed = 1;
    bool carries_data = true;  // otherwise only semaphores and other words, and time
    bool records_requests = false;
    noc::Cycle start_skew_cycles = 0;  // each kernel starts late by a random 0 to so many cycles
    noc::Cycle cycles_max = 0;         // 0: no limit
  };
  Program(std::shared_ptr<const machine::Chip> chip, const Options& options);

  // The same place in the L1 of every worker, aligned for any transfer. Throws
  // std::invalid_argument when L1 is full.
  std::uint64_t allocate(std::uint64_t size_bytes);
  // A word that has this value on every worker when the program starts; its id, for get_semaphore.
  std::size_t create_semaphore(std::uint32_t initial_value);
  // Its number. Throws std::invalid_argument where no kernel can run; a NoC of a core serves one.
  std::size_t create_kernel(KernelConfig config, Kernel kernel);

  // Memories to fill beforehand and to look at afterwards, and what the network has counted.
  noc::ChipNetwork& network() { return network_; }
  noc::Memory& memory(machine::Coordinate tile) { return network_.memory(tile); }

  // Runs all kernels to their end, once. Throws std::invalid_argument on a call that cannot be
  // carried out and std::runtime_error when
  //   - bytes change that a write has yet to read (wait for noc_async_writes_flushed first),
  //   - a kernel ends with requests that nobody waited for,
  //   - kernels wait for ever, or the run takes more than cycles_max,
  // in one sentence that names kernel, core and call.
  ProgramResult run();

 private:
  struct Entry {
    KernelConfig config;
    Kernel kernel;
    std::unique_ptr<DataMovementCore> core;  // from run() on
    bool is_over = false;
  };
  void run_kernel(std::size_t number, noc::Cycle start);
  void run_until_over();
  bool does_everybody_wait() const;
  std::int64_t flit_hops() const;
  std::string describe_waits() const;

  Options options_;
  std::vector<Entry> kernels_;  // outlives the simulation, whose end unwinds them
  sim::Simulation simulation_;
  noc::ChipNetwork network_;
  std::uint64_t allocated_bytes_ = 0;
  std::vector<std::uint64_t> semaphores_;
  std::size_t running_ = 0;
  bool has_run_ = false;
  ProgramResult result_;
};

}  // namespace towpath::device::tenstorrent
