// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "towpath/noc/memory.hpp"
#include "towpath/tenstorrent/metalium/host_api.hpp"
#include "towpath/tenstorrent/metalium/source_run.hpp"

namespace tt::tt_metal {

// What a host has made of a program, until it runs.
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

// The described machine behind the devices of this process.
class HostSystem {
 public:
  // The machine's name.
  explicit HostSystem(const std::string& machine);
  // The process's, made at first use; ends with its last device.
  static HostSystem& get();
  static bool exists();

  const towpath::machine::Chip& chip(int device) const;
  const towpath::machine::ChipCluster& cluster() const { return *cluster_; }
  // The tile of a logical core.
  towpath::machine::Coordinate tile_of(int device, const CoreCoord& core, CoreType type) const;
  Device* device(int id);
  void close(const Device& device);

  // The memory behind a tile, between runs.
  towpath::noc::Memory& memory(int device, towpath::machine::Coordinate tile);
  std::uint32_t allocate(const InterleavedBufferConfig& config);
  void release(int device, BufferType type, std::uint32_t address);

  void enqueue(int device, const Program& program) { pending_.emplace_back(device, program); }
  // Runs all that is enqueued, if any of it is the device's.
  void wait_for(int device);
  towpath::Time time() const { return time_; }

 private:
  using Place = std::pair<int, towpath::machine::Coordinate>;
  struct Block {
    std::uint64_t begin;
    std::uint64_t end;
  };
  void run_pending();
  void exchange_memories(towpath::tenstorrent::Cluster& cluster);
  void add(towpath::tenstorrent::Cluster& cluster, int device, const HostProgram& program,
           towpath::tenstorrent::metalium::KernelLog& log) const;

  std::shared_ptr<const towpath::machine::ChipCluster> cluster_;
  std::map<int, std::unique_ptr<Device>> devices_;
  std::map<Place, towpath::noc::Memory> memories_;
  std::map<std::pair<int, BufferType>, std::vector<Block>> allocated_;  // in order
  std::vector<std::pair<int, Program>> pending_;
  towpath::Time time_;
};

}  // namespace tt::tt_metal
