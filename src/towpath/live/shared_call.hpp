// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "towpath/live/call.hpp"
#include "towpath/live/copy_paths.hpp"
#include "towpath/live/operand_fold.hpp"
#include "towpath/live/shared_rank.hpp"
#include "towpath/live/task.hpp"

// The collectives through shared memory, a coroutine each, and the state that they share.

namespace towpath::live {

// A block stays in the second-level cache until the next one is staged, and operands that are read
// from other processes stay there until they are combined.
inline constexpr std::uint64_t kBlockBytes = 256 << 10;
static_assert(kBlockBytes <= StageRing::kBlockBytesMost);

// Measured on all ranks. The slowest rank counts, in seconds.
struct Costs {
  float step_s = 0;           // a step without bytes
  float read_s_per_byte = 0;  // of bytes that a peer staged
};

// The blocks of a reduction after its first step.
struct FollowingBlocks {
  std::uint64_t first = 0;                // the first step of the first block
  std::uint64_t published = 0;            // blocks
  std::array<std::uint64_t, 2> places{};  // of the last two blocks, in the stages
};

struct SharedCall {
  explicit SharedCall(transport::LiveTransport& transport)
      : rank(transport), paths(transport), fold(transport.ranks()) {}

  bool is_root(const Request& request) const { return request.peer == rank.rank(); }
  bool gets_result(const Request& request) const {
    return request.kind != Kind::reduce || is_root(request);
  }
  // The size of an operand that is read from another process before it is combined.
  std::uint64_t read_bytes() const {
    constexpr std::uint64_t kPageBytes = 4096;
    return std::max(kBlockBytes / index(rank.ranks()) / kPageBytes * kPageBytes, kPageBytes);
  }
  const std::byte* read_operand(int peer, std::uint64_t address, std::uint64_t size_bytes) {
    std::byte* const here = fold.buffer(peer, read_bytes());
    rank.read(peer, address, {here, size_bytes});
    return here;
  }

  SharedRank rank;
  CopyPaths paths;
  OperandFold fold;
  std::optional<Costs> costs;
  std::uint64_t small_step = 0;              // of a small reduction that is published, or 0
  std::optional<FollowingBlocks> following;  // run_following_blocks() continues the call
  std::vector<std::byte*> results;           // of the other ranks, on their heaps
  Frame frame;
};

// --- shared_movement.cpp -------------------------------------------------------------------------
Task run_barrier(SharedCall& call);
// Up to a slot, and more.
Task run_broadcast(SharedCall& call, const Request& request);
Task run_large_broadcast(SharedCall& call, const Request& request);

// --- shared_parts.cpp: all_gather, all_to_all, reduce_scatter ------------------------------------
std::uint64_t largest_part_bytes(const Request& request);
Task run_parts(SharedCall& call, const Request& request);
Task run_large_parts(SharedCall& call, const Request& request);

// --- shared_reduction.cpp: all_reduce, reduce ----------------------------------------------------
bool is_small_reduction(const SharedCall& call, const Request& request);
// Runs a small reduction without a coroutine, which would take a fifth of the call's time. Returns
// false if it has to wait longer: run_small_reduction() completes it.
bool run_small_reduction_at_once(SharedCall& call, const Request& request);
Task run_small_reduction(SharedCall& call, const Request& request);
Task run_large_reduction(SharedCall& call, const Request& request);
Task run_following_blocks(SharedCall& call, const Request& request);

// --- shared_probe.cpp ----------------------------------------------------------------------------
// A lap of the ring: maps its memory in all processes, and loads it into the caches.
Task run_first_lap(SharedCall& call);
// True if all ranks can read the memory of each other's processes.
Task run_read_probe(SharedCall& call);
// Measures `costs`, and checks if stores past the caches are faster.
Task run_probe(SharedCall& call);

}  // namespace towpath::live
