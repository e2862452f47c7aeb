// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "towpath/collective/algorithms/building.hpp"

// Shared by the generators of one-sided steps.

namespace towpath::collective {

constexpr Operand own(Chunk chunk) {
  return {Holder::own, chunk.buffer, false, kNone, chunk.index};
}
constexpr Operand of_peer(int peer, Chunk chunk) {
  return {Holder::peer, chunk.buffer, false, peer, chunk.index};
}
constexpr Operand of_group(int group, Chunk chunk) {
  return {Holder::group, chunk.buffer, false, group, chunk.index};
}
// The chunk of `rank` from the view of rank `self`.
constexpr Operand of_rank(int self, int rank, Chunk chunk) {
  return rank == self ? own(chunk) : of_peer(rank, chunk);
}

// Appends a one-sided step to the thread block and returns it.
Step& add_access(ThreadBlock& block, StepType type, Access access, std::uint32_t count = 1);
// For one chunk.
Step& add_direct(ThreadBlock& block, std::vector<Operand> sources,
                 std::vector<Operand> destinations);

// A signal to each rank except `self`, and one from each. A relaxed signal orders no memory.
void add_signals(ThreadBlock& block, int self, const std::vector<int>& ranks, int channel,
                 bool is_relaxed = false);
void add_waits(ThreadBlock& block, int self, const std::vector<int>& ranks, int channel,
               bool is_relaxed = false);
// Both: a barrier of these ranks.
void add_meeting(ThreadBlock& block, int self, const std::vector<int>& ranks, int channel,
                 bool is_relaxed = false);

// 0, 1, ... for all ranks.
std::vector<int> all_ranks(const Schedule& schedule);

// Adds a thread block of `rank` without FIFOs.
ThreadBlock& add_block_to(Schedule& schedule, int rank);

}  // namespace towpath::collective
