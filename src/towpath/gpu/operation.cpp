// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/gpu/operation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

#include "towpath/gpu/device.hpp"
#include "towpath/gpu/pe.hpp"

namespace towpath::gpu {

// --- transfers --------------------------------------------------------------------------------

Operation::Operation(Pe& from, Block& by, const abi::Access& what, const abi::Site& where)
    : pe(from), block(&by), call(what), site(where) {
  pe.check_remote(call, by, site);
  pe.check_local(call, by, site);
  access.kind = static_cast<transport::AccessKind>(call.kind);
  access.peer = call.peer;
  if (call.size_bytes > 0) access.remote = pe.offset_of(call.remote);
  access.local = static_cast<std::byte*>(call.local);
  access.size_bytes = call.size_bytes;
  const int scopes[] = {1, abi::kWarpThreads, by.threads()};
  access.issuer.threads = std::min(scopes[static_cast<int>(call.scope)], by.threads());
  access.issuer.lane = by.lane();
  if (pe.is_timed()) {
    const Residency residency = pe.device().residency(by.multiprocessor());
    const std::int64_t share =
        pe.cost().multiprocessor_rate.bytes_per_second() / residency.blocks_on_multiprocessor;
    access.issuer.rate_max = Rate::from_bytes_per_second(share);
  }
  access.has_signal = call.signal != abi::Signal::none;
  if (access.has_signal) {
    access.signal_at = pe.offset_of(call.signal_at);
    access.signal_value = call.signal_value;
    access.signal_operation = call.signal == abi::Signal::add ? transport::SignalOperation::add
                                                              : transport::SignalOperation::set;
  }
  access.operation = static_cast<transport::AtomicOperation>(call.operation);
  access.operand = call.operand;
  access.expected = call.expected;
  access.fetches = call.fetches;

  const bool is_on_stack = pe.run().stack.contains(call.local);
  const bool is_shared = pe.current().shared.contains(reinterpret_cast<std::uintptr_t>(call.local));
  if (call.kind != abi::AccessKind::atomic && (is_on_stack || is_shared)) {
    bytes.resize(call.size_bytes);
    if (call.kind == abi::AccessKind::put && call.size_bytes > 0) {
      std::memcpy(bytes.data(), call.local, call.size_bytes);
    }
    access.local = bytes.data();
  }
  if (call.kind == abi::AccessKind::get || call.fetches) {
    is_visible = true;  // nothing is stored
  } else {
    number = first_number = pe.started_operation();
  }
  if (by.history() != nullptr) sender = by.history()->now();
}

// A get to memory that does not stay is awaited even where it need not be.
bool Operation::is_detached() const {
  if (!call.is_nonblocking || !pe.is_timed()) return false;
  if (call.kind == abi::AccessKind::get) return bytes.empty();
  return !pe.transport().is_addressable(call.peer);
}

// The library's own kernels know what they do.
void Operation::monitor_start() {
  is_monitored = pe.is_timed() && call.kind == abi::AccessKind::put && call.size_bytes > 0 &&
                 call.peer != pe.rank() && block != nullptr && !block->grid().launch().is_internal;
  if (!is_monitored) return;
  const std::string what = describe();
  const auto local = reinterpret_cast<std::uintptr_t>(access.local);
  const TransferIdentity identity = this->identity();
  if (bytes.empty()) {
    pe.check_sent(local, call.size_bytes, *block, what);
    pe.monitor().sources.add(local, call.size_bytes, {.identity = identity, .what = what});
    pe.forget_quiet_ranges();
  }
  Pe& peer = *pe.run().pes[static_cast<std::size_t>(call.peer)];
  const auto target = reinterpret_cast<std::uintptr_t>(peer.transport().data(access.remote));
  peer.monitor().incoming.add(target, call.size_bytes, {.identity = identity, .what = what});
  peer.signal_words().note_plain(access.remote, call.size_bytes);
}

std::string Operation::describe() const {
  return fmt::format("{} at {}:{} by {}", site.call, site.file, site.line, block->describe());
}

TransferIdentity Operation::identity() const {
  return {pe.rank(), first_number, call.peer, pe.simulation().now(), sender};
}

void Operation::start_signal() {
  if (!pe.is_timed() || block == nullptr) return;
  Pe& peer = *pe.run().pes[static_cast<std::size_t>(call.peer)];
  if (call.kind == abi::AccessKind::atomic) peer.signal_words().note_plain(access.remote, 8);
  if (!access.has_signal) return;
  SignalWord& word = peer.signal_words().at(access.signal_at);
  signal = &peer.signal_words().new_signal();
  *signal = {.sender = sender,
             .payload = identity(),
             .lane = block->lane(),
             .value = call.signal_value,
             .is_set = call.signal == abi::Signal::set};
  if (signal->is_set && call.peer != pe.rank()) {
    signal->what = describe();
    pe.check_signal(word, *signal, *block);
  }
}

Activity Operation::activity() const {
  if (call.kind == abi::AccessKind::get) return Activity::get;
  if (call.kind == abi::AccessKind::atomic) return Activity::atomic;
  return call.size_bytes == 0 ? Activity::signal : Activity::put;
}

void Operation::start_profile() {
  if (block == nullptr || block->timeline() == nullptr) return;
  profile = pe.run().profile;
  BlockTimeline& timeline = *block->timeline();
  timeline.enter(activity(), site, call.peer, call.size_bytes);
  const bool stores = call.kind != abi::AccessKind::get;
  Profile::Transfer started{.activity = timeline.activity_at(activity(), site),
                            .peer = call.peer,
                            .size_bytes = call.size_bytes};
  if (stores) started.target = {access.remote, call.size_bytes};
  if (access.has_signal) started.signal = {access.signal_at, sizeof(std::uint64_t)};
  transfer = timeline.start(started, site);
}

void Operation::landed() {
  if (profile != nullptr) profile->transfer_landed(transfer);
  if (signal != nullptr) signal_landed();
}

void Operation::signal_landed() {
  const Pe& peer = *pe.run().pes[static_cast<std::size_t>(call.peer)];
  SignalWord& word =
      pe.run().pes[static_cast<std::size_t>(call.peer)]->signal_words().at(access.signal_at);
  signal->landed = pe.simulation().now();
  std::memcpy(&word.value, peer.transport().data(access.signal_at), sizeof(word.value));
  word.landed.push_back(signal);
}

void Operation::start() {
  monitor_start();
  start_signal();
  start_profile();
  access.context = this;
  if (signal != nullptr || profile != nullptr) {
    access.landed = [](transport::Access& landed) {
      static_cast<Operation*>(landed.context)->landed();
    };
  }
  access.done = [](transport::Access& ended) {
    auto& operation = *static_cast<Operation*>(ended.context);
    operation.is_done = true;
    // What returns at once says so by quiet() alone.
    if (operation.is_monitored && !operation.call.is_nonblocking) {
      operation.pe.monitor().sources.remove(
          reinterpret_cast<std::uintptr_t>(operation.access.local), operation.call.size_bytes,
          operation.first_number);
    }
    operation.finish_profile();
    operation.release_threads();
    operation.finish();
  };
  if (!is_visible) {
    access.visible = [](transport::Access& ended) {
      auto& operation = *static_cast<Operation*>(ended.context);
      operation.is_visible = true;
      operation.finish();
    };
  }
  const bool detaches = is_detached();
  pe.remote_memory().start(access);
  if (detaches) release_threads();
}

// Where nothing says when bytes are there, they are as soon as the call is over.
void Operation::finish_profile() {
  if (profile == nullptr) return;
  const bool is_told = pe.is_timed() && call.kind != abi::AccessKind::get;
  if (!is_told) profile->transfer_landed(transfer);
}

void Operation::release_threads() {
  if (block == nullptr) return;
  Block& waiting = *std::exchange(block, nullptr);
  if (profile != nullptr) {
    profile->transfer_done(transfer);
    waiting.timeline()->leave(activity(), site);
  }
  if (group != nullptr) {
    waiting.release(*group);
  } else if (thread >= 0) {
    waiting.make_ready(thread);
  }
}

void Operation::finish() {
  if (is_visible && number != 0) pe.operation_visible(std::exchange(number, 0));
  if (is_done && is_visible && !is_held) delete this;
}

void Block::access(abi::Access& call, const abi::Site& site) {
  if (call.scope != abi::Scope::thread) {
    Group& group = call.scope == abi::Scope::block ? block_group_ : warp_group(~0u, site);
    const bool is_last = arrive(group, site);
    running().state = Thread::State::in_group;
    if (is_last) start_group_access(group, call, site);
    suspend(site);
    return;
  }
  running().site = site;
  reach(thread_time());
  auto* const operation = new Operation(pe_, *this, call, site);
  operation->is_held = true;
  operation->start();
  if (operation->block != nullptr) {
    operation->thread = running_;
    running().state = Thread::State::waiting;
    suspend(site);
  }
  if (operation->is_done) {
    call.result = operation->access.result;
    if (call.kind == abi::AccessKind::get || call.fetches) learn_everything();
    if (call.kind == abi::AccessKind::get && !operation->bytes.empty()) {
      std::memcpy(call.local, operation->bytes.data(), call.size_bytes);
    }
  }
  operation->is_held = false;
  if (operation->is_done && operation->is_visible) delete operation;
}

void Block::start_group_access(Group& group, const abi::Access& call, const abi::Site& site) {
  auto* const operation = new Operation(pe_, *this, call, site);
  operation->group = &group;
  Time when = group.latest;
  if (call.scope == abi::Scope::block) when = std::max(when, busy_until());
  if (when <= pe_.simulation().now()) {
    operation->start();
    return;
  }
  pe_.simulation().at(
      when, [](void* context) { static_cast<Operation*>(context)->start(); }, operation);
}

// --- fences -------------------------------------------------------------------------------------

void Block::fence(bool is_quiet, const abi::Site& site) {
  if (!pe_.is_timed()) {
    pe_.transport().fence();
    return;
  }
  fencing_from_ = std::max(fencing_from_, thread_time());
  fencing_is_quiet_ = fencing_is_quiet_ || is_quiet;
  fencing_.push_back(static_cast<std::uint16_t>(running_));
  running().state = Thread::State::waiting;
  suspend_for(Activity::quiet, site);
}

// The fences of threads that came to them together are one for the transport.
void Block::flush_fences() {
  if (fencing_.empty()) return;
  if (fencing_from_ <= pe_.simulation().now()) {
    start_fence();
    return;
  }
  // Until then others may join, of threads that go on at another time; they are ordered too.
  struct Alarm {
    static void ring(void* block) { static_cast<Block*>(block)->start_fence(); }
  };
  pe_.simulation().at(fencing_from_, &Alarm::ring, this);
}

void Block::start_fence() {
  struct Fence {
    Block* block;
    std::vector<std::uint16_t> threads;
    bool is_quiet;
    std::uint64_t last_operation;
    transport::Access access;
    void release() {
      block->history_->complete(block->pe_.simulation().now(), last_operation, is_quiet);
      for (const std::uint16_t thread : threads) block->make_ready(thread);
      delete this;
    }
  };
  if (fencing_.empty()) return;
  auto* const fence =
      new Fence{this, std::move(fencing_), fencing_is_quiet_, pe_.last_operation(), {}};
  fencing_.clear();
  fencing_is_quiet_ = false;
  fencing_from_ = Time();
  fence->access.kind = transport::AccessKind::fence;
  fence->access.issuer = {.threads = static_cast<int>(fence->threads.size()),
                          .lane = lane_,
                          .multiprocessor = multiprocessor_};
  fence->access.context = fence;
  fence->access.done = [](transport::Access& access) {
    auto* const ended = static_cast<Fence*>(access.context);
    if (!ended->is_quiet) return ended->release();
    ended->block->pe_.when_quiet([ended] { ended->release(); });
  };
  pe_.remote_memory().start(fence->access);
}

void Block::thread_fence(abi::FenceScope scope, const abi::Site& site) {
  if (!pe_.is_timed()) return;
  thread_fence_.from = std::max(thread_fence_.from, thread_time());
  thread_fence_.is_of_system = thread_fence_.is_of_system || scope == abi::FenceScope::system;
  thread_fence_.threads.push_back(static_cast<std::uint16_t>(running_));
  running().state = Thread::State::waiting;
  suspend_for(Activity::quiet, site);
}

// How long the block's last stores take until they are acknowledged.
Time Block::acknowledgement() const {
  if (has_stored_to_peer_) return pe_.cost().peer_latency;
  return has_stored_ ? pe_.cost().memory_latency : Time();
}

// After what the block's threads have done so far. A fence of the device lasts until stores are in
// the L2 cache. One of the system waits for stores at peers, too, and then takes what the library's
// own fence takes without adapters. Threads that come later have a fence of their own.
void Block::flush_thread_fences() {
  struct Fence {
    Block* block;
    ThreadFence of;
    transport::Access access;
    void begin() {
      if (!of.is_of_system) return release();
      access.kind = transport::AccessKind::thread_fence;
      access.issuer = {.threads = static_cast<int>(of.threads.size()),
                       .lane = block->lane_,
                       .multiprocessor = block->multiprocessor_};
      access.context = this;
      access.done = [](transport::Access& done) { static_cast<Fence*>(done.context)->release(); };
      block->pe_.remote_memory().start(access);
    }
    void release() {
      for (const std::uint16_t thread : of.threads) block->make_ready(thread);
      delete this;
    }
  };
  if (thread_fence_.threads.empty()) return;
  auto* const fence = new Fence{this, std::exchange(thread_fence_, {}), {}};
  const bool is_of_system = fence->of.is_of_system;
  const Time begin = std::max({fence->of.from, pe_.simulation().now(), busy_until()});
  const Time when = begin + (is_of_system ? acknowledgement() : pe_.cost().memory_latency);
  if (is_of_system) has_stored_ = has_stored_to_peer_ = false;
  pe_.simulation().at(when, [](void* due) { static_cast<Fence*>(due)->begin(); }, fence);
}

// --- waits ---------------------------------------------------------------------------------------

WaitRecord::WaitRecord(Pe& at, const abi::Wait& from) : pe(at), call(from) {
  values.assign(call.values, call.values + (call.is_vector ? call.count : 1));
  if (call.status != nullptr) status.assign(call.status, call.status + call.count);
}

std::uint64_t WaitRecord::value_at(std::uint64_t index) const {
  const auto* const at =
      static_cast<const std::byte*>(call.first) + index * static_cast<unsigned>(call.size_bytes);
  const auto load = [&]<typename T>(T) -> std::uint64_t {
    const T value = __atomic_load_n(reinterpret_cast<const T*>(at), __ATOMIC_ACQUIRE);
    return call.is_signed ? static_cast<std::uint64_t>(static_cast<std::int64_t>(
                                static_cast<std::make_signed_t<T>>(value)))
                          : std::uint64_t{value};
  };
  switch (call.size_bytes) {
    case 1: return load(std::uint8_t());
    case 2: return load(std::uint16_t());
    case 4: return load(std::uint32_t());
    default: return load(std::uint64_t());
  }
}

std::strong_ordering WaitRecord::order_at(std::uint64_t index) const {
  const std::uint64_t left = value_at(index);
  std::uint64_t right = values[call.is_vector ? index : 0];
  if (call.is_signed) {
    return static_cast<std::int64_t>(left) <=> static_cast<std::int64_t>(right);
  }
  if (call.size_bytes < 8) right &= (std::uint64_t{1} << 8 * call.size_bytes) - 1;
  return left <=> right;
}

bool WaitRecord::holds_at(std::uint64_t index) const {
  const std::strong_ordering order = order_at(index);
  switch (call.comparison) {
    case abi::Comparison::equal: return order == 0;
    case abi::Comparison::not_equal: return order != 0;
    case abi::Comparison::greater: return order > 0;
    case abi::Comparison::less_equal: return order <= 0;
    case abi::Comparison::less: return order < 0;
    case abi::Comparison::greater_equal: return order >= 0;
  }
  return false;
}

std::int64_t WaitRecord::evaluate() const {
  std::int64_t holding = 0;
  std::int64_t first = -1;
  bool any_counts = false;
  bool all_hold = true;
  for (std::uint64_t index = 0; index < call.count; ++index) {
    if (!counts(index)) continue;
    any_counts = true;
    if (!holds_at(index)) {
      all_hold = false;
      continue;
    }
    if (first < 0) first = static_cast<std::int64_t>(index);
    ++holding;
  }
  switch (call.quantity) {
    case abi::Quantity::all: return all_hold ? 1 : -1;
    case abi::Quantity::any: return any_counts ? first : INT64_MAX;
    case abi::Quantity::some: return any_counts && holding == 0 ? -1 : holding;
  }
  return -1;
}

std::string WaitRecord::describe() const {
  constexpr const char* kSigns[] = {"==", "!=", ">", "<=", "<", ">="};
  return fmt::format("word {} of its symmetric heap (now {}) {} {}", pe.offset_of(call.first),
                     value_at(0), kSigns[static_cast<int>(call.comparison)], values[0]);
}

void Block::learn_from(const WaitRecord& wait) {
  if (history_ == nullptr) return;
  const Time now = pe_.simulation().now();
  for (std::uint64_t i = 0; i < wait.call.count; ++i) {
    if (!wait.counts(i) || !wait.holds_at(i)) continue;
    SignalWord* const word = wait.call.size_bytes == 8
                                 ? pe_.signal_words().find(pe_.offset_of(wait.call.first) + 8 * i)
                                 : nullptr;
    if (word == nullptr || word->is_plain || word->value != wait.value_at(i)) {
      history_->learn_everything(now);
      continue;
    }
    history_->learn(now, *word);
    for (; word->seen < word->landed.size(); ++word->seen) {
      word->landed[word->seen]->seen = history_->now();
      word->landed[word->seen]->seen_at = now;
    }
  }
}

// Whether a word was used again too early shows where somebody waits for it.
void Block::note_wait(const abi::Wait& call) {
  if (history_ == nullptr || call.size_bytes != 8) return;
  for (std::uint64_t i = 0; i < call.count; ++i) {
    SignalWord& word = pe_.signal_words().at(pe_.offset_of(call.first) + 8 * i);
    word.is_awaited = true;
    Pe::check_reuse(word);
  }
}

std::uint64_t Block::wait(const abi::Wait& call, const abi::Site& site) {
  if (!pe_.is_in_heap(call.first)) {
    throw KernelError(
        Hazard::unregistered_buffer,
        fmt::format("{} at {}:{} in {} waits for a word that is not symmetric; nobody can put to "
                    "it: allocate it with nvshmem_malloc",
                    site.call, site.file, site.line, describe()));
  }
  auto record = std::make_unique<WaitRecord>(pe_, call);
  record->site = site;
  running().site = site;
  note_wait(call);
  reach(thread_time());
  std::int64_t result = record->evaluate();
  if (call.is_test) {
    if (result < 0) return call.quantity == abi::Quantity::any ? SIZE_MAX : 0;
  } else {
    while (result < 0) {
      record->block = this;
      record->thread = running_;
      record->wait.first = pe_.offset_of(call.first);
      record->wait.size_bytes = call.count * static_cast<unsigned>(call.size_bytes);
      record->wait.context = record.get();
      record->wait.holds = [](const transport::MemoryWait& wait) {
        return static_cast<WaitRecord*>(wait.context)->evaluate() >= 0;
      };
      record->wait.ready = [](transport::MemoryWait& wait) {
        const auto& ended = *static_cast<WaitRecord*>(wait.context);
        ended.block->woken(ended.thread, {wait.first, wait.size_bytes});
      };
      record->wait.describe = [](const transport::MemoryWait& wait) {
        return static_cast<WaitRecord*>(wait.context)->describe();
      };
      running().state = Thread::State::waiting;
      pe_.remote_memory().wait(record->wait);
      pe_.add_wait(*record);
      suspend_for(Activity::wait, site);
      pe_.remove_wait(*record);
      result = record->evaluate();
    }
  }
  if (result >= 0) learn_from(*record);
  if (call.is_signal) return record->value_at(0);
  if (result == INT64_MAX) return SIZE_MAX;
  if (call.indices != nullptr) {
    std::uint64_t next = 0;
    for (std::uint64_t i = 0; i < call.count; ++i) {
      if (record->counts(i) && record->holds_at(i)) call.indices[next++] = i;
    }
  }
  return static_cast<std::uint64_t>(result);
}

// --- polling -------------------------------------------------------------------------------------

namespace {

std::uint64_t value_of(const volatile void* address, unsigned size_bytes) {
  std::uint64_t value = 0;
  std::memcpy(&value, const_cast<const void*>(address), std::min(size_bytes, 8u));
  return value;
}

}  // namespace

void Block::poll(const volatile void* address, unsigned size_bytes) {
  Thread& thread = running();
  const auto is_as_it_was = [&] {
    return thread.polled == address && thread.polled_value == value_of(address, size_bytes);
  };
  if (is_as_it_was()) reach(thread_time());
  // Others may have stored to it on the way there.
  if (is_as_it_was()) {
    thread.state = Thread::State::waiting;
    thread.is_polling = true;
    pe_.add_poller(*this, running_, size_bytes);
    thread.site = {nullptr, 0, "a poll of volatile memory"};
    suspend_for(Activity::wait, thread.site);
    thread.is_polling = false;
  }
  thread.polled = address;
  thread.polled_value = value_of(address, size_bytes);
}

}  // namespace towpath::gpu
