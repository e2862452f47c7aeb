// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "towpath/virtual_gpu/device/thread_block.hpp"

namespace towpath::virtual_gpu {

// Operating-system threads that run the blocks of all GPUs of the process. Blocks wait for each
// other, also across GPUs, so that each worker gives all its blocks turns. Blocks of equal numbers
// run on one worker, because they exchange data. A worker starts them together, and the next ones
// if these wait: the states and stacks of few threads stay in the caches.
class Workers {
 public:
  explicit Workers(int count);
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  // Starts all blocks. The last one calls grid->finished, and the grid ends.
  void start(Grid* grid);

 private:
  using Clock = std::chrono::steady_clock;
  // The blocks of a grid that a worker has not started: this one, and those after it in steps of
  // the number of workers.
  struct Waiting {
    Grid* grid;
    std::uint64_t next;
  };
  class Worker {
   public:
    explicit Worker(Workers& all) : all_(all) {}
    void add(Waiting blocks);
    [[noreturn]] void run();
    // The time since its threads have last done something. Zero while they run.
    Clock::duration quiet_time() const;
    // False if it uses its blocks. Then no other use may.
    bool is_parked() const { return is_parked_; }
    const std::vector<std::unique_ptr<ThreadBlock>>& blocks() const { return blocks_; }

   private:
    std::deque<Waiting>::iterator first_waiting();
    bool is_time_to_start(int idle_rounds);
    bool admit();
    bool turn();
    void rest(int idle_rounds);
    void park();

    Workers& all_;
    std::mutex mutex_;
    std::condition_variable has_work_;
    std::deque<Waiting> waiting_;
    std::atomic<std::size_t> waiting_count_ = 0;
    std::vector<std::unique_ptr<ThreadBlock>> blocks_;
    int threads_ = 0;
    int turns_since_start_ = 0;
    std::atomic<bool> runs_ = false, is_parked_ = true;
    std::atomic<Clock::time_point> changed_{};
    Stacks stacks_;
  };

  // Ends the process with the state of each block if no worker has had anything to do for long.
  void check_deadline();
  [[noreturn]] void report();

  const std::chrono::seconds deadline_;
  std::atomic<bool> is_reporting_ = false;
  std::vector<std::unique_ptr<Worker>> workers_;
};

}  // namespace towpath::virtual_gpu
