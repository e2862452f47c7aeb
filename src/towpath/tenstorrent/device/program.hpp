// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "towpath/ethernet/link.hpp"
#include "towpath/machine/chip.hpp"
#include "towpath/machine/host.hpp"
#include "towpath/noc/chip_network.hpp"
#include "towpath/tenstorrent/core/data_movement_core.hpp"
#include "towpath/tenstorrent/core/ethernet_core.hpp"

// Kernels on the cores of one chip, run together in simulated time.
//
//   ChipProgram program(chip, {});
//   const std::size_t ready = program.create_semaphore(0);
//   program.create_kernel({.core = {1, 1}, .name = "sender"}, [=](DataMovementCore& core) {...});
//   program.create_kernel({.core = {2, 1}, .name = "receiver"}, [=](DataMovementCore& core) {...});
//   const ProgramResult result = program.run();
//
// A Cluster creates and runs the programs of its chips. A ChipProgram is a program on a single
// chip.

namespace towpath::tenstorrent {

class Device;
class HazardMonitor;
class KernelWatch;

struct ProgramResult {
  struct KernelTimes {
    noc::Cycle begin = 0;
    noc::Cycle end = 0;
  };
  std::vector<KernelTimes> kernels;  // in creation order
  noc::Cycle cycles = 0;             // end of the last kernel
  std::int64_t flit_hops = 0;        // on the chip, during the program
};

struct RunOptions {
  std::uint64_t seed = 1;
  // if false, only words and Ethernet payloads are stored, and other data only takes time
  bool carries_data = true;
  // if false, data to or from DRAM only takes time
  bool stores_dram = true;
  bool records_requests = false;
  // Maximum random delay of the start of each kernel and of each program.
  noc::Cycle start_skew_cycles = 0;
  noc::Cycle program_skew_cycles = 0;
  noc::Cycle cycles_max = 0;                        // 0: no limit
  bool finds_hazards = true;                        // in clusters with links
  std::vector<ethernet::LinkFaults> link_faults{};  // by link, none for links beyond the end
  // The host launches programs. It uses the base firmware of Ethernet cores for chips that are not
  // on PCIe, and no link is the dispatcher's.
  bool slow_dispatch = false;
  // Size of a launch on each core: code, arguments and a word that starts it. A multiple of 4, with
  // fast dispatch of 16, at most 8 KiB. Chosen here, without a source.
  std::uint64_t launch_bytes = 4096;
  // Accesses of this host to a chip on PCIe take the time of its link and are requests on its NoC.
  // Null: it reaches such chips instantly. Unless dispatch is slow, it launches programs by fast
  // dispatch, through the dispatcher's links. Without a host a program starts as soon as possible.
  std::shared_ptr<const machine::Host> host{};
  bool dispatches_fast() const { return host != nullptr && !slow_dispatch; }
  bool launches_programs() const { return slow_dispatch || host != nullptr; }
  // Threads that run the chips as partitions, if only links without faults join them: without a
  // monitor of hazards and without dispatch. 0: one simulation for all chips.
  int threads = 0;
  noc::NetworkModel network = noc::NetworkModel::flits;
};

// Number of a core in its kind. Ethernet cores are {0, channel}.
struct LogicalCore {
  int x = 0;
  int y = 0;
  auto operator<=>(const LogicalCore&) const = default;
};

class Program {
 public:
  using Options = RunOptions;
  // Used by Cluster::create_program().
  Program(Device& device, int generation);
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;
  virtual ~Program() = default;

