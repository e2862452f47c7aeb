// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/gpu/block.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "towpath/gpu/operation.hpp"
#include "towpath/gpu/pe.hpp"
#include "towpath/gpu/wait_record.hpp"

namespace towpath::gpu {

namespace {

int lane_of(const abi::Index3& index, const abi::Index3& blocks) {
  return static_cast<int>(index.x + blocks.x * (index.y + blocks.y * index.z));
}

// The current exception with a name.
std::exception_ptr named_exception(const std::string& who) {
  try {
    rethrow_named(who);
  } catch (...) {
    return std::current_exception();
  }
}

}  // namespace

std::string place_of(const abi::Site& site) {
  if (site.file == nullptr) return "somewhere";
  return fmt::format("{} at {}:{}", site.call, site.file, site.line);
}

Block::Block(Pe& pe, Grid& grid, abi::Index3 index, int multiprocessor)
    : pe_(pe),
      grid_(grid),
      index_(index),
      multiprocessor_(multiprocessor),
      lane_(lane_of(index, grid.launch().configuration.grid)),
      threads_(static_cast<std::size_t>(grid.threads_per_block())),
      timeline_(new_timeline()),
      work_(pe, multiprocessor, threads(), timeline_.get()),
      groups_(*this, threads()),
      fences_(*this),
      shared_memory_(grid.launch().configuration.shared_bytes) {
  if (pe.is_timed()) {
    history_ = &pe.hazards().new_history();
    history_->learn(pe.simulation().now(), pe.hazards().past().now());
  }
  ready_.reserve(threads_.size());
  for (int thread = 0; thread < threads(); ++thread) {
    ready_.push_back(static_cast<std::uint16_t>(thread));
  }
  schedule();
}

Block::~Block() {
  for (const Thread& thread : threads_) pe_.run().stack.forget(thread.stack);
}

std::unique_ptr<BlockTimeline> Block::new_timeline() const {
  Profile* const profile = pe_.run().profile;
  if (profile == nullptr) return nullptr;
  const int stream = profile->stream(pe_.rank(), grid_.launch().configuration.stream);
  const int track = profile->track({.pe = pe_.rank(),
                                    .stream = stream,
                                    .block = lane_,
                                    .is_kernel = !grid_.launch().is_internal});
  return std::make_unique<BlockTimeline>(*profile, track, grid_.name());
}

std::string Block::describe() const {
  return fmt::format("block ({},{},{}) of kernel {} on PE {}", index_.x, index_.y, index_.z,
                     grid_.name(), pe_.rank());
}

std::string Block::waiting() const {
  std::map<std::string, int> places;
  for (const Thread& thread : threads_) {
    if (thread.state == Thread::State::finished) {
      ++places["ended"];
    } else if (thread.is_polling) {
      ++places["polls memory that stays as it is"];
    } else {
      ++places[place_of(thread.site)];
    }
  }
  std::string text;
  for (const auto& [place, count] : places) {
    text +=
        fmt::format("{}{} thread{} {} {}", text.empty() ? "" : ", ", count, count == 1 ? "" : "s",
                    place == "ended" || place.starts_with("polls") ? "" : "in", place);
  }
  if (const std::string named = groups_.named_arrivals(); !named.empty()) text += "; " + named;
  return text;
}

// --- threads run --------------------------------------------------------------------------------

void Block::make_ready(int thread) {
  threads_[static_cast<std::size_t>(thread)].state = Thread::State::ready;
  ready_.push_back(static_cast<std::uint16_t>(thread));
  if (!is_scheduled_ && !is_running_) schedule();
}

void Block::schedule() {
  is_scheduled_ = true;
  if (timeline_ != nullptr && !pe_.is_timed()) timeline_->await_turn();
  pe_.simulation().after(Time(), [](void* block) { static_cast<Block*>(block)->run(); }, this);
}

void Block::run_thread(void* argument) {
  auto& block = *static_cast<Block*>(argument);
  const abi::Launch& launch = block.grid_.launch();
  try {
    launch.run(launch.closure);
  } catch (const os::CodeFault& fault) {
    block.pe_.run().failure = std::make_exception_ptr(block.pe_.object().named(
        fault, fmt::format("thread {} of {}", block.running_, block.describe())));
  } catch (...) {
    block.pe_.run().failure =
        named_exception(fmt::format("thread {} of {}", block.running_, block.describe()));
  }
  if (block.pe_.run().failure != nullptr) block.halt();
  block.thread_finished();
}

void Block::enter(int thread) {
  running_ = thread;
  abi::Current& current = pe_.current();
  const abi::Index3& size = grid_.launch().configuration.block;
  const auto linear = static_cast<unsigned>(thread);
  current.thread = {linear % size.x, linear / size.x % size.y, linear / size.x / size.y};
  current.linear = linear;
}

void Block::run() {
  is_scheduled_ = false;
  is_running_ = true;
  if (timeline_ != nullptr && !pe_.is_timed()) timeline_->begin_turn();
  abi::Current& current = pe_.current();
  ThreadStack& stack = pe_.run().stack;
  current.on_device = true;
  current.block = index_;
  current.block_dim = grid_.launch().configuration.block;
  current.grid_dim = grid_.launch().configuration.grid;
  current.multiprocessor = static_cast<unsigned>(multiprocessor_);
  current.stack = {reinterpret_cast<std::uintptr_t>(stack.begin()), ThreadStack::kBytes};
  current.shared = shared_memory_.range();
  current.counters = {};
  current.arguments = grid_.arguments();
  pe_.forget_quiet_ranges();
  pe_.running_block = this;
  pe_.run().running = this;
  while (next_ready_ < ready_.size() && pe_.run().failure == nullptr) {
    const std::uint16_t thread = ready_[next_ready_++];
    if (next_ready_ + 1 < ready_.size()) threads_[ready_[next_ready_ + 1]].stack.prefetch();
    enter(thread);
    ++pe_.run().resumes;
    stack.resume(threads_[thread].stack, &run_thread, this);
    work_.fold_counters();
    if (next_ready_ == ready_.size()) fences_.flush_library_fence();
    if (next_ready_ == ready_.size()) fences_.flush_thread_fence();
  }
  ready_.clear();
  next_ready_ = 0;
  pe_.running_block = nullptr;
  pe_.run().running = nullptr;
  running_ = -1;
  current.on_device = false;
  current.stack = {};
  pe_.forget_quiet_ranges();
  is_running_ = false;
  if (timeline_ != nullptr && !pe_.is_timed()) timeline_->end_turn();
  if (pe_.run().failure != nullptr) std::rethrow_exception(pe_.run().failure);
  pe_.pollers().notify_stores();
  groups_.check_named();
  if (finished_ < threads()) return;
  pe_.simulation().at(
      std::max(pe_.simulation().now(), work_.busy_until()),
      [](void* context) {
        auto& block = *static_cast<Block*>(context);
        block.pe_.device().finish(block);
      },
      this);
}

void Block::suspend(const abi::Site& site) {
  running().site = site;
  pe_.run().stack.suspend();
}

void Block::suspend_for(Activity activity, const abi::Site& site) {
  if (timeline_ == nullptr) return suspend(site);
  timeline_->enter(activity, site);
  suspend(site);
  timeline_->leave(activity, site);
}

void Block::wait_for_event(Activity activity, const abi::Site& site) {
  running().state = Thread::State::waiting;
  suspend_for(activity, site);
}

void Block::woken(int thread, Profile::Words words) {
  if (timeline_ != nullptr) timeline_->woken(words);
  make_ready(thread);
}

void Block::halt() {
  while (true) {
    running().state = Thread::State::waiting;
    pe_.run().stack.suspend();
  }
}

void Block::thread_finished() {
  running().state = Thread::State::finished;
  ++finished_;
  groups_.leave(threads() - finished_);
}

void Block::reach(Time when) {
  if (when <= pe_.simulation().now()) return;
  struct Alarm {
    Block* block;
    int thread;
  };
  pe_.simulation().at(
      when,
      [](void* context) {
        const std::unique_ptr<Alarm> alarm(static_cast<Alarm*>(context));
        alarm->block->make_ready(alarm->thread);
      },
      new Alarm{this, running_});
  wait_for_event(Activity::compute, running().site);
}

void Block::sleep(Time duration) {
  if (pe_.is_timed()) reach(work_.thread_time() + duration);
}

void Block::sync_grid(const abi::Site& site) {
  groups_.sync(0, 0, site);
  if (running_ == 0) {
    running().state = Thread::State::waiting;
    running().site = site;
    pe_.device().arrive_at_grid_barrier(grid_);
    suspend_for(Activity::sync, site);
  }
  groups_.sync(0, 0, site);
}

void Block::release_grid_barrier(Moment all) {
  if (history_ != nullptr) history_->learn(pe_.simulation().now(), all);
  make_ready(0);
}

void Block::learn_everything() {
  if (history_ != nullptr) history_->learn_everything(pe_.simulation().now());
}

void Block::hand_on() {
  note_release(*this, abi::FenceScope::system);
  if (history_ != nullptr) pe_.hazards().past().learn(pe_.simulation().now(), history_->now());
}

// --- shared memory -------------------------------------------------------------------------------

void* Block::dynamic_shared() {
  void* const memory = shared_memory_.dynamic();
  pe_.current().shared = shared_memory_.range();
  return memory;
}

void* Block::shared(const abi::SharedVariable& variable) {
  void* const memory = shared_memory_.variable(variable);
  pe_.current().shared = shared_memory_.range();
  if (memory != nullptr) return memory;
  throw KernelError(KernelError::Kind::usage,
                    fmt::format("{} declares more than {} KiB of __shared__ memory; request more "
                                "as dynamic shared memory at the launch",
                                describe(), SharedMemory::kStaticBytes >> 10));
}

}  // namespace towpath::gpu
