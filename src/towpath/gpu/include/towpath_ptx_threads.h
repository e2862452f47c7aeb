// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "towpath_ptx_memory.h"

// Barriers, votes, shuffles, the end of a thread and special registers.

namespace towpath_ptx {

using towpath_gpu::Exchange;

// --- barriers -----------------------------------------------------------------------------------
TOWPATH_PTX int sync_named(u32 id, u32 threads, towpath_gpu::NamedBarrier action, int vote,
                           const Site& site) {
  return towpath_gpu::table().sync_named(towpath_gpu::table().self, id, threads, action, vote, &site);
}
template <typename A, typename B = u32>
TOWPATH_PTX void bar_sync(const Site& site, A barrier, B threads = 0) {
  sync_named(as<u32>(barrier), as<u32>(threads), towpath_gpu::NamedBarrier::sync, 0, site);
}
template <typename A, typename B>
TOWPATH_PTX void bar_arrive(const Site& site, A barrier, B threads) {
  sync_named(as<u32>(barrier), as<u32>(threads), towpath_gpu::NamedBarrier::arrive, 0, site);
}
template <typename T, towpath_gpu::NamedBarrier How, typename A, typename B>
TOWPATH_PTX T bar_red(const Site& site, A barrier, B threads, bool vote) {
  return static_cast<T>(sync_named(as<u32>(barrier), as<u32>(threads), How, vote ? 1 : 0, site));
}
template <typename A>
TOWPATH_PTX void bar_warp_sync(const Site& site, A mask) {
  towpath_gpu::table().sync_warp(towpath_gpu::table().self, as<u32>(mask), &site);
}

// --- votes and shuffles -------------------------------------------------------------------------
TOWPATH_PTX u32 lane() { return towpath_gpu_current.linear % towpath_gpu::kWarpThreads; }

TOWPATH_PTX u64 exchange(Exchange kind, u32 mask, u64 value, int operand, const Site& site) {
  return towpath_gpu::table().exchange(towpath_gpu::table().self, kind, mask, value, operand,
                                       towpath_gpu::kWarpThreads, &site);
}
template <Exchange Kind, typename P, typename M>
TOWPATH_PTX u32 vote(const Site& site, P value, M mask) {
  return static_cast<u32>(exchange(Kind, as<u32>(mask), value ? 1 : 0, 0, site));
}
template <typename P, typename M>
TOWPATH_PTX bool vote_uni(const Site& site, P value, M mask) {
  const u32 voters = static_cast<u32>(exchange(Exchange::ballot, as<u32>(mask), 1, 0, site));
  const u32 found = static_cast<u32>(exchange(Exchange::ballot, as<u32>(mask), value ? 1 : 0, 0, site));
  return found == 0 || found == voters;
}
template <typename T, typename A, typename M>
TOWPATH_PTX u32 match_any(const Site& site, A value, M mask) {
  return static_cast<u32>(exchange(Exchange::match_any, as<u32>(mask), as<T>(value), 0, site));
}
template <typename T, typename A, typename M>
TOWPATH_PTX u32 match_all(bool& are_equal, const Site& site, A value, M mask) {
  const u32 found = static_cast<u32>(exchange(Exchange::match_all, as<u32>(mask), as<T>(value), 0, site));
  are_equal = found != 0;
  return found;
}
template <Direction To, typename A, typename B, typename C, typename M>
TOWPATH_PTX u32 shfl(bool& is_inside, const Site& site, A value, B by, C limits, M mask) {
  const int own = static_cast<int>(lane());
  const int count = static_cast<int>(as<u32>(by) & 31), clamp = static_cast<int>(as<u32>(limits) & 31);
  const int segment = static_cast<int>(as<u32>(limits) >> 8 & 31);
  const int first = own & segment;
  const int last = first | (clamp & ~segment);
  int from = own;
  switch (To) {
    case m_up: from = own - count; break;
    case m_down: from = own + count; break;
    case m_bfly: from = own ^ count; break;
    default: from = first | (count & ~segment);
  }
  is_inside = To == m_up ? from >= last : from <= last;
  if (!is_inside) from = own;
  return static_cast<u32>(exchange(Exchange::index, as<u32>(mask), as<u32>(value), from, site));
}
template <typename M>
TOWPATH_PTX u32 elect(bool& is_elected, const Site& site, M mask) {
  const u32 lanes = static_cast<u32>(exchange(Exchange::ballot, as<u32>(mask), 1, 0, site));
  const u32 first = lanes == 0 ? 0 : static_cast<u32>(__builtin_ctz(lanes));
  is_elected = first == lane();
  return first;
}
template <Combination How, typename T, typename A, typename M>
TOWPATH_PTX T redux(const Site& site, A value, M mask) {
  T result{};
  bool is_first = true;
  for (int from = 0; from < towpath_gpu::kWarpThreads; ++from) {
    if ((as<u32>(mask) >> from & 1) == 0) continue;
    const T other = as<T>(exchange(Exchange::index, as<u32>(mask), as<Bits<sizeof(T)>>(value), from, site));
    result = is_first ? other : changed<How>(result, other, T{});
    is_first = false;
  }
  return result;
}

TOWPATH_PTX u32 activemask() { return 1u << lane(); }

// --- threads ------------------------------------------------------------------------------------
template <typename A>
TOWPATH_PTX void nanosleep(A nanoseconds) {
  towpath_gpu::table().sleep(towpath_gpu::table().self, as<u32>(nanoseconds));
}
[[noreturn]] inline void trap(const Site& site) { refuse("a kernel called trap", site); }
TOWPATH_PTX void exit_thread() { towpath_gpu::table().exit_thread(towpath_gpu::table().self); }

// --- special registers --------------------------------------------------------------------------
TOWPATH_PTX u64 clock_ns() { return towpath_gpu::table().clock_ns(towpath_gpu::table().self); }
TOWPATH_PTX u32 warps() {
  const auto& size = towpath_gpu_current.block_dim;
  return (size.x * size.y * size.z + towpath_gpu::kWarpThreads - 1) / towpath_gpu::kWarpThreads;
}
inline u32 multiprocessors() {
  int integers[8] = {};
  std::uint64_t sizes[8] = {};
  char name[256];
  towpath_gpu::table().properties(towpath_gpu::table().self, integers, sizes, name);
  return static_cast<u32>(integers[0]);
}

}  // namespace towpath_ptx
