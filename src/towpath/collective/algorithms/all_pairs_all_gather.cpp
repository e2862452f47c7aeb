// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0

// All-pairs all-gather: 1 step over the wire, S (R-1)/R bytes on the wire per rank. S is the
// gathered array. Every rank sends its part to every other one.
#include "towpath/collective/algorithms/building.hpp"

namespace towpath::collective {
namespace {

void add_rank(Schedule& schedule, const PairBlocks& blocks) {
  add_pair_blocks(schedule, blocks);
  const auto channels = static_cast<std::uint32_t>(blocks.channels);
  auto& program_blocks = schedule.ranks[static_cast<std::size_t>(blocks.rank)].blocks;
  for (int channel = 0; channel < blocks.channels; ++channel) {
    const auto own = static_cast<std::uint32_t>(channel);
    const auto part_of = [&](int rank) {
      return output(static_cast<std::uint32_t>(rank) * channels + own);
    };
    // In place the copy stores to what the others send, so it comes after them.
    Steps& copy = program_blocks[blocks.local_block(channel)].steps;
    for (int peer = 0; peer < blocks.ranks; ++peer) {
      if (peer == blocks.rank) continue;
      const std::uint32_t block = blocks.block_of(peer, channel);
      program_blocks[block].steps = {publishing(step(StepType::send, input(own))),
                                     step(StepType::receive, part_of(peer))};
      const bool is_last = copy.size() + 2 == static_cast<std::size_t>(blocks.ranks);
      copy.push_back(after(
          block, 0, is_last ? step(StepType::copy, input(own), part_of(blocks.rank)) : Step{}));
    }
  }
}

Schedule make(const AlgorithmOptions& options) {
  check_quadratic(options);
  Schedule schedule = schedule_without_blocks(
      "all_pairs_all_gather", Collective::all_gather, options,
      static_cast<std::uint32_t>(options.ranks) * static_cast<std::uint32_t>(options.channels));
  if (options.ranks == 1) return local_copy(std::move(schedule));
  for (int rank = 0; rank < options.ranks; ++rank) {
    add_rank(schedule, {rank, options.ranks, options.channels});
  }
  return schedule;
}

}  // namespace

constinit const Algorithm all_pairs_all_gather{
    .name = "all_pairs_all_gather",
    .collective = Collective::all_gather,
    .make = make,
    .description = "every rank sends its part to every other",
    .cost = "1 step, S(R-1)/R bytes",
};

}  // namespace towpath::collective
