// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include "towpath/base/units.hpp"
#include "towpath/gpu/include/towpath_gpu.h"
#include "towpath/gpu/work.hpp"
#include "towpath/machine/kernel_cost.hpp"

// The grids of a GPU: resident blocks per multiprocessor, and blocks that wait for a slot. Slots
// are assigned in the order of block indices and launches.

namespace towpath::gpu {

namespace abi = towpath_gpu;

class Block;
class Pe;

// A running kernel. Owns its resident blocks.
class Grid {
 public:
  Grid(const abi::Launch& launch, std::function<void()> finished);
  ~Grid();
  Grid(const Grid&) = delete;
  Grid& operator=(const Grid&) = delete;

  const abi::Launch& launch() const { return launch_; }
  std::string name() const { return launch_.name; }
  int threads_per_block() const;
  abi::Range arguments() const {
    return {reinterpret_cast<std::uintptr_t>(launch_.closure), launch_.closure_bytes};
  }
  std::uint64_t blocks() const;
  abi::Index3 index_of(std::uint64_t block) const;

 private:
  friend class Device;
  friend class Block;
  abi::Launch launch_;
  std::function<void()> finished_callback_;
  std::list<std::unique_ptr<Block>> resident_;
  std::uint64_t started_ = 0;
  std::uint64_t finished_ = 0;
  std::uint64_t at_barrier_ = 0;
};

class Device {
 public:
  // Multiprocessors of a GPU for live runs: an H100's.
  static machine::KernelCost live_cost();

  Device(Pe& pe, const machine::KernelCost& cost);
  ~Device();

  const machine::KernelCost& cost() const { return cost_; }
  // Starts all blocks for which there is room. Throws KernelError if not even one block fits.
  void start(const abi::Launch& launch, std::function<void()> finished);
  // Number of concurrently resident blocks of a shape.
  int resident_blocks(int threads, std::uint64_t shared_bytes) const;
  Residency residency(int multiprocessor) const;
  // The block's last thread has ended.
  void finish(Block& block);
  void arrive_at_grid_barrier(Grid& grid);
  // One line for each group of waiting blocks, and for blocks without a slot.
  std::string waiting() const;

 private:
  struct Multiprocessor {
    int blocks = 0;
    double load = 0;
  };
  double share_of(const Grid& grid) const;
  int choose(const Grid& grid) const;
  void fill();

  Pe& pe_;
  machine::KernelCost cost_;
  std::vector<Multiprocessor> multiprocessors_;
  int busy_ = 0;
  std::list<std::unique_ptr<Grid>> grids_;
};

// Lines as the parts of one sentence.
std::string joined(const std::string& lines);

}  // namespace towpath::gpu
