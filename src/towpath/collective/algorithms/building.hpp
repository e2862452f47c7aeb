// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "towpath/base/index.hpp"
#include "towpath/collective/algorithms/algorithms.hpp"

// Shared by the generators.

namespace towpath::collective {

// Maximum chunks per step. MSCCL allows 71.
inline constexpr std::uint32_t kSegmentChunks = 64;

// One chunk of one buffer.
struct Chunk {
  Buffer buffer = Buffer::input;
  std::uint32_t index = 0;
};

constexpr Chunk chunk_of(Buffer buffer, std::int64_t index) {
  return {buffer, static_cast<std::uint32_t>(index)};
}
constexpr Chunk input(std::int64_t index) { return chunk_of(Buffer::input, index); }
constexpr Chunk output(std::int64_t index) { return chunk_of(Buffer::output, index); }
constexpr Chunk scratch(std::int64_t index) { return chunk_of(Buffer::scratch, index); }

// A step over one chunk. An unused side repeats the other one.
constexpr Step step(StepType type, Chunk source, Chunk destination) {
  return {.type = type,
          .source = source.buffer,
          .destination = destination.buffer,
          .source_chunk = source.index,
          .destination_chunk = destination.index,
          .count = 1};
}
constexpr Step step(StepType type, Chunk only) { return step(type, only, only); }

constexpr Step step(StepType type, Chunk only, std::int64_t count) {
  Step several = step(type, only);
  several.count = static_cast<std::uint32_t>(count);
  return several;
}

constexpr Step publishing(Step step) {
  step.publishes = true;
  return step;
}

constexpr Step after(std::int64_t block, std::int64_t index, Step step) {
  step.depends_on_block = static_cast<std::int32_t>(block);
  step.depends_on_step = static_cast<std::int32_t>(index);
  return step;
}

// Throws std::invalid_argument with one sentence if the options are invalid.
void check_options(const AlgorithmOptions& options);

// Throws std::invalid_argument if ranks * ranks * channels steps would take too much memory.
void check_quadratic(const AlgorithmOptions& options);

// The rank's program.
inline RankProgram& program_of(Schedule& schedule, int rank) { return schedule.ranks[index(rank)]; }

// A thread block per rank and channel that copies the rank's chunk to its position in the gathered
// array, in parallel with the transfers.
void add_own_copies(Schedule& schedule);

// A thread block that copies chunks of the root's array to its output in parallel with the sends. A
// copy after the sends in one block would start only when the last send is done.
void add_root_copies(Schedule& schedule, int channel, std::int64_t first, std::int64_t count);

// Appends a thread block on `channel` to the rank.
ThreadBlock& add_block(RankProgram& program, int receive_peer, int send_peer, int channel);

// Index of the last thread block.
std::uint32_t last_block(const RankProgram& program);

// Doubles the channels, for algorithms with separate channels for results. Throws
// std::invalid_argument if there are too many.
void take_two_channels_each(Schedule& schedule);

// The ranks in ring order on a channel.
std::vector<int> ring_of(const AlgorithmOptions& options, int channel);

// A thread block of the rank at `position` of a ring. It receives from the predecessor and sends to
// the successor.
ThreadBlock& add_ring_block(Schedule& schedule, const std::vector<int>& ring, std::size_t position,
                            int channel);

// An empty list for rings over arrays of one part per rank, with one chunk of each part per
// channel. Row r is the part of the rank at position r of the ring. The first chunk after the grid
// stands for the channel's chunk of a single part.
std::shared_ptr<StepList> list_of_parts(const std::vector<int>& ring, std::uint32_t channels);

// A thread block per rank and channel that runs such a list, rotated to its position in the
// channel's ring.
void add_rings_of_parts(Schedule& schedule, const AlgorithmOptions& options,
                        std::shared_ptr<StepList> (*steps_of_first)(const std::vector<int>& ring,
                                                                    std::uint32_t channels));

// A thread block of the rank at `position` of a line. It receives from the predecessor and sends to
// the successor, if they exist.
ThreadBlock& add_line_block(Schedule& schedule, const std::vector<int>& line, std::size_t position,
                            int channel);

// Numbering of a rank's thread blocks in all-pairs algorithms: one per channel and peer, then those
// for local work, channel by channel.
struct PairBlocks {
  int rank = 0;
  int ranks = 1;
  int channels = 1;
  int reducers = 1;  // local thread blocks per channel, each for a piece of the input

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
  // The scratch chunk of a peer's contribution.
  std::uint32_t scratch_of(int peer, int piece) const {
    return slot_of(peer) * static_cast<std::uint32_t>(pieces()) + static_cast<std::uint32_t>(piece);
  }
};

// Adds all thread blocks in that order, without steps.
void add_pair_blocks(Schedule& schedule, const PairBlocks& blocks);

// Appends to `steps`: wait until step 1 of each peer's thread block has received its contribution,
// combine all of them and `own` in rank order (so that every rank gets the same bits), and store
// the result. The sum is accumulated in scratch, so `result` and `own` may overlap.
void add_ordered_reduction(Steps& steps, const PairBlocks& blocks, int piece, Chunk own,
                           Chunk result);

}  // namespace towpath::collective
