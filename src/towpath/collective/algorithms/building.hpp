// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "towpath/collective/algorithms/algorithms.hpp"

// What the generators share.

namespace towpath::collective {

// Chunks that one step moves, at most; MSCCL allows 71.
inline constexpr std::uint32_t kSegmentChunks = 64;

// One chunk of one buffer.
struct Chunk {
  Buffer buffer = Buffer::input;
  std::uint32_t index = 0;
};

constexpr Chunk input(std::uint32_t index) { return {Buffer::input, index}; }
constexpr Chunk output(std::uint32_t index) { return {Buffer::output, index}; }
constexpr Chunk scratch(std::uint32_t index) { return {Buffer::scratch, index}; }

// A step over one chunk. Sides that its type does not look at repeat the other one.
constexpr Step step(StepType type, Chunk source, Chunk destination) {
  return {.type = type,
          .source = source.buffer,
          .destination = destination.buffer,
          .source_chunk = source.index,
          .destination_chunk = destination.index,
          .count = 1};
}
constexpr Step step(StepType type, Chunk only) { return step(type, only, only); }

constexpr Step step(StepType type, Chunk only, std::uint32_t count) {
  Step several = step(type, only);
  several.count = count;
  return several;
}

constexpr Step publishing(Step step) {
  step.publishes = true;
  return step;
}

constexpr Step after(std::uint32_t block, std::uint32_t index, Step step) {
  step.depends_on_block = static_cast<std::int32_t>(block);
  step.depends_on_step = static_cast<std::int32_t>(index);
  return step;
}

// Throws std::invalid_argument, one sentence, for options that are not possible.
void check_options(const AlgorithmOptions& options);

// Checks the options and returns the schedule with all of it but thread blocks.
Schedule schedule_without_blocks(std::string_view name, Collective collective,
                                 const AlgorithmOptions& options, std::uint32_t chunks);

// Throws std::invalid_argument when ranks * ranks * channels steps are more than memory is for.
void check_quadratic(const AlgorithmOptions& options);

// What a collective is on a single rank: one thread block per channel copies its chunks.
Schedule local_copy(Schedule schedule);

// A thread block per rank and channel that copies the rank's own chunk to its place in the gathered
// array, while others send it.
void add_own_copies(Schedule& schedule);

// A thread block that copies chunks of the root's own array to its output while others send them: a
// copy behind the sends would begin when the last one is done.
void add_root_copies(Schedule& schedule, int channel, std::uint32_t first, std::uint32_t count);

// A thread block on `channel`, at the end of those of the rank.
ThreadBlock& add_block(RankProgram& program, int receive_peer, int send_peer, int channel);

// The number of the thread block that was added last.
std::uint32_t last_block(const RankProgram& program);

// Doubles the channels, for algorithms that hand out results on channels of their own. Throws
// std::invalid_argument where there are too many.
void take_two_channels_each(Schedule& schedule);

// The ranks in the order of a channel's ring.
std::vector<int> ring_of(const AlgorithmOptions& options, int channel);

// A thread block for the rank at `position` of a ring, receiving from its predecessor and sending
// to its successor.
ThreadBlock& add_ring_block(Schedule& schedule, const std::vector<int>& ring, std::size_t position,
                            int channel);

// A list without steps for rings over arrays of one part per rank, each of a chunk per channel. Row
// r is the part of the rank at position r of the ring, and the first place behind the grid stands
// for the channel's chunk of a single part.
std::shared_ptr<StepList> list_of_parts(const std::vector<int>& ring, std::uint32_t channels);

// A thread block per rank and channel that takes the steps of such a list as its place in the
// channel's ring asks for.
void add_rings_of_parts(Schedule& schedule, const AlgorithmOptions& options,
                        std::shared_ptr<StepList> (*steps_of_first)(const std::vector<int>& ring,
                                                                    std::uint32_t channels));

// A thread block for the rank at `position` of a line, receiving from its predecessor and sending
// to its successor, if it has them.
ThreadBlock& add_line_block(Schedule& schedule, const std::vector<int>& line, std::size_t position,
                            int channel);

// The order in which the all-pairs algorithms number a rank's thread blocks: one per channel and
// peer, then those of each channel for local work.
struct PairBlocks {
  int rank = 0;
  int ranks = 1;
  int channels = 1;
  int reducers = 1;  // local thread blocks of a channel, each with a piece of what comes in

  int pieces() const { return channels * reducers; }
  std::uint32_t slot_of(int peer) const {
    return static_cast<std::uint32_t>(peer < rank ? peer : peer - 1);
  }
  std::uint32_t block_of(int peer, int channel) const {
    return static_cast<std::uint32_t>(channel * (ranks - 1)) + slot_of(peer);
  }
  std::uint32_t local_block(int piece) const {
    return static_cast<std::uint32_t>(channels * (ranks - 1) + piece);
  }
  // The scratch chunk that keeps a peer's contribution.
  std::uint32_t scratch_of(int peer, int piece) const {
    return slot_of(peer) * static_cast<std::uint32_t>(pieces()) + static_cast<std::uint32_t>(piece);
  }
};

// All thread blocks in that order, still without steps.
void add_pair_blocks(Schedule& schedule, const PairBlocks& blocks);

// Appends to `steps`: wait until every peer's contribution has been received by step 1 of its
// thread block, combine them and `own` in the order of ranks, so that every rank gets the same
// bits, and store the result. It is gathered in scratch: `result` and `own` may be one memory.
void add_ordered_reduction(Steps& steps, const PairBlocks& blocks, int piece, Chunk own,
                           Chunk result);

}  // namespace towpath::collective
