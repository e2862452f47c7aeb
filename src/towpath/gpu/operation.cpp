// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/gpu/operation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "towpath/gpu/device.hpp"
#include "towpath/gpu/pe.hpp"

namespace towpath::gpu {

Operation::Operation(Pe& from, Block& by, const abi::Access& what, const abi::Site& where)
    : pe(from), block(&by), call(what), site(where) {
  pe.memory().check_transfer(call, by, site);
  pe.heap().check_remote(call, by, site);
  pe.heap().check_local(call, by, site);
  access.kind = static_cast<transport::AccessKind>(call.kind);
  access.peer = call.peer;
  if (call.size_bytes > 0) access.remote = pe.heap().offset_of(call.remote);
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
    access.signal_at = pe.heap().offset_of(call.signal_at);
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
    is_visible = true;  // it does not store
  } else {
    number = first_number = pe.outstanding().start();
  }
  if (by.history() != nullptr) sender = by.history()->now();
}

// A get to temporary memory is always awaited.
bool Operation::is_detached() const {
  if (!call.is_nonblocking || !pe.is_timed()) return false;
  if (call.kind == abi::AccessKind::get) return bytes.empty();
  return !pe.transport().is_addressable(call.peer);
}

// The library's internal kernels are not monitored.
void Operation::monitor_start() {
  is_monitored = pe.is_timed() && call.kind == abi::AccessKind::put && call.size_bytes > 0 &&
                 call.peer != pe.rank() && block != nullptr && !block->grid().launch().is_internal;
  if (!is_monitored) return;
  const std::string what = describe();
  const auto local = reinterpret_cast<std::uintptr_t>(access.local);
  const causality::Transfer identity = this->identity();
  if (bytes.empty()) {
    pe.hazards().check_sent(local, call.size_bytes, *block, what);
    pe.hazards().sources.assign(local, local + call.size_bytes, {identity, what});
    pe.forget_quiet_ranges();
  }
  Pe& peer = *pe.run().pes[static_cast<std::size_t>(call.peer)];
  const auto target = reinterpret_cast<std::uintptr_t>(peer.transport().data(access.remote));
  peer.hazards().incoming.assign(target, target + call.size_bytes, {identity, what});
  peer.hazards().signal_words.note_plain(access.remote, call.size_bytes);
}

void Operation::forget_source() {
  const auto begin = reinterpret_cast<std::uintptr_t>(access.local);
  pe.hazards().sources.erase_if(begin, begin + call.size_bytes, [&](const auto& transfer) {
    return transfer.identity.number == first_number;
  });
}

std::string Operation::describe() const {
  return fmt::format("{} at {}:{} by {}", site.call, site.file, site.line, block->describe());
}

causality::Transfer Operation::identity() const {
  return {pe.rank(), first_number, call.peer, pe.simulation().now(), sender};
}

void Operation::start_signal() {
  if (!pe.is_timed() || block == nullptr) return;
  Pe& peer = *pe.run().pes[static_cast<std::size_t>(call.peer)];
  if (call.kind == abi::AccessKind::atomic)
    peer.hazards().signal_words.note_plain(access.remote, 8);
  if (!access.has_signal) return;
  SignalWord& word = peer.hazards().signal_words.at(access.signal_at);
  signal = &peer.hazards().signal_words.new_signal();
  *signal = {.sender = sender,
             .payload = identity(),
             .lane = block->lane(),
             .value = call.signal_value,
             .is_set = call.signal == abi::Signal::set};
  if (signal->is_set && call.peer != pe.rank()) {
    signal->what = describe();
    HazardMonitor::check_signal(word, *signal, *block);
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
  SignalWord& word = pe.run().pes[static_cast<std::size_t>(call.peer)]->hazards().signal_words.at(
      access.signal_at);
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
    // A nonblocking call completes only in quiet().
    if (operation.is_monitored && !operation.call.is_nonblocking) operation.forget_source();
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

// Without an arrival report, bytes have landed at the end of the call.
void Operation::finish_profile() {
  if (profile == nullptr) return;
  const bool is_reported = pe.is_timed() && call.kind != abi::AccessKind::get;
  if (!is_reported) profile->transfer_landed(transfer);
}

void Operation::release_threads() {
  if (block == nullptr) return;
  Block& waiting = *std::exchange(block, nullptr);
  if (profile != nullptr) {
    profile->transfer_done(transfer);
    waiting.timeline()->leave(activity(), site);
  }
  if (group != nullptr) {
    waiting.groups().release(*group);
  } else if (thread >= 0) {
    waiting.make_ready(thread);
  }
}

void Operation::finish() {
  if (is_visible && number != 0) pe.outstanding().visible(std::exchange(number, 0));
  if (is_done && is_visible && !is_held) delete this;
}

namespace {

void start_group_access(Block& block, Group& group, const abi::Access& call,
                        const abi::Site& site) {
  auto* const operation = new Operation(block.pe(), block, call, site);
  operation->group = &group;
  Time when = group.latest;
  if (call.scope == abi::Scope::block) when = std::max(when, block.work().busy_until());
  if (when <= block.pe().simulation().now()) {
    operation->start();
    return;
  }
  block.pe().simulation().at(
      when, [](void* context) { static_cast<Operation*>(context)->start(); }, operation);
}

}  // namespace

void access(Block& block, abi::Access& call, const abi::Site& site) {
  note_release(block, abi::FenceScope::system);
  if (call.scope != abi::Scope::thread) {
    Group& group = block.groups().of(call.scope, site);
    const bool is_last = block.groups().arrive(group, site);
    block.running().state = Thread::State::in_group;
    if (is_last) start_group_access(block, group, call, site);
    block.suspend(site);
    return;
  }
  block.running().site = site;
  block.reach(block.work().thread_time());
  auto* const operation = new Operation(block.pe(), block, call, site);
  operation->is_held = true;
  operation->start();
  if (operation->block != nullptr) {
    operation->thread = block.running_index();
    block.running().state = Thread::State::waiting;
    block.suspend(site);
  }
  if (operation->is_done) {
    call.result = operation->access.result;
    if (call.kind == abi::AccessKind::get || call.fetches) block.learn_everything();
    if (call.kind == abi::AccessKind::get && !operation->bytes.empty()) {
      std::memcpy(call.local, operation->bytes.data(), call.size_bytes);
    }
  }
  operation->is_held = false;
  if (operation->is_done && operation->is_visible) delete operation;
}

}  // namespace towpath::gpu
