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
  block_.pe().simulation().at(
      when,
      [](void* context) {
        const std::unique_ptr<Alarm> alarm(static_cast<Alarm*>(context));
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
