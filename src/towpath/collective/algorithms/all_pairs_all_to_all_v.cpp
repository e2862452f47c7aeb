// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0

// All-pairs all-to-all with parts of different sizes: 1 step over the wire, at most S (R-1)/R bytes
// on the wire per rank. Each rank has room for equal parts, of which the first chunks are sent, as
// many as the pattern says; it has channels * chunks_per_channel for a whole part.
#include "towpath/collective/algorithms/building.hpp"

namespace towpath::collective {
namespace {

void add_rank(Schedule& schedule, const PairBlocks& blocks, std::uint32_t part_chunks) {
  add_pair_blocks(schedule, blocks);
  auto& program_blocks = schedule.ranks[static_cast<std::size_t>(blocks.rank)].blocks;
  const auto count = [&](int from, int to) {
    return schedule
        .pattern[static_cast<std::size_t>(from) * static_cast<std::size_t>(blocks.ranks) +
                 static_cast<std::size_t>(to)];
  };
  for (int channel = 0; channel < blocks.channels; ++channel) {
    for (int peer = 0; peer < blocks.ranks; ++peer) {
      const bool is_own = peer == blocks.rank;
      Steps& steps =
          program_blocks[is_own ? blocks.local_block(channel) : blocks.block_of(peer, channel)]
              .steps;
      const std::uint32_t first = static_cast<std::uint32_t>(peer) * part_chunks;
      for (auto i = static_cast<std::uint32_t>(channel); i < part_chunks;
           i += static_cast<std::uint32_t>(blocks.channels)) {
        const Chunk out = input(first + i);
        const Chunk in = output(first + i);
        // In place both are the same memory, which is sent before it is overwritten.
        if (is_own && i < count(peer, peer)) steps.push_back(step(StepType::copy, out, in));
        if (!is_own && i < count(blocks.rank, peer)) steps.push_back(step(StepType::send, out));
        if (!is_own && i < count(peer, blocks.rank)) steps.push_back(step(StepType::receive, in));
      }
    }
  }
}

Schedule make(const AlgorithmOptions& options) {
  check_quadratic(options);
  const auto ranks = static_cast<std::uint32_t>(options.ranks);
  const std::uint32_t part_chunks = static_cast<std::uint32_t>(options.channels) *
                                    static_cast<std::uint32_t>(options.chunks_per_channel);
  Schedule schedule = schedule_without_blocks("all_pairs_all_to_all_v", Collective::all_to_all_v,
                                              options, ranks * part_chunks);
  schedule.pattern = options.pattern;
  if (schedule.pattern.empty()) {
    schedule.pattern.assign(std::size_t{ranks} * ranks, part_chunks);
  }
  check_structure(schedule);
  for (int rank = 0; rank < options.ranks; ++rank) {
    add_rank(schedule, {rank, options.ranks, options.channels}, part_chunks);
  }
  return schedule;
}

}  // namespace

constinit const Algorithm all_pairs_all_to_all_v{
    .name = "all_pairs_all_to_all_v",
    .collective = Collective::all_to_all_v,
    .make = make,
    .description = "every rank sends every other one as much of its part as the pattern says",
    .cost = "1 step, S(R-1)/R bytes at most",
};

}  // namespace towpath::collective
