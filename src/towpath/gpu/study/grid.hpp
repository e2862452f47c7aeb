// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "towpath/gpu/work.hpp"
#include "towpath/machine/machine.hpp"
#include "towpath/sim/simulation.hpp"
#include "towpath/transport/remote_memory.hpp"

// Blocks of a kernel on a simulated GPU, as C++ functions. Their calls take the time of the
// transport's remote memory and of duration(). Blocks are resident in waves: a new block starts
// when a resident one has ended.

namespace towpath::gpu::study {

// The launch of a grid.
struct Launch {
  BlockShape shape;
  int blocks = 1;
  int multiprocessors_max = 0;  // that it may use. Zero for all
};

class Grid;

// One running block.
class Block {
 public:
  int index() const { return index_; }
  int threads() const;

  // Puts to the peer, by all threads. Returns when the source may be overwritten.
  void put(transport::Access& put);
  // The same, but returns immediately: the access must outlive the block's grid.
  void put_without_waiting(transport::Access& put);
  // By `threads` threads of the block.
  void fence(int threads);
  // By one thread.
  void signal(int peer, transport::Offset at, std::uint64_t value);
  // Waits until the word is at least `value`.
  void wait(transport::Offset word, std::uint64_t value);
  // All threads load from and store to the GPU's memory.
  struct Copy {
    std::uint64_t loaded_bytes = 0;
    std::uint64_t stored_bytes = 0;
    int access_bytes = 16;
  };
  void work(const Copy& copy, int barriers = 0);
  void barrier() { work({}, 1); }

 private:
  friend class Grid;
  Block(Grid& grid, int multiprocessor) : grid_(grid), multiprocessor_(multiprocessor) {}
  void complete(transport::Access& access);

  Grid& grid_;
  int multiprocessor_;
  int index_ = 0;
};

// A kernel on one GPU.
class Grid {
 public:
  using Body = std::function<void(Block& block)>;

  // Throws std::invalid_argument if no block fits. The transport must have remote memory.
  Grid(sim::Simulation& simulation, transport::Transport& transport,
       const machine::KernelCost& cost, const Launch& launch, Body body);
  Grid(const Grid&) = delete;
  Grid& operator=(const Grid&) = delete;

  // Starts now. Call it once.
  void start();
  // Blocks that have not ended; their stores may still be in flight.
  int running() const { return launch_.blocks - ended_; }
  // Time at which all blocks had ended and all stores were acknowledged; the origin before that.
  Time ended_at() const { return ended_at_; }

 private:
  friend class Block;
  void run_slot(int multiprocessor);
  Residency residency(int multiprocessor) const;

  sim::Simulation& simulation_;
  transport::Transport& transport_;
  transport::RemoteMemory& memory_;
  const machine::KernelCost& cost_;
  Launch launch_;
  Body body_;
  int multiprocessors_;
  int next_ = 0;
  int ended_ = 0;
  int busy_ = 0;  // multiprocessors with a block
  Time ended_at_;
  std::vector<int> resident_;  // blocks, per multiprocessor
};

}  // namespace towpath::gpu::study
