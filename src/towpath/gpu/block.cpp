// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/gpu/block.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <stdexcept>
#include <utility>

#include "towpath/gpu/pe.hpp"

namespace towpath::gpu {

namespace {

constexpr std::uint64_t kStaticSharedBytes = 48 << 10;

std::string place_of(const abi::Site& site) {
  if (site.file == nullptr) return "somewhere";
  return fmt::format("{} at {}:{}", site.call, site.file, site.line);
}

void add(Accesses& total, std::uint64_t count, std::uint64_t bytes) {
  total.count += count;
  total.bytes += bytes;
  total.most_of_thread = std::max(total.most_of_thread, count);
}

void add_counters(Work& work, const abi::Counters& counters) {
  add(work.loads, counters.loads, counters.load_bytes);
  add(work.stores, counters.stores, counters.store_bytes);
  add(work.peer_loads, counters.peer_loads, counters.peer_load_bytes);
  add(work.peer_stores, counters.peer_stores, counters.peer_store_bytes);
  work.shared_accesses = std::max(work.shared_accesses, counters.shared_accesses);
}

bool is_zero(const abi::Counters& counters) {
  return (counters.loads | counters.stores | counters.peer_loads | counters.peer_stores |
          counters.shared_accesses) == 0;
}

std::uint64_t bytes_of(const abi::Counters& counters) {
  return counters.load_bytes + counters.store_bytes + counters.peer_load_bytes +
         counters.peer_store_bytes;
}

std::uint32_t lanes(int count) { return count >= 32 ? ~0u : (1u << count) - 1; }

}  // namespace

Block::Block(Pe& pe, Grid& grid, abi::Index3 index, int multiprocessor)
    : pe_(pe),
      grid_(grid),
      index_(index),
      multiprocessor_(multiprocessor),
      threads_(static_cast<std::size_t>(grid.threads_per_block())) {
  const abi::Index3& blocks = grid.launch().configuration.grid;
  lane_ = static_cast<int>(index.x + blocks.x * (index.y + blocks.y * index.z));
  block_group_.size = threads();
  segment_.begin = pe.simulation().now();
  if (pe.is_timed()) {
    history_ = &pe.new_history();
    history_->learn(segment_.begin, pe.past().now());
  }
  segment_.work.threads = threads();
  ready_.reserve(threads_.size());
  for (int thread = 0; thread < threads(); ++thread) {
    ready_.push_back(static_cast<std::uint16_t>(thread));
  }
  start_timeline();
  schedule();
}

Block::~Block() {
  for (const Thread& thread : threads_) pe_.run().stack.forget(thread.stack);
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
    block.pe_.run().failure = std::make_exception_ptr(
        block.pe_.named(fault, fmt::format("thread {} of {}", block.running_, block.describe())));
  } catch (...) {
    block.pe_.run().failure = std::current_exception();
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
  current.stack = {reinterpret_cast<std::uintptr_t>(stack.begin()), ThreadStack::kBytes};
  current.shared = {reinterpret_cast<std::uintptr_t>(shared_memory_.get()), shared_capacity_};
  current.counters = {};
  pe_.forget_quiet_ranges();
  pe_.running_block = this;
  while (next_ready_ < ready_.size() && pe_.run().failure == nullptr) {
    const std::uint16_t thread = ready_[next_ready_++];
    if (next_ready_ + 1 < ready_.size()) threads_[ready_[next_ready_ + 1]].stack.prefetch();
    enter(thread);
    stack.resume(threads_[thread].stack, &run_thread, this);
    fold_counters();
    if (next_ready_ == ready_.size()) flush_fences();
    if (next_ready_ == ready_.size()) flush_thread_fences();
  }
  ready_.clear();
  next_ready_ = 0;
  pe_.running_block = nullptr;
  running_ = -1;
  current.on_device = false;
  current.stack = {0, ~std::uintptr_t{0}};
  is_running_ = false;
  if (timeline_ != nullptr && !pe_.is_timed()) timeline_->end_turn();
  if (pe_.run().failure != nullptr) std::rethrow_exception(pe_.run().failure);
  pe_.notify_stores();
  if (finished_ < threads()) return;
  pe_.simulation().at(
      std::max(pe_.simulation().now(), busy_until()),
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

void Block::woken(int thread, Profile::Words words) {
  if (timeline_ != nullptr) timeline_->woken(words);
  make_ready(thread);
}

void Block::start_timeline() {
  Profile* const profile = pe_.run().profile;
  if (profile == nullptr) return;
  const int stream = profile->stream(pe_.rank(), grid_.launch().configuration.stream);
  const int track = profile->track({.pe = pe_.rank(),
                                    .stream = stream,
                                    .block = lane_,
                                    .is_kernel = !grid_.launch().is_internal});
  timeline_ = std::make_unique<BlockTimeline>(*profile, track, grid_.name());
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
  leave_groups();
}

// --- time ----------------------------------------------------------------------------------------

void Block::fold_counters() {
  abi::Counters& counters = pe_.current().counters;
  if (is_zero(counters)) return;
  if (pe_.is_timed()) {
    if (pe_.simulation().now() > segment_.begin) close_segment();
    add_counters(segment_.work, counters);
    has_stored_ = has_stored_ || counters.stores > 0;
    has_stored_to_peer_ = has_stored_to_peer_ || counters.peer_stores > 0;
  }
  if (timeline_ != nullptr) {
    timeline_->work(bytes_of(counters));
    static_cast<void>(busy_until());
  }
  counters = {};
}

void Block::close_segment() {
  floor_ = busy_until();
  segment_.begin = pe_.simulation().now();
  segment_.work = {.threads = threads()};
}

Time Block::busy_until() {
  if (!pe_.is_timed()) return Time();
  const Time when = std::max(
      floor_, segment_.begin +
                  duration(segment_.work, pe_.device().residency(multiprocessor_), pe_.cost()));
  if (timeline_ != nullptr) timeline_->works_until(when);
  return when;
}

Time Block::thread_time() {
  const Time now = pe_.simulation().now();
  const abi::Counters& counters = pe_.current().counters;
  if (!pe_.is_timed() || is_zero(counters)) return now;
  Work work{.threads = 1};
  add_counters(work, counters);
  return now + duration(work, {}, pe_.cost());
}

void Block::reach(Time when) {
  if (when <= pe_.simulation().now()) return;
  struct Alarm {
    Block* block;
    int thread;
  };
  running().state = Thread::State::waiting;
  pe_.simulation().at(
      when,
      [](void* context) {
        const std::unique_ptr<Alarm> alarm(static_cast<Alarm*>(context));
        alarm->block->make_ready(alarm->thread);
      },
      new Alarm{this, running_});
  suspend_for(Activity::compute, running().site);
}

void Block::sleep(Time duration) {
  if (pe_.is_timed()) reach(thread_time() + duration);
}

// --- groups of threads ---------------------------------------------------------------------------

void Block::refuse_divergence(const Group& group, const abi::Site& site) {
  throw KernelError(
      Hazard::divergent_barrier,
      fmt::format("divergent barrier: threads of {} wait in {} while thread {} of it is in {}; all "
                  "threads of a block must come to the same barrier",
                  describe(), place_of(group.site), running_, place_of(site)));
}

bool Block::arrive(Group& group, const abi::Site& site) {
  if (group.arrived == 0) {
    group.site = site;
    group.sum = 0;
    group.all = true;
    group.any = false;
    group.latest = Time();
  } else if (group.site.line != site.line ||
             (group.site.call != site.call && std::string_view(group.site.call) != site.call)) {
    refuse_divergence(group, site);
  }
  // For the block as a whole, busy_until() knows more.
  const bool is_block = group.mask == 0;
  if (timeline_ != nullptr) timeline_->enter(Activity::sync, site);
  group.latest = std::max(group.latest, is_block ? pe_.simulation().now() : thread_time());
  fold_counters();
  ++group.arrived;
  if (group.mask != 0) group.present |= 1u << (running_ - group.first_thread);
  return group.arrived == group.size;
}

int Block::sync(int reduction, int predicate, const abi::Site& site) {
  Group& group = block_group_;
  group.reduction = reduction;
  const bool is_last = arrive(group, site);
  if (reduction != 0) {
    group.sum += predicate != 0 ? 1 : 0;
    group.all = group.all && predicate != 0;
    group.any = group.any || predicate != 0;
  }
  running().state = Thread::State::in_group;
  if (is_last) complete(group, true);
  suspend(site);
  return static_cast<int>(running().value);
}

// All are there: they go on when the block has done its work so far.
void Block::complete(Group& group, bool is_block) {
  if (group.mask != 0) finish_exchange(group);
  if (is_block && group.reduction != 0) {
    const bool values[] = {false, false, group.all, group.any};
    const auto value = group.reduction == 1 ? static_cast<std::uint64_t>(group.sum)
                                            : std::uint64_t{values[group.reduction]};
    for (Thread& thread : threads_) thread.value = value;
  }
  Time when = group.latest;
  if (is_block && pe_.is_timed()) {
    when = std::max(when, busy_until()) + pe_.cost().barrier;
  }
  if (when <= pe_.simulation().now()) {
    release(group);
    return;
  }
  struct Alarm {
    Block* block;
    Group* group;
  };
  pe_.simulation().at(
      when,
      [](void* context) {
        const std::unique_ptr<Alarm> alarm(static_cast<Alarm*>(context));
        alarm->block->release(*alarm->group);
      },
      new Alarm{this, &group});
}

void Block::release(Group& group) {
  if (timeline_ != nullptr) timeline_->leave(Activity::sync, group.site, group.arrived);
  if (group.mask == 0) {
    group.arrived = 0;
    for (int thread = 0; thread < threads(); ++thread) {
      if (threads_[static_cast<std::size_t>(thread)].state == Thread::State::in_group) {
        make_ready(thread);
      }
    }
    return;
  }
  const Group released = group;
  warp_groups_.remove_if([&](const Group& each) { return &each == &group; });
  for (int lane = 0; lane < abi::kWarpThreads; ++lane) {
    if ((released.present >> lane & 1) != 0) make_ready(released.first_thread + lane);
  }
}

// A thread that ends counts as there, as on a GPU.
void Block::leave_groups() {
  Group& group = block_group_;
  group.size = threads() - finished_;
  if (group.arrived > 0 && group.arrived == group.size) complete(group, true);
  const int warp = running_ / abi::kWarpThreads * abi::kWarpThreads;
  for (Group& each : warp_groups_) {
    if (each.first_thread != warp || (each.mask >> (running_ - warp) & 1) == 0) continue;
    if (--each.size == each.arrived) {
      complete(each, false);
      return;
    }
  }
}

Group& Block::warp_group(std::uint32_t mask, const abi::Site& site) {
  const int first = running_ / abi::kWarpThreads * abi::kWarpThreads;
  const int lane = running_ - first;
  mask &= lanes(threads() - first);
  if ((mask >> lane & 1) == 0) {
    throw KernelError(KernelError::Kind::usage,
                      fmt::format("thread {} of {} is not in the mask {:#x} of its own {}",
                                  running_, describe(), mask, place_of(site)));
  }
  for (Group& group : warp_groups_) {
    if (group.first_thread == first && group.mask == mask && (group.present >> lane & 1) == 0) {
      return group;
    }
  }
  Group& group = warp_groups_.emplace_back();
  group.mask = mask;
  group.first_thread = first;
  for (int i = 0; i < abi::kWarpThreads; ++i) {
    if ((mask >> i & 1) == 0) continue;
    const auto thread = static_cast<std::size_t>(first + i);
    if (threads_[thread].state != Thread::State::finished) ++group.size;
  }
  return group;
}

std::uint64_t Block::exchange(const ExchangeRequest& request, const abi::Site& site) {
  Group& group = warp_group(request.mask, site);
  group.exchange = request.kind;
  group.width = request.width;
  Thread& thread = running();
  thread.value = request.value;
  thread.operand = request.operand;
  const bool is_last = arrive(group, site);
  thread.state = Thread::State::in_group;
  if (is_last) complete(group, false);
  suspend(site);
  return running().value;
}

void Block::sync_warp(std::uint32_t mask, const abi::Site& site) {
  static_cast<void>(exchange({.kind = abi::Exchange::ballot, .mask = mask}, site));
}

namespace {

// The lanes that are there and have this value, as bits.
std::uint64_t lanes_with(const std::array<std::uint64_t, abi::kWarpThreads>& values,
                         std::uint32_t present, std::uint64_t value) {
  std::uint64_t found = 0;
  for (std::size_t lane = 0; lane < values.size(); ++lane) {
    if ((present >> lane & 1) != 0 && values[lane] == value) found |= std::uint64_t{1} << lane;
  }
  return found;
}

// The lane whose value a shuffle gives to `lane`.
int source_lane(abi::Exchange kind, int lane, int operand, int width) {
  const int begin = lane / width * width;
  int source = lane;
  switch (kind) {
    case abi::Exchange::index: return begin + (operand % width + width) % width;
    case abi::Exchange::up: source = lane - operand; break;
    case abi::Exchange::down: source = lane + operand; break;
    case abi::Exchange::exclusive_or: source = lane ^ operand; break;
    default: break;
  }
  return source < begin || source >= begin + width ? lane : source;
}

}  // namespace

void Block::finish_exchange(Group& group) {
  std::array<std::uint64_t, abi::kWarpThreads> values{};
  const auto thread_of = [&](int lane) -> Thread& {
    return threads_[static_cast<std::size_t>(group.first_thread + lane)];
  };
  const auto is_there = [&](int lane) { return (group.present >> lane & 1) != 0; };
  std::uint64_t ballot = 0;
  for (int lane = 0; lane < abi::kWarpThreads; ++lane) {
    if (!is_there(lane)) continue;
    const std::uint64_t value = thread_of(lane).value;
    values[static_cast<std::size_t>(lane)] = value;
    if (value != 0) ballot |= std::uint64_t{1} << lane;
  }
  for (int lane = 0; lane < abi::kWarpThreads; ++lane) {
    if (!is_there(lane)) continue;
    Thread& thread = thread_of(lane);
    switch (group.exchange) {
      case abi::Exchange::ballot: thread.value = ballot; break;
      case abi::Exchange::all: thread.value = ballot == group.present ? 1 : 0; break;
      case abi::Exchange::any: thread.value = ballot != 0 ? 1 : 0; break;
      case abi::Exchange::match_any:
        thread.value = lanes_with(values, group.present, thread.value);
        break;
      default: {
        const int from = source_lane(group.exchange, lane, thread.operand, group.width);
        if (is_there(from)) thread.value = values[static_cast<std::size_t>(from)];
      }
    }
  }
}

void Block::sync_grid(const abi::Site& site) {
  sync(0, 0, site);
  if (running_ == 0) {
    running().state = Thread::State::waiting;
    running().site = site;
    pe_.device().arrive_at_grid_barrier(grid_);
    suspend_for(Activity::sync, site);
  }
  sync(0, 0, site);
}

void Block::release_grid_barrier(Moment all) {
  if (history_ != nullptr) history_->learn(pe_.simulation().now(), all);
  make_ready(0);
}

void Block::learn_everything() {
  if (history_ != nullptr) history_->learn_everything(pe_.simulation().now());
}

void Block::hand_on() {
  if (history_ != nullptr) pe_.past().learn(pe_.simulation().now(), history_->now());
}

// --- shared memory -------------------------------------------------------------------------------

void Block::allocate_shared() {
  if (shared_memory_ != nullptr) return;
  const std::uint64_t dynamic = grid_.launch().configuration.shared_bytes;
  shared_capacity_ = kStaticSharedBytes + dynamic + 2 * alignof(std::max_align_t) + 128;
  shared_memory_.reset(new std::byte[shared_capacity_]);
  shared_used_ = (128 - reinterpret_cast<std::uintptr_t>(shared_memory_.get()) % 128) % 128;
  slots_.push_back({nullptr, shared_used_});
  shared_used_ += (dynamic + 127) / 128 * 128;
  pe_.current().shared = {reinterpret_cast<std::uintptr_t>(shared_memory_.get()), shared_capacity_};
}

void* Block::dynamic_shared() {
  allocate_shared();
  return shared_memory_.get() + slots_.front().offset;
}

void* Block::shared(const void* key, std::uint64_t size_bytes, std::uint64_t alignment) {
  allocate_shared();
  for (const Slot& slot : slots_) {
    if (slot.key == key) return shared_memory_.get() + slot.offset;
  }
  const auto base = reinterpret_cast<std::uintptr_t>(shared_memory_.get());
  const std::uint64_t offset = (base + shared_used_ + alignment - 1) / alignment * alignment - base;
  if (offset + size_bytes > shared_capacity_) {
    throw KernelError(KernelError::Kind::usage,
                      fmt::format("{} declares more than {} KiB of __shared__ memory; ask for more "
                                  "as dynamic shared memory at the launch",
                                  describe(), kStaticSharedBytes >> 10));
  }
  slots_.push_back({key, offset});
  shared_used_ = offset + size_bytes;
  return shared_memory_.get() + offset;
}

}  // namespace towpath::gpu
