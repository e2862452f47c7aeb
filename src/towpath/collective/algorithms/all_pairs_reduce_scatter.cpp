// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0

// All-pairs reduce-scatter: 1 step over the wire, S (R-1)/R bytes on the wire per rank. S is the
// array before it is scattered. Every rank gets its part of every input and adds them up.
#include "towpath/collective/algorithms/building.hpp"

namespace towpath::collective {
namespace {

Schedule make(const AlgorithmOptions& options) {
  check_quadratic(options);
  const auto channels = static_cast<std::uint32_t>(options.channels);
  Schedule schedule =
      schedule_without_blocks("all_pairs_reduce_scatter", Collective::reduce_scatter, options,
                              static_cast<std::uint32_t>(options.ranks) * channels);
  if (options.ranks == 1) return local_copy(std::move(schedule));
  for (int rank = 0; rank < options.ranks; ++rank) {
    const PairBlocks blocks{rank, options.ranks, options.channels};
    add_pair_blocks(schedule, blocks);
    RankProgram& program = schedule.ranks[static_cast<std::size_t>(rank)];
    program.scratch_chunks = channels * static_cast<std::uint32_t>(options.ranks - 1);
    for (int channel = 0; channel < options.channels; ++channel) {
      const auto kept = static_cast<std::uint32_t>(channel);
      const auto part_of = [&](int keeper) {
        return input(static_cast<std::uint32_t>(keeper) * channels + kept);
      };
      for (int peer = 0; peer < options.ranks; ++peer) {
        if (peer == rank) continue;
        program.blocks[blocks.block_of(peer, channel)].steps = {
            step(StepType::send, part_of(peer)),
            publishing(step(StepType::receive, scratch(blocks.scratch_of(peer, channel))))};
      }
      add_ordered_reduction(program.blocks[blocks.local_block(channel)].steps, blocks, channel,
                            part_of(rank), output(kept));
    }
  }
  return schedule;
}

}  // namespace

constinit const Algorithm all_pairs_reduce_scatter{
    .name = "all_pairs_reduce_scatter",
    .collective = Collective::reduce_scatter,
    .make = make,
    .description = "every rank gets its part of every input and adds up by itself",
    .cost = "1 step, S(R-1)/R bytes",
};

}  // namespace towpath::collective