  // Allocates the same offset in the L1 of every worker, or of every Ethernet core, aligned for any
  // transfer. Throws std::invalid_argument if L1 is full.
  std::uint64_t allocate(std::uint64_t size_bytes,
                         machine::TileKind kind = machine::TileKind::worker);
  // Largest size that allocate() can return now.
  std::uint64_t free_bytes(machine::TileKind kind) const;
  // Creates a word that has this value on each of these cores when the program starts. Returns its
  // id for get_semaphore.
  std::size_t create_semaphore(std::uint32_t initial_value,
                               machine::TileKind kind = machine::TileKind::worker);
  // Sets words at this offset of these cores when the program starts.
  void set_at_start(std::vector<machine::Coordinate> cores, std::uint64_t offset,
                    std::uint32_t value) {
    words_.push_back({offset, value, std::move(cores)});
  }
  // Creates a kernel and returns its number. Throws std::invalid_argument if no kernel can run
  // there. Each NoC of a worker serves one kernel. An Ethernet core serves one kernel, and none if
  // it belongs to the dispatcher or to a resident kernel of an earlier program.
  std::size_t create_kernel(KernelConfig config, Kernel kernel);
  // The configuration does not need a core.
  std::size_t create_kernel(LogicalCore core, KernelConfig config, EthernetKernel kernel);

  // The chip's network, with memories to fill before and to inspect after a run, and counters.
  noc::ChipNetwork& network();
  noc::Memory& memory(machine::Coordinate tile) { return network().memory(tile); }
  // Programs of different chips with the same generation form a group.
  int generation() const { return generation_; }
  // Its index among the programs of its chip.
  int number() const { return number_; }

  const ProgramResult& result() const { return result_; }

  // --- for its device ---------------------------------------------------------------------------
  // Starts its kernels. The last one that ends notifies the device.
  void start();
  bool is_running() const { return running_ > 0; }
  // Cores of a launch, and the offset of its bytes.
  std::vector<machine::Coordinate> cores() const;
  std::uint64_t launch_at(machine::Coordinate core) const;
  // The last word of the message: nonzero while the core runs the program.
  std::uint64_t launch_word(machine::Coordinate core) const;
  // Number of cores that report the end of their kernels: cores without resident kernels.
  std::uint32_t cores_that_end() const;
  bool all_blocked() const;
  // End of the L1 of its resident kernels, or 0.
  std::uint64_t resident_l1_end() const;
  // Declares the words that it sets when it starts.
  void declare_words(HazardMonitor& monitor) const;
  struct Entry {
    KernelConfig config;
    Kernel kernel;
    EthernetTile* tile = nullptr;              // on an Ethernet core
    std::unique_ptr<DataMovementCore> core{};  // since start()
    KernelWatch* watch = nullptr;              // if hazards are monitored
    bool is_launched = false;
    bool is_over = false;
  };
  const std::vector<Entry>& kernels() const { return kernels_; }

 protected:
  // For a program that owns its device: place_on() must be called first.
  Program() = default;
  void place_on(Device& device, int generation);

 private:
  struct Word {
    std::uint64_t offset;
    std::uint32_t initial_value;
    std::vector<machine::Coordinate> cores;
  };
  const std::vector<machine::Coordinate>& cores_of(machine::TileKind kind);
  void initialise(const Word& word);
  std::uint64_t l1_bytes(machine::TileKind kind) const;
  std::uint64_t next_offset(machine::TileKind kind) const;
  std::unique_ptr<DataMovementCore> make_core(const Entry& entry) const;
  void run_kernel(std::size_t number, noc::Cycle start);
  void wait_for_launch(Entry& entry);
  bool are_all_over(machine::Coordinate core) const;
  void report_end(const Entry& entry);
  void tell_dispatcher(const Entry& entry);

  // Kernels outlive the simulation, which unwinds them at its end.
  std::vector<Entry> kernels_;
  std::vector<Word> semaphores_;
  std::vector<Word> words_;                         // that are no semaphores
  std::array<std::uint64_t, 2> allocated_bytes_{};  // workers, Ethernet cores
  std::size_t running_ = 0;                         // kernels that its end waits for
  int generation_ = 0;
  int number_ = 0;
  std::int64_t flit_hops_before_ = 0;
  ProgramResult result_;
  Device* device_ = nullptr;
};

std::string name_of(const KernelConfig& config);

}  // namespace towpath::tenstorrent
