// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/gpu/thread_groups.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string_view>

#include "towpath/gpu/pe.hpp"

namespace towpath::gpu {

namespace {

std::uint32_t lanes(int count) { return count >= 32 ? ~0u : (1u << count) - 1; }

// The active lanes with this value, as bits.
std::uint64_t lanes_with(const std::array<std::uint64_t, abi::kWarpThreads>& values,
                         std::uint32_t present, std::uint64_t value) {
  std::uint64_t found = 0;
  for (std::size_t lane = 0; lane < values.size(); ++lane) {
    if ((present >> lane & 1) != 0 && values[lane] == value) found |= std::uint64_t{1} << lane;
  }
  return found;
}

// The lane that provides the value of `lane` in a shuffle.
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

// A barrier instruction, not a call.
bool is_ptx(const abi::Site& site) { return std::string_view(site.call).starts_with("bar"); }

// The value that all threads of a barrier receive.
std::uint64_t result_of(const NamedBarrier& barrier, abi::NamedBarrier action) {
  switch (action) {
    case abi::NamedBarrier::popc: return static_cast<std::uint64_t>(barrier.votes);
    case abi::NamedBarrier::vote_and: return barrier.votes == barrier.arrived ? 1 : 0;
    case abi::NamedBarrier::vote_or: return barrier.votes > 0 ? 1 : 0;
    default: return 0;
  }
}

}  // namespace

void ThreadGroups::refuse_divergence(const Group& group, const abi::Site& site) {
  throw KernelError(
      Hazard::divergent_barrier,
      fmt::format("divergent barrier: threads of {} wait in {} while thread {} of it is in {}; all "
                  "threads of a block must reach the same barrier",
                  block_.describe(), place_of(group.site), block_.running_index(), place_of(site)));
}

bool ThreadGroups::arrive(Group& group, const abi::Site& site) {
  if (group.arrived == 0) {
    group.site = site;
    group.sum = 0;
    group.all = true;
    group.any = false;
    group.latest = Time();
  } else if (is_ptx(site) || is_ptx(group.site)) {
    // Warps may meet from different instructions.
  } else if (group.site.line != site.line ||
             (group.site.call != site.call && std::string_view(group.site.call) != site.call)) {
    refuse_divergence(group, site);
  }
  // A whole block records its end of work at completion.
  const bool is_block = group.mask == 0;
  if (block_.timeline() != nullptr) block_.timeline()->enter(Activity::sync, site);
  group.latest = std::max(group.latest,
                          is_block ? block_.pe().simulation().now() : block_.work().thread_time());
  block_.work().fold_counters();
  ++group.arrived;
  if (group.mask != 0) group.present |= 1u << (block_.running_index() - group.first_thread);
  return group.arrived == group.size;
}

int ThreadGroups::sync(int reduction, int predicate, const abi::Site& site) {
  Group& group = whole_;
  group.reduction = reduction;
  const bool is_last = arrive(group, site);
  if (reduction != 0) {
    group.sum += predicate != 0 ? 1 : 0;
    group.all = group.all && predicate != 0;
    group.any = group.any || predicate != 0;
  }
  block_.running().state = Thread::State::in_group;
  if (is_last) complete(group);
  block_.suspend(site);
  return static_cast<int>(block_.running().value);
}

// All threads have arrived. They continue when the block has done its work.
void ThreadGroups::complete(Group& group) {
  const bool is_block = &group == &whole_;
  if (group.mask != 0) finish_exchange(group);
  if (is_block && group.reduction != 0) {
    const bool values[] = {false, false, group.all, group.any};
    const auto value = group.reduction == 1 ? static_cast<std::uint64_t>(group.sum)
                                            : std::uint64_t{values[group.reduction]};
    for (int i = 0; i < block_.threads(); ++i) block_.thread(i).value = value;
  }
  Time when = group.latest;
  if (is_block && block_.pe().is_timed()) {
    when = std::max(when, block_.work().busy_until()) + block_.pe().cost().barrier;
  }
  if (when <= block_.pe().simulation().now()) {
    release(group);
    return;
  }
  struct Alarm {
    ThreadGroups* groups;
    Group* group;
  };
  ++completing_;
  block_.pe().simulation().at(
      when,
      [](void* context) {
        const std::unique_ptr<Alarm> alarm(static_cast<Alarm*>(context));
        --alarm->groups->completing_;
        alarm->groups->release(*alarm->group);
      },
      new Alarm{this, &group});
}

void ThreadGroups::release(Group& group) {
  if (block_.timeline() != nullptr)
    block_.timeline()->leave(Activity::sync, group.site, group.arrived);
  if (group.mask == 0) {
    group.arrived = 0;
    for (int thread = 0; thread < block_.threads(); ++thread) {
      if (block_.thread(thread).state == Thread::State::in_group) {
        block_.make_ready(thread);
      }
    }
    return;
  }
  const Group released = group;
  warps_.remove_if([&](const Group& each) { return &each == &group; });
  for (int lane = 0; lane < abi::kWarpThreads; ++lane) {
    if ((released.present >> lane & 1) != 0) block_.make_ready(released.first_thread + lane);
  }
}

void ThreadGroups::leave(int left) {
  Group& group = whole_;
  group.size = left;
  if (group.arrived > 0 && group.arrived == group.size) complete(group);
  for (NamedBarrier& each : named_) {
    if (!each.is_of_all || each.arrived == 0) continue;
    each.size = left;
    if (each.arrived == left) complete_named(each);
  }
  const int warp = block_.running_index() / abi::kWarpThreads * abi::kWarpThreads;
  for (Group& each : warps_) {
    if (each.first_thread != warp || (each.mask >> (block_.running_index() - warp) & 1) == 0)
      continue;
    if (--each.size == each.arrived) {
      complete(each);
      return;
    }
  }
}

// --- named barriers ------------------------------------------------------------------------------

NamedBarrier& ThreadGroups::named(const NamedArrival& arrival, const abi::Site& site) {
  const auto refuse = [&](const std::string& what) {
    throw KernelError(KernelError::Kind::usage,
                      fmt::format("thread {} of {} is in {} with {}", block_.running_index(),
                                  block_.describe(), place_of(site), what));
  };
  if (arrival.id >= abi::kNamedBarriers) {
    refuse(fmt::format("barrier {}; a block has barriers 0 to {}", arrival.id,
                       abi::kNamedBarriers - 1));
  }
  if (arrival.threads % abi::kWarpThreads != 0) {
    refuse(
        fmt::format("{} threads; it must be a multiple of {}", arrival.threads, abi::kWarpThreads));
  }
  named_.resize(abi::kNamedBarriers);
  NamedBarrier& barrier = named_[arrival.id];
  const int size = arrival.threads == 0 ? whole_.size : arrival.threads;
  if (barrier.arrived > 0 && barrier.size != size) {
    throw KernelError(
        Hazard::divergent_barrier,
        fmt::format("divergent barrier: thread {} of {} comes to barrier {} with {} threads in {}, "
                    "but {} threads have come to it for {} threads in {}; give the same number",
                    block_.running_index(), block_.describe(), arrival.id, size, place_of(site),
                    barrier.arrived, barrier.size, place_of(barrier.site)));
  }
  barrier.size = size;
  barrier.is_of_all = arrival.threads == 0;
  return barrier;
}

int ThreadGroups::sync_named(const NamedArrival& arrival, const abi::Site& site) {
  const bool is_whole = arrival.id == 0 && arrival.action != abi::NamedBarrier::arrive &&
                        (arrival.threads == 0 || arrival.threads == block_.threads());
  if (is_whole) {
    constexpr int kReductions[] = {0, 0, 1, 2, 3};
    return sync(kReductions[static_cast<int>(arrival.action)], arrival.vote ? 1 : 0, site);
  }
  NamedBarrier& barrier = named(arrival, site);
  if (barrier.arrived == 0) {
    barrier.site = site;
    barrier.latest = Time();
    barrier.votes = 0;
  }
  barrier.latest = std::max(barrier.latest, block_.work().thread_time());
  block_.work().fold_counters();
  barrier.votes += arrival.vote ? 1 : 0;
  ++barrier.arrived;
  const bool waits = arrival.action != abi::NamedBarrier::arrive;
  Thread& thread = block_.running();
  if (waits) {
    barrier.waiting.push_back(static_cast<std::uint16_t>(block_.running_index()));
    thread.state = Thread::State::in_group;
    thread.operand = static_cast<std::int32_t>(arrival.action);
    if (block_.timeline() != nullptr) block_.timeline()->enter(Activity::sync, site);
  }
  if (barrier.arrived == barrier.size) complete_named(barrier);
  if (!waits) return 0;
  block_.suspend(site);
  return static_cast<int>(block_.running().value);
}

// The barrier is free for the next arrivals at once. Its threads continue when it is over.
void ThreadGroups::complete_named(NamedBarrier& barrier) {
  struct Completed {
    ThreadGroups* groups;
    abi::Site site;
    std::vector<std::uint16_t> threads;
    void release() {
      Block& block = groups->block_;
      --groups->completing_;
      if (block.timeline() != nullptr && !threads.empty()) {
        block.timeline()->leave(Activity::sync, site, static_cast<int>(threads.size()));
      }
      for (const std::uint16_t thread : threads) block.make_ready(thread);
      delete this;
    }
  };
  for (const std::uint16_t index : barrier.waiting) {
    Thread& thread = block_.thread(index);
    thread.value = result_of(barrier, static_cast<abi::NamedBarrier>(thread.operand));
  }
  auto* const completed = new Completed{this, barrier.site, std::move(barrier.waiting)};
  barrier.waiting.clear();
  barrier.arrived = 0;
  ++completing_;
  const Pe& pe = block_.pe();
  const Time when = pe.is_timed() ? barrier.latest + pe.cost().barrier : Time();
  if (when <= pe.simulation().now()) return completed->release();
  pe.simulation().at(when, [](void* due) { static_cast<Completed*>(due)->release(); }, completed);
}

std::string ThreadGroups::named_arrivals() const {
  std::string text;
  for (std::size_t id = 0; id < named_.size(); ++id) {
    const NamedBarrier& barrier = named_[id];
    if (barrier.arrived == 0) continue;
    text +=
        fmt::format("{}barrier {} has {} of its {} threads and misses {}", text.empty() ? "" : ", ",
                    id, barrier.arrived, barrier.size, barrier.size - barrier.arrived);
  }
  return text;
}

void ThreadGroups::check_named() const {
  int in_named = 0;
  for (const NamedBarrier& each : named_) in_named += static_cast<int>(each.waiting.size());
  if (in_named == 0 || completing_ > 0) return;
  // A complete group of a transfer waits for its end.
  int stuck = in_named + (whole_.arrived < whole_.size ? whole_.arrived : 0);
  for (const Group& each : warps_) stuck += each.arrived < each.size ? each.arrived : 0;
  if (stuck < whole_.size) return;
  throw KernelError(Hazard::divergent_barrier,
                    fmt::format("divergent barrier: in {}, all threads wait and none is left to "
                                "come ({}); let as many threads come as the barrier is for",
                                block_.describe(), block_.waiting()));
}

Group& ThreadGroups::warp_group(std::uint32_t mask, const abi::Site& site) {
  const int first = block_.running_index() / abi::kWarpThreads * abi::kWarpThreads;
  const int lane = block_.running_index() - first;
  mask &= lanes(block_.threads() - first);
  if ((mask >> lane & 1) == 0) {
    throw KernelError(KernelError::Kind::usage,
                      fmt::format("thread {} of {} is not in the mask {:#x} of its own {}",
                                  block_.running_index(), block_.describe(), mask, place_of(site)));
  }
  for (Group& group : warps_) {
    if (group.first_thread == first && group.mask == mask && (group.present >> lane & 1) == 0) {
      return group;
    }
  }
  Group& group = warps_.emplace_back();
  group.mask = mask;
  group.first_thread = first;
  for (int i = 0; i < abi::kWarpThreads; ++i) {
    if ((mask >> i & 1) == 0) continue;
    if (block_.thread(first + i).state != Thread::State::finished) ++group.size;
  }
  return group;
}

Group& ThreadGroups::of(abi::Scope scope, const abi::Site& site) {
  return scope == abi::Scope::block ? whole_ : warp_group(~0u, site);
}

std::uint64_t ThreadGroups::exchange(const ExchangeRequest& request, const abi::Site& site) {
  Group& group = warp_group(request.mask, site);
  group.exchange = request.kind;
  group.width = request.width;
  Thread& thread = block_.running();
  thread.value = request.value;
  thread.operand = request.operand;
  const bool is_last = arrive(group, site);
  thread.state = Thread::State::in_group;
  if (is_last) complete(group);
  block_.suspend(site);
  return block_.running().value;
}

void ThreadGroups::sync_warp(std::uint32_t mask, const abi::Site& site) {
  static_cast<void>(exchange({.kind = abi::Exchange::ballot, .mask = mask}, site));
}

void ThreadGroups::finish_exchange(Group& group) {
  std::array<std::uint64_t, abi::kWarpThreads> values{};
  const auto thread_of = [&](int lane) -> Thread& {
    return block_.thread(group.first_thread + lane);
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
      case abi::Exchange::match_all:
        thread.value =
            lanes_with(values, group.present, thread.value) == group.present ? group.present : 0;
        break;
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

}  // namespace towpath::gpu
