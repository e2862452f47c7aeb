// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0

// Two-shot all-reduce: 2 steps over the wire, 2 S (R-1)/R bytes on the wire per rank. Rank r sums
// the r-th part of every rank's input and hands the sum to every rank.
#include "towpath/collective/algorithms/building.hpp"

namespace towpath::collective {
namespace {

void add_rank(Schedule& schedule, const PairBlocks& blocks) {
  add_pair_blocks(schedule, blocks);
  const auto channels = static_cast<std::uint32_t>(blocks.channels);
  RankProgram& program = schedule.ranks[static_cast<std::size_t>(blocks.rank)];
  program.scratch_chunks = channels * static_cast<std::uint32_t>(blocks.ranks - 1);
  for (int channel = 0; channel < blocks.channels; ++channel) {
    const auto part_of = [&](int rank) {
      return static_cast<std::uint32_t>(rank) * channels + static_cast<std::uint32_t>(channel);
    };
    const std::uint32_t own = part_of(blocks.rank);
    const std::uint32_t local = blocks.local_block(channel);
    Steps& reduction = program.blocks[local].steps;
    add_ordered_reduction(reduction, blocks, channel, input(own), output(own));
    reduction.back().publishes = true;
    const auto last = static_cast<std::uint32_t>(reduction.size() - 1);
    for (int peer = 0; peer < blocks.ranks; ++peer) {
      if (peer == blocks.rank) continue;
      program.blocks[blocks.block_of(peer, channel)].steps = {
          step(StepType::send, input(part_of(peer))),
          publishing(step(StepType::receive, scratch(blocks.scratch_of(peer, channel)))),
          after(local, last, step(StepType::send, output(own))),
          step(StepType::receive, output(part_of(peer)))};
    }
  }
}

Schedule make(const AlgorithmOptions& options) {
  check_quadratic(options);
  const auto ranks = static_cast<std::uint32_t>(options.ranks);
  Schedule schedule =
      schedule_without_blocks("two_shot_all_reduce", Collective::all_reduce, options,
                              ranks * static_cast<std::uint32_t>(options.channels));
  if (ranks == 1) return local_copy(std::move(schedule));
  for (int rank = 0; rank < options.ranks; ++rank) {
    add_rank(schedule, {rank, options.ranks, options.channels});
  }
  return schedule;
}

}  // namespace

constinit const Algorithm two_shot_all_reduce{
    .name = "two_shot_all_reduce",
    .collective = Collective::all_reduce,
    .make = make,
    .description = "every rank sums one part for all and hands it to all",
    .cost = "2 steps, 2S(R-1)/R bytes",
};

}  // namespace towpath::collective
