// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "towpath/noc/memory/memory.hpp"
#include "towpath/tenstorrent/metalium/host_api.hpp"
#include "towpath/tenstorrent/metalium/source_run.hpp"

namespace tt::tt_metal {

// A program as its host has described it, until it runs.
struct HostProgram {
  struct KernelEntry {
    std::string file;
    std::string text;
    CoreRangeSet cores;
    KernelConfiguration config;
    std::map<CoreCoord, std::vector<std::uint32_t>> arguments{};
    std::vector<std::uint32_t> common_arguments{};
  };
  struct BufferEntry {
    CoreRangeSet cores;
    CircularBufferConfig config;
    std::uint32_t address = 0;
  };
  struct SemaphoreEntry {
    CoreRangeSet cores;
    std::uint32_t number = 0;
    std::uint32_t initial_value = 0;
    CoreType type = CoreType::WORKER;
  };
  std::vector<KernelEntry> kernels;
  std::vector<BufferEntry> buffers;
  std::vector<SemaphoreEntry> semaphores;

  towpath::tenstorrent::metalium::CircularBuffers buffers_of(const CoreCoord& core) const;
};

// Defines a name as 1 for a kernel, when it is added.
void define(const Program& program, KernelHandle kernel, const std::string& name);

// The start of a bank of a buffer.
towpath::noc::Address bank_of(const towpath::machine::Chip& chip, BufferType type,
                              std::size_t number);

// The described machine behind the devices of this process.
class HostSystem {
 public:
  // The machine's name. $TT_METAL_SLOW_DISPATCH_MODE in the environment selects slow dispatch.
  explicit HostSystem(const std::string& machine);
  // The system of the process, created at its first use. It ends with its last device.
  static HostSystem& get();
  static bool exists();

  const towpath::machine::Chip& chip(int device) const;
  const towpath::machine::ChipCluster& cluster() const { return *cluster_; }
  // The tile of a logical core.
  towpath::machine::Coordinate tile_of(int device, const CoreCoord& core, CoreType type) const;
  Device* device(int id);
  void close(const Device& device);

  // The memory of a tile, between runs.
  towpath::noc::Memory& memory(int device, towpath::machine::Coordinate tile);
  std::uint32_t allocate(const InterleavedBufferConfig& config);
  // The bytes belong to the buffer until all programs enqueued on its device have run.
  void release(int device, BufferType type, std::uint32_t address);

  // Routers that run with the programs, if any. Throws std::invalid_argument while programs are
  // enqueued.
  void set_fabric(std::optional<towpath::tenstorrent::metalium::FabricMode> mode);
  const std::optional<towpath::tenstorrent::metalium::FabricMode>& fabric_mode() const {
    return fabric_mode_;
  }
  // The fabric before it runs. Throws std::invalid_argument if there is none.
  const towpath::tenstorrent::metalium::KernelFabric& fabric();

  void enqueue(int device, const Program& program) { pending_.emplace_back(device, program); }
  // Runs all enqueued programs if any is for this device.
  void wait_for(int device);
  towpath::Time time() const { return time_; }

 private:
  using Place = std::pair<int, towpath::machine::Coordinate>;
  using Bank = std::pair<int, BufferType>;
  // Bytes of each bank, reserved for these enqueued programs of the device.
  struct Block {
    std::uint64_t begin;
    std::uint64_t end;
    int first_program = 0;
    int end_program = towpath::tenstorrent::Allocation::kNoEnd;
  };
  int enqueued(int device) const;
  Block after_freed(const Bank& bank, std::uint64_t begin, std::uint64_t size_bytes) const;
  void declare(towpath::tenstorrent::Cluster& cluster, const Bank& bank, const Block& block) const;
  void run_pending();
  void exchange_memories(towpath::tenstorrent::Cluster& cluster);
  void add(towpath::tenstorrent::Cluster& cluster, int device, const HostProgram& program,
           const towpath::tenstorrent::metalium::SharedByKernels& shared) const;

  std::shared_ptr<const towpath::machine::ChipCluster> cluster_;
  towpath::noc::Cycle cycles_max_;
  bool dispatches_slowly_;
  std::map<int, std::unique_ptr<Device>> devices_;
  std::map<Place, towpath::noc::Memory> memories_;
  std::map<Bank, std::vector<Block>> allocated_;  // sorted
  std::map<Bank, std::vector<Block>> freed_;      // while programs are enqueued
  std::optional<towpath::tenstorrent::metalium::FabricMode> fabric_mode_;
  // A fabric that does not run, and its chips.
  std::unique_ptr<towpath::tenstorrent::Cluster> idle_chips_;
  std::unique_ptr<towpath::tenstorrent::metalium::KernelFabric> idle_fabric_;
  std::vector<std::pair<int, Program>> pending_;
  towpath::Time time_;
};

}  // namespace tt::tt_metal
