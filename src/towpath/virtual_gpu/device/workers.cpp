// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/virtual_gpu/device/workers.hpp"

#include <algorithm>
#include <optional>
#include <string>

#include "towpath/virtual_gpu/device/clock.hpp"
#include "towpath/virtual_gpu/device/crash.hpp"
#include "towpath/virtual_gpu/device/library.hpp"
#include "towpath/virtual_gpu/device/settings.hpp"
#include "towpath/virtual_gpu/device/stop.hpp"

namespace towpath::virtual_gpu {
namespace {

// Blocks that wait keep their stacks, which take up to 3.3 GB. A kernel of many blocks runs in
// parts.
constexpr int kThreadsMax = 200'000;
// A thread that waits by sleeping always has something to do, and may wait for a block that has not
// started. Not measured: 64 turns of blocks with work take milliseconds.
constexpr int kTurnsBeforeStart = 64;
// Not measured: an idle worker reacts in microseconds first. Then it starts further blocks, or
// takes a few percent of a processor.
constexpr int kRoundsBeforeRest = 32;
constexpr std::chrono::microseconds kRest{20};
constexpr std::size_t kBlocksReported = 64;
constexpr std::chrono::seconds kParkTime{1};

// The last block of a kernel has ended.
void finish(Grid* grid) {
  if (grid->launch.destroy != nullptr) grid->launch.destroy(grid->launch.closure);
  grid->finished();
  delete grid;
}

}  // namespace

Workers::Workers(int count) : deadline_(deadline_s()) {
  explain_crashes();
  for (int i = 0; i < count; ++i) workers_.push_back(std::make_unique<Worker>(*this));
  // They end with the process.
  for (const auto& each : workers_) {
    std::thread([worker = each.get()] { worker->run(); }).detach();
  }
}

void Workers::start(Grid* grid) {
  const std::uint64_t blocks = grid->blocks();
  grid->blocks_left = blocks;
  const std::uint64_t parts = std::min<std::uint64_t>(blocks, workers_.size());
  for (std::uint64_t i = 0; i < parts; ++i) workers_[i]->add({grid, i});
}

void Workers::check_deadline() {
  const auto is_quiet = [this](const auto& each) { return each->quiet_time() > deadline_; };
  if (std::all_of(workers_.begin(), workers_.end(), is_quiet)) report();
}

void Workers::report() {
  if (is_reporting_.exchange(true)) {
    for (;;) std::this_thread::sleep_for(kParkTime);
  }
  const Clock::time_point end = Clock::now() + kParkTime;
  const auto is_parked = [](const auto& each) { return each->is_parked(); };
  while (std::count_if(workers_.begin(), workers_.end(), is_parked) + 1 <
             static_cast<std::ptrdiff_t>(workers_.size()) &&
         Clock::now() < end) {
    std::this_thread::sleep_for(kRest);
  }
  std::string text =
      "kernels do not end: nothing has changed for " + std::to_string(deadline_.count()) + " s";
  if (library().explain_calls != nullptr) text += library().explain_calls();
  std::size_t count = 0;
  for (const auto& worker : workers_) {
    for (const auto& block : worker->blocks()) {
      if (++count <= kBlocksReported) text += "\n  " + block->describe() + ": " + block->waiting();
    }
  }
  if (count > kBlocksReported) {
    text += "\n  and " + std::to_string(count - kBlocksReported) + " more blocks";
  }
  stop(text);
}

Workers::Clock::duration Workers::Worker::quiet_time() const {
  return runs_ ? Clock::duration::zero() : Clock::now() - changed_.load();
}

void Workers::Worker::add(Waiting blocks) {
  const std::scoped_lock lock(mutex_);
  waiting_.push_back(blocks);
  waiting_count_ = waiting_.size();
  has_work_.notify_one();
}

// The lowest number. There is one.
std::deque<Workers::Waiting>::iterator Workers::Worker::first_waiting() {
  const auto is_before = [](const Waiting& a, const Waiting& b) { return a.next < b.next; };
  return std::min_element(waiting_.begin(), waiting_.end(), is_before);
}

// Resident blocks have preference over blocks of higher numbers.
bool Workers::Worker::is_time_to_start(int idle_rounds) {
  if (waiting_count_ == 0) return false;
  if (++turns_since_start_ >= kTurnsBeforeStart || idle_rounds >= kRoundsBeforeRest) return true;
  const std::scoped_lock lock(mutex_);
  const std::uint64_t number = first_waiting()->next;
  return std::all_of(blocks_.begin(), blocks_.end(),
                     [=](const auto& each) { return number <= each->number(); });
}

// Starts blocks until all blocks of a number are resident. True if there was one.
bool Workers::Worker::admit() {
  bool has_run = false;
  std::optional<std::uint64_t> resident;
  turns_since_start_ = 0;
  while (waiting_count_ > 0 && threads_ < kThreadsMax) {
    Waiting next{};
    {
      const std::scoped_lock lock(mutex_);
      const auto first = first_waiting();
      next = *first;
      if (next.next > resident.value_or(next.next)) break;
      first->next += all_.workers_.size();
      if (first->next >= next.grid->blocks()) waiting_.erase(first);
      waiting_count_ = waiting_.size();
    }
    has_run = true;
    auto block = std::make_unique<ThreadBlock>(*next.grid, next.next, stacks_);
    block->run();
    if (block->has_ended()) {
      if (--next.grid->blocks_left == 0) finish(next.grid);
      continue;
    }
    threads_ += block->threads();
    blocks_.push_back(std::move(block));
    resident = next.next;
  }
  return has_run;
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
  if (idle_rounds < kRoundsBeforeRest) return;
  all_.check_deadline();
  std::this_thread::sleep_for(kRest);
}

// Another worker reports.
void Workers::Worker::park() {
  is_parked_ = true;
  for (;;) std::this_thread::sleep_for(kParkTime);
}

void Workers::Worker::run() {
  read_real_time();
  use_own_stack_for_signals();
  int idle_rounds = 0;
  for (;;) {
    if (blocks_.empty()) {
      is_parked_ = true;
      std::unique_lock lock(mutex_);
      has_work_.wait(lock, [&] { return !waiting_.empty(); });
      is_parked_ = false;
    }
    if (all_.is_reporting_) park();
    runs_ = true;
    bool has_run = turn();
    if (is_time_to_start(has_run ? 0 : idle_rounds)) has_run = admit() || has_run;
    if (has_run) changed_ = Clock::now();
    runs_ = false;
    if (blocks_.empty()) continue;
    if (has_run) {
      idle_rounds = 0;
    } else {
      rest(++idle_rounds);
    }
  }
}

}  // namespace towpath::virtual_gpu
