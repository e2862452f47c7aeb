// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/virtual_gpu/device/thread_block.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <sstream>
#include <utility>

#include "towpath/virtual_gpu/device/library.hpp"
#include "towpath/virtual_gpu/device/stop.hpp"
#include "towpath_gpu_launch.h"

__thread towpath_gpu::Current towpath_gpu_current;

namespace towpath::virtual_gpu {
namespace {

constexpr std::uint64_t kSharedAlignment = 1024;  // 32-bit addresses count from a multiple of it
// A library that is loaded while a kernel runs may add this much to the __shared__ variables.
constexpr std::uint64_t kSharedRoom = 16 << 10;
// A block whose threads always have something to do gives the turn to the next one after this.
constexpr int kTurnsPerThread = 64;

constexpr std::size_t kLineBytes = 64;
// The part of a stack that a thread uses after it has waited. Not measured: the frames down to a
// barrier.
constexpr std::size_t kStackBytesUsed = 512;
// The state and the stack of a thread are loaded this many turns before it runs. They are seldom in
// a cache, because each thread of a block runs only briefly.
constexpr std::size_t kTurnsBeforeState = 4, kTurnsBeforeStack = 2;

// Without a call for its address, which each call of a running thread would make.
[[gnu::tls_model("initial-exec")]] thread_local ThreadBlock* block_of_thread = nullptr;

abi::Index3 index_in(std::uint64_t number, const abi::Index3& size) {
  return {static_cast<unsigned>(number % size.x), static_cast<unsigned>(number / size.x % size.y),
          static_cast<unsigned>(number / size.x / size.y)};
}

bool equals(const abi::Poll& poll) {
  std::uint64_t low = 0, high = 0;
  const auto* const address =
      const_cast<const char*>(static_cast<const volatile char*>(poll.address));
  switch (poll.size_bytes) {
    case 16: std::memcpy(&high, address + 8, 8); [[fallthrough]];
    case 8: std::memcpy(&low, address, 8); break;
    case 4: std::memcpy(&low, address, 4); break;
    default: std::memcpy(&low, address, poll.size_bytes);
  }
  return low == poll.low && high == poll.high;
}

void prefetch(const void* begin, std::size_t size_bytes) {
  const auto* const bytes = static_cast<const char*>(begin);
  for (std::size_t i = 0; i < size_bytes; i += kLineBytes) __builtin_prefetch(bytes + i, 1);
}

// Apart from their caller, because the strings would take a part of each stack.
[[noreturn, gnu::noinline]] void stop_at_barrier(unsigned id) {
  stop("a kernel uses barrier " + std::to_string(id) + " of 16");
}
[[noreturn, gnu::noinline]] void stop_at_sizes(const ThreadBlock& block, unsigned id, int size,
                                               int other) {
  stop(block.describe() + ": threads meet in barrier " + std::to_string(id) + " for " +
       std::to_string(size) + " and for " + std::to_string(other) + " threads");
}

}  // namespace

ThreadBlock& running_block() { return *block_of_thread; }

ThreadBlock::ThreadBlock(Grid& grid, std::uint64_t number, Stacks& stacks)
    : grid_(grid), number_(number), stacks_(stacks) {
  const abi::Configuration& configuration = grid.launch.configuration;
  const abi::Index3& size = configuration.block;
  count_ = static_cast<int>(size.x * size.y * size.z);
  threads_.resize(static_cast<std::size_t>(count_));
  ready_.resize(static_cast<std::size_t>(count_));
  const int warps = (count_ + abi::kWarpThreads - 1) / abi::kWarpThreads;
  alive_.resize(static_cast<std::size_t>(warps));
  spinning_.resize(static_cast<std::size_t>(warps));
  for (int i = 0; i < count_; ++i) {
    thread(i).index = index_in(static_cast<std::uint64_t>(i), size);
    alive_[static_cast<std::size_t>(i / abi::kWarpThreads)] |= 1U << (i % abi::kWarpThreads);
    make_ready(i);
  }
  static_bytes_ = (static_shared_bytes() / kSharedRoom + 2) * kSharedRoom;
  shared_bytes_ = static_bytes_ + configuration.shared_bytes;
  shared_.reset(new std::byte[shared_bytes_ + kSharedAlignment]);
}

ThreadBlock::~ThreadBlock() = default;

std::string ThreadBlock::describe() const {
  return "block " + std::to_string(number_) + " of " + grid_.launch.name + " on GPU " +
         std::to_string(grid_.device);
}

bool ThreadBlock::explain_full_stack(std::uintptr_t stack_pointer, char* text,
                                     std::size_t size) const {
  const auto is_full = [](const DeviceThread& one) {
    return one.stack != nullptr && !Stacks::is_intact(one.stack);
  };
  const DeviceThread& self = threads_[static_cast<std::size_t>(running())];
  auto found = std::find_if(threads_.begin(), threads_.end(), is_full);
  const std::uintptr_t lowest = reinterpret_cast<std::uintptr_t>(self.stack);
  if (stack_pointer - lowest >= Stacks::kBytes || is_full(self)) {
    found = threads_.begin() + running();
  }
  if (found == threads_.end()) return false;
  std::snprintf(
      text, size, "thread %d of block %llu of %s on GPU %d uses more than the %zu KiB of its stack",
      static_cast<int>(found - threads_.begin()), static_cast<unsigned long long>(number_),
      grid_.launch.name, grid_.device, Stacks::kBytes >> 10);
  return true;
}

void ThreadBlock::check_stack() const {
  char text[256];
  const auto stack_pointer = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
  if (explain_full_stack(stack_pointer, text, sizeof text)) stop(text);
}

std::string ThreadBlock::reason_of_library(const abi::Polls& polls) {
  if (library().explain_poll == nullptr || !is_of_library(grid_.launch.name)) return {};
  show_memory();
  for (const abi::Poll& poll : polls.last) {
    char text[512] = {};
    if (poll.address == nullptr || poll.round + 1 < polls.round) continue;
    if (library().explain_poll(const_cast<const void*>(poll.address), text, sizeof text)) {
      return std::string(text) + "; ";
    }
  }
  return {};
}

std::string ThreadBlock::waiting() {
  ThreadSet all = polling_;
  for (int number = 0; number < count_; ++number) {
    const std::uint32_t lanes = spinning_[static_cast<std::size_t>(number / abi::kWarpThreads)];
    if ((lanes >> (number % abi::kWarpThreads) & 1) != 0) all.add(number);
  }
  int polling = 0;
  std::string reason;
  all.for_each([&](int number) {
    ++polling;
    if (reason.empty()) reason = reason_of_library(thread(number).polls);
  });
  std::ostringstream text;
  text << reason;
  if (polling > 0) text << polling << " threads poll, ";
  for (std::size_t id = 0; id < barriers_.size(); ++id) {
    const Barrier& barrier = barriers_[id];
    if (barrier.arrived == 0) continue;
    const int size = barrier.size == 0 ? count_ - ended_ : barrier.size;
    text << "barrier " << id << " has " << barrier.arrived << " of " << size << ", ";
  }
  for (const Meeting& meeting : meetings_) {
    text << "warp " << meeting.warp << " has lanes " << std::hex << meeting.present << " of "
         << meeting.mask << std::dec << " in a vote, ";
  }
  text << ended_ << " of " << count_ << " threads have ended";
  return text.str();
}

int ThreadBlock::running() const { return static_cast<int>(towpath_gpu_current.linear); }

// --- threads run --------------------------------------------------------------------------------

void ThreadBlock::make_ready(int number) {
  const std::size_t place = ready_begin_ + ready_count_++;
  ready_[place < ready_.size() ? place : place - ready_.size()] =
      static_cast<std::uint16_t>(number);
}

int ThreadBlock::next_ready() {
  if (ready_count_ == 0 || turns_left_ == 0) return -1;
  --turns_left_;
  const int number = ready_[ready_begin_];
  ready_begin_ = ready_begin_ + 1 == ready_.size() ? 0 : ready_begin_ + 1;
  --ready_count_;
  if (ready_count_ == 0) return number;
  const auto later = [this](std::size_t turns) -> const DeviceThread& {
    const std::size_t place = ready_begin_ + std::min(turns, ready_count_ - 1);
    return threads_[ready_[place < ready_.size() ? place : place - ready_.size()]];
  };
  prefetch(&later(kTurnsBeforeState), sizeof(DeviceThread));
  prefetch(later(kTurnsBeforeStack).context, kStackBytesUsed);
  return number;
}

void ThreadBlock::enter(int number) {
  DeviceThread& next = thread(number);
  towpath_gpu_current.thread = next.index;
  towpath_gpu_current.linear = static_cast<unsigned>(number);
  towpath_gpu_current.polls = &next.polls;
}

// The block's shared memory becomes the current one.
void ThreadBlock::show_memory() {
  abi::Current& current = towpath_gpu_current;
  const auto begin = reinterpret_cast<std::uintptr_t>(shared_.get());
  current.shared.begin = (begin + kSharedAlignment - 1) / kSharedAlignment * kSharedAlignment;
  current.shared.size = shared_bytes_;
  current.dynamic_shared = reinterpret_cast<void*>(current.shared.begin + static_bytes_);
  if (static_shared_bytes() > static_bytes_) {
    stop(describe() + " has room for " + std::to_string(static_bytes_) +
         " bytes of __shared__ variables, but a library that was loaded since it began has more; "
         "load the library before");
  }
}

void ThreadBlock::run() {
  const abi::Configuration& configuration = grid_.launch.configuration;
  abi::Current& current = towpath_gpu_current;
  show_memory();
  current.block = index_in(number_, configuration.grid);
  current.block_dim = configuration.block;
  current.grid_dim = configuration.grid;
  current.on_device = true;
  block_of_thread = this;
  turns_left_ = kTurnsPerThread * count_;
  const int first = next_ready();
  if (first >= 0) {
    prepare(first);
    enter(first);
    towpath_change_stack(&worker_, thread(first).context);
  }
  block_of_thread = nullptr;
  current.on_device = false;
}

// Threads that end without waiting run one after the other on one stack.
void ThreadBlock::thread_body() {
  ThreadBlock& block = *block_of_thread;
  for (;;) {
    block.grid_.launch.run(block.grid_.launch.closure);
    const int ended = block.running();
    if (!Stacks::is_intact(block.thread(ended).stack)) block.check_stack();
    block.note_end();
    const int next = block.next_ready();
    if (next < 0 || block.thread(next).stack != nullptr) block.leave_stack(next);
    block.thread(next).stack = std::exchange(block.thread(ended).stack, nullptr);
    block.enter(next);
  }
}

void ThreadBlock::note_end() {
  const int number = running();
  const int warp = number / abi::kWarpThreads;
  alive_[static_cast<std::size_t>(warp)] &= ~(1U << (number % abi::kWarpThreads));
  ++ended_;
  for (Barrier& barrier : barriers_) {
    if (barrier.arrived > 0 && barrier.size == 0) complete_if_full(barrier);
  }
  for (Meeting& meeting : meetings_) {
    if (meeting.warp != warp || !is_full(meeting)) continue;
    complete(meeting);
    break;
  }
}

// A thread that has ended gives its stack back, which nothing takes before the next one runs.
void ThreadBlock::leave_stack(int next) {
  DeviceThread& self = thread(running());
  stacks_.give_back(std::exchange(self.stack, nullptr));
  if (next >= 0) enter(next);
  towpath_change_stack(&self.context, next >= 0 ? thread(next).context : worker_);
  __builtin_unreachable();
}

void ThreadBlock::end_thread() {
  if (!Stacks::is_intact(thread(running()).stack)) check_stack();
  note_end();
  const int next = next_ready();
  if (next >= 0) prepare(next);
  leave_stack(next);
}

// A thread that runs for the first time gets a stack.
void ThreadBlock::prepare(int number) {
  DeviceThread& next = thread(number);
  if (next.stack != nullptr) return;
  next.stack = stacks_.take();
  next.context = first_context(next.stack, &thread_body);
}

void ThreadBlock::suspend() {
  DeviceThread& self = thread(running());
  if (static_cast<std::byte*>(__builtin_frame_address(0)) < self.stack) check_stack();
  const int next = next_ready();
  if (next < 0) {
    towpath_change_stack(&self.context, worker_);
    return;
  }
  DeviceThread& other = thread(next);
  if (&other == &self) return;
  prepare(next);
  enter(next);
  towpath_change_stack(&self.context, other.context);
}

void ThreadBlock::yield() {
  make_ready(running());
  turns_left_ = std::min(turns_left_, static_cast<int>(ready_count_) - 1);
  suspend();
}

// --- polls --------------------------------------------------------------------------------------

bool ThreadBlock::has_changed(const DeviceThread& one) const {
  return std::any_of(std::begin(one.polls.last), std::end(one.polls.last), [&](const auto& poll) {
    return poll.address != nullptr && poll.round == one.polls.round && !equals(poll);
  });
}

void ThreadBlock::continue_polling(int number) {
  ++thread(number).polls.round;
  make_ready(number);
}

void ThreadBlock::wait_for_change() {
  polling_.add(running());
  suspend();
}

bool ThreadBlock::wake_changed() {
  const std::size_t before = ready_count_;
  polling_.for_each([&](int number) {
    if (!has_changed(thread(number))) return;
    polling_.remove(number);
    continue_polling(number);
  });
  for (std::size_t warp = 0; warp < spinning_.size(); ++warp) {
    const int first = static_cast<int>(warp) * abi::kWarpThreads;
    bool found = false;
    for (std::uint32_t left = spinning_[warp]; left != 0 && !found; left &= left - 1) {
      found = has_changed(thread(first + std::countr_zero(left)));
    }
    if (!found) continue;
    for (std::uint32_t left = spinning_[warp]; left != 0; left &= left - 1) {
      continue_polling(first + std::countr_zero(left));
    }
    spinning_[warp] = 0;
  }
  return ready_count_ > before;
}

void ThreadBlock::wake_all() {
  polling_.for_each([&](int number) { continue_polling(number); });
  polling_.clear();
  for (std::size_t warp = 0; warp < spinning_.size(); ++warp) {
    const int first = static_cast<int>(warp) * abi::kWarpThreads;
    for (std::uint32_t left = spinning_[warp]; left != 0; left &= left - 1) {
      continue_polling(first + std::countr_zero(left));
    }
    spinning_[warp] = 0;
  }
}

// True if the lanes have only polled since their last vote, and found the earlier values.
bool ThreadBlock::spins(int warp, std::uint32_t mask) {
  const int first = warp * abi::kWarpThreads;
  bool has_repeated = false;
  bool has_new = false;
  for (std::uint32_t left = mask; left != 0; left &= left - 1) {
    abi::Polls& polls = thread(first + std::countr_zero(left)).polls;
    has_new = has_new || polls.has_new;
    has_repeated = has_repeated || polls.has_repeated;
    polls.has_new = polls.has_repeated = false;
  }
  return has_repeated && !has_new;
}

// --- barriers -----------------------------------------------------------------------------------

int ThreadBlock::sync_named(unsigned id, unsigned threads, abi::NamedBarrier action, int vote) {
  if (id >= barriers_.size()) stop_at_barrier(id);
  Barrier& barrier = barriers_[id];
  const int size = static_cast<int>(threads) == count_ ? 0 : static_cast<int>(threads);
  if (barrier.arrived > 0 && barrier.size != size) {
    stop_at_sizes(*this, id, barrier.size == 0 ? count_ : barrier.size, size == 0 ? count_ : size);
  }
  barrier.size = size;
  ++barrier.arrived;
  if (vote != 0) ++barrier.votes;
  const int number = running();
  if (action == abi::NamedBarrier::arrive) {
    complete_if_full(barrier);
    return 0;
  }
  DeviceThread& self = thread(number);
  self.operand = static_cast<int>(action);
  barrier.has_result = barrier.has_result || action != abi::NamedBarrier::sync;
  barrier.waiting.add(number);
  complete_if_full(barrier);
  suspend();
  self.polls.has_new = true;
  ++self.polls.round;
  return static_cast<int>(self.value);
}

void ThreadBlock::complete_if_full(Barrier& barrier) {
  const int size = barrier.size == 0 ? count_ - ended_ : barrier.size;
  if (barrier.arrived < size) return;
  barrier.waiting.for_each([&](int number) {
    make_ready(number);
    // The state of the thread is seldom in a cache.
    if (!barrier.has_result) return;
    DeviceThread& one = thread(number);
    switch (static_cast<abi::NamedBarrier>(one.operand)) {
      case abi::NamedBarrier::vote_and: one.value = barrier.votes == barrier.arrived ? 1 : 0; break;
      case abi::NamedBarrier::vote_or: one.value = barrier.votes > 0 ? 1 : 0; break;
      default: one.value = static_cast<std::uint64_t>(barrier.votes);
    }
  });
  barrier = {};
}

// --- votes and shuffles -------------------------------------------------------------------------

ThreadBlock::Meeting& ThreadBlock::meeting_of(std::uint32_t mask, abi::Exchange kind, int width) {
  const int warp = running() / abi::kWarpThreads;
  const std::uint32_t lane = 1U << (running() % abi::kWarpThreads);
  for (Meeting& meeting : meetings_) {
    if (meeting.warp == warp && meeting.mask == mask && (meeting.present & lane) == 0) {
      return meeting;
    }
  }
  meetings_.push_back({warp, mask, 0, kind, width});
  return meetings_.back();
}

bool ThreadBlock::is_full(const Meeting& meeting) const {
  return meeting.present == (meeting.mask & alive_[static_cast<std::size_t>(meeting.warp)]);
}

std::uint64_t ThreadBlock::exchange(abi::Exchange kind, std::uint32_t mask, std::uint64_t value,
                                    int operand, int width) {
  const int number = running();
  DeviceThread& self = thread(number);
  Meeting& meeting = meeting_of(mask, kind, width);
  self.value = value;
  self.operand = operand;
  meeting.kind = kind;
  meeting.width = width;
  meeting.present |= 1U << (number % abi::kWarpThreads);
  if (is_full(meeting)) complete(meeting);
  suspend();
  return self.value;
}

namespace {

using Values = std::array<std::uint64_t, abi::kWarpThreads>;

struct LaneRequest {
  int lane, operand, width;
};

// The lane from which a lane gets its value in a shuffle.
int source_lane(abi::Exchange kind, const LaneRequest& request) {
  const int first = request.lane / request.width * request.width;
  int from = request.lane;
  switch (kind) {
    case abi::Exchange::index: return first + (request.operand & (request.width - 1));
    case abi::Exchange::up: from -= request.operand; break;
    case abi::Exchange::down: from += request.operand; break;
    default: from ^= request.operand;
  }
  return from < first || from >= first + request.width ? request.lane : from;
}

// The lanes whose values fulfill a condition.
template <typename Condition>
std::uint32_t lanes_where(std::uint32_t present, const Values& values, Condition condition) {
  std::uint32_t lanes = 0;
  for (std::uint32_t left = present; left != 0; left &= left - 1) {
    const int lane = std::countr_zero(left);
    if (condition(values[static_cast<std::size_t>(lane)])) lanes |= 1U << lane;
  }
  return lanes;
}

std::uint64_t result_of(abi::Exchange kind, std::uint32_t present, const Values& values,
                        const LaneRequest& request) {
  const std::uint64_t own = values[static_cast<std::size_t>(request.lane)];
  const auto ballot = [&] { return lanes_where(present, values, [](auto v) { return v != 0; }); };
  const auto equal = [&] { return lanes_where(present, values, [&](auto v) { return v == own; }); };
  switch (kind) {
    case abi::Exchange::ballot: return ballot();
    case abi::Exchange::all: return ballot() == present ? 1 : 0;
    case abi::Exchange::any: return ballot() != 0 ? 1 : 0;
    case abi::Exchange::match_any: return equal();
    case abi::Exchange::match_all: return equal() == present ? present : 0;
    default: {
      const int from = source_lane(kind, request);
      return (present >> from & 1) != 0 ? values[static_cast<std::size_t>(from)] : own;
    }
  }
}

}  // namespace

void ThreadBlock::complete(Meeting& meeting) {
  const Meeting met = meeting;
  meeting = meetings_.back();
  meetings_.pop_back();
  const int first = met.warp * abi::kWarpThreads;
  std::array<std::uint64_t, abi::kWarpThreads> values{};
  for (std::uint32_t left = met.present; left != 0; left &= left - 1) {
    const int lane = std::countr_zero(left);
    values[static_cast<std::size_t>(lane)] = thread(first + lane).value;
  }
  const bool has_to_wait = spins(met.warp, met.present);
  for (std::uint32_t left = met.present; left != 0; left &= left - 1) {
    const int lane = std::countr_zero(left);
    DeviceThread& one = thread(first + lane);
    one.value = result_of(met.kind, met.present, values, {lane, one.operand, met.width});
    if (has_to_wait) continue;
    ++one.polls.round;
    make_ready(first + lane);
  }
  if (has_to_wait) spinning_[static_cast<std::size_t>(met.warp)] |= met.present;
}

}  // namespace towpath::virtual_gpu
