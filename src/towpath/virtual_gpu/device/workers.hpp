// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "towpath/virtual_gpu/device/thread_block.hpp"

namespace towpath::virtual_gpu {

// Operating-system threads that run the blocks of all GPUs of the process. Blocks wait for each
// other, also across GPUs, so that each worker gives all its blocks turns. Blocks of equal numbers
// run on one worker, because they exchange data.
class Workers {
 public:
  explicit Workers(int count);
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  // Starts all blocks. The last one calls grid->finished, and the grid ends.
  void start(Grid* grid);

 private:
  struct Waiting {
    Grid* grid;
    unsigned block;
  };
  class Worker {
   public:
    void add(const std::vector<Waiting>& blocks);
    [[noreturn]] void run();

   private:
    void admit();
    bool turn();
    void rest(int idle_rounds);
    // Ends the process with the state of each block.
    [[noreturn]] void report() const;

    std::mutex mutex_;
    std::condition_variable has_work_;
    std::deque<Waiting> waiting_;
    std::atomic<std::size_t> waiting_count_ = 0;
    std::vector<std::unique_ptr<ThreadBlock>> blocks_;
    int threads_ = 0;
    std::chrono::steady_clock::time_point idle_since_{};
    Stacks stacks_;
  };

  std::vector<std::unique_ptr<Worker>> workers_;
};

}  // namespace towpath::virtual_gpu
