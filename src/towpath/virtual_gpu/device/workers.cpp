// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/virtual_gpu/device/workers.hpp"

#include <time.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <string>

#include "towpath/virtual_gpu/device/clock.hpp"
#include "towpath/virtual_gpu/device/stop.hpp"

namespace towpath::virtual_gpu {
namespace {

// Blocks that wait keep their stacks. A kernel of many blocks runs in parts.
constexpr int kThreadsMax = 200'000;
constexpr int kRoundsBeforeRest = 32;
constexpr long kRestNs = 20'000;

std::chrono::seconds deadline() {
  const char* const named = std::getenv("TOWPATH_VIRTUAL_GPU_DEADLINE_S");
  return std::chrono::seconds(named != nullptr ? std::atoi(named) : 60);
}

// The last block of a kernel has ended.
void finish(Grid* grid) {
  if (grid->launch.destroy != nullptr) grid->launch.destroy(grid->launch.closure);
  grid->finished();
  delete grid;
}

}  // namespace

Workers::Workers(int count) {
  for (int i = 0; i < count; ++i) {
    workers_.push_back(std::make_unique<Worker>());
    // They end with the process.
    std::thread([worker = workers_.back().get()] { worker->run(); }).detach();
  }
}

void Workers::start(Grid* grid) {
  const unsigned blocks = grid->blocks();
  grid->blocks_left = blocks;
  std::vector<std::vector<Waiting>> parts(workers_.size());
  for (unsigned block = 0; block < blocks; ++block) {
    parts[block % workers_.size()].push_back({grid, block});
  }
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (!parts[i].empty()) workers_[i]->add(parts[i]);
  }
}

void Workers::Worker::add(const std::vector<Waiting>& blocks) {
  const std::scoped_lock lock(mutex_);
  waiting_.insert(waiting_.end(), blocks.begin(), blocks.end());
  waiting_count_ = waiting_.size();
  has_work_.notify_one();
}

void Workers::Worker::admit() {
  while (waiting_count_ > 0 && threads_ < kThreadsMax) {
    Waiting next{};
    {
      const std::scoped_lock lock(mutex_);
      next = waiting_.front();
      waiting_.pop_front();
      waiting_count_ = waiting_.size();
    }
    auto block = std::make_unique<ThreadBlock>(*next.grid, next.block, stacks_);
    block->run();
    if (block->has_ended()) {
      if (--next.grid->blocks_left == 0) finish(next.grid);
      continue;
    }
    threads_ += block->threads();
    blocks_.push_back(std::move(block));
  }
}

// Each block has a turn. True if one had something to do.
bool Workers::Worker::turn() {
  bool has_run = false;
  bool has_ended = false;
  for (const auto& block : blocks_) {
    block->wake_changed();
    if (block->has_ready()) {
      block->run();
      has_run = true;
    }
    has_ended = has_ended || block->has_ended();  // here or in `rest`
  }
  if (!has_ended) return has_run;
  std::vector<Grid*> finished;
  std::erase_if(blocks_, [&](const auto& block) {
    if (!block->has_ended()) return false;
    threads_ -= block->threads();
    if (--block->grid().blocks_left == 0) finished.push_back(&block->grid());
    return true;
  });
  for (Grid* const grid : finished) finish(grid);
  return true;
}

// Something may have changed that no thread polls by a load that is seen: they look again, the less
// often the longer nothing happens.
void Workers::Worker::rest(int idle_rounds) {
  if (idle_rounds >= 4 && (idle_rounds & (idle_rounds - 1)) == 0) {
    for (const auto& block : blocks_) {
      block->wake_all();
      if (block->has_ready()) block->run();
    }
  }
  if (idle_rounds == kRoundsBeforeRest) idle_since_ = std::chrono::steady_clock::now();
  if (idle_rounds < kRoundsBeforeRest) return;
  if (std::chrono::steady_clock::now() - idle_since_ > deadline()) report();
  const timespec time{0, kRestNs};
  nanosleep(&time, nullptr);
}

void Workers::Worker::report() const {
  std::string text = "kernels do not end: nothing has changed for " +
                     std::to_string(std::chrono::seconds(deadline()).count()) + " s";
  for (const auto& block : blocks_) text += "\n  " + block->describe() + ": " + block->waiting();
  stop(text);
}

void Workers::Worker::run() {
  read_real_time();
  int idle_rounds = 0;
  for (;;) {
    if (blocks_.empty()) {
      std::unique_lock lock(mutex_);
      has_work_.wait(lock, [&] { return !waiting_.empty(); });
    }
    admit();
    if (blocks_.empty()) continue;
    if (turn()) {
      idle_rounds = 0;
    } else {
      rest(++idle_rounds);
    }
  }
}

}  // namespace towpath::virtual_gpu
