// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0

// One-shot all-reduce: 1 step over the wire, S bytes on the wire per rank. Every rank gets
// every input and adds them up by itself: the quickest for few bytes, the costliest for many.
#include "towpath/collective/algorithms/building.hpp"

namespace towpath::collective {
namespace {

Schedule make(const AlgorithmOptions& options) {
  check_quadratic(options);
  const auto channels = static_cast<std::uint32_t>(options.channels);
  Schedule schedule =
      schedule_without_blocks("one_shot_all_reduce", Collective::all_reduce, options, channels);
  if (options.ranks == 1) return local_copy(std::move(schedule));
  for (int rank = 0; rank < options.ranks; ++rank) {
    const PairBlocks blocks{rank, options.ranks, options.channels};
    add_pair_blocks(schedule, blocks);
    RankProgram& program = schedule.ranks[static_cast<std::size_t>(rank)];
    program.scratch_chunks = channels * static_cast<std::uint32_t>(options.ranks - 1);
    for (int channel = 0; channel < options.channels; ++channel) {
      const auto chunk = static_cast<std::uint32_t>(channel);
      for (int peer = 0; peer < options.ranks; ++peer) {
        if (peer == rank) continue;
        program.blocks[blocks.block_of(peer, channel)].steps = {
            step(StepType::send, input(chunk)),
            publishing(step(StepType::receive, scratch(blocks.scratch_of(peer, channel))))};
      }
      // In place the result overwrites what the thread blocks above send; each of them has sent
      // before it receives, and all receives are awaited.
      add_ordered_reduction(program.blocks[blocks.local_block(channel)].steps, blocks, channel,
                            input(chunk), output(chunk));
    }
  }
  return schedule;
}

}  // namespace

constinit const Algorithm one_shot_all_reduce{
    .name = "one_shot_all_reduce",
    .collective = Collective::all_reduce,
    .make = make,
    .description = "every rank sends its whole input to every other and adds up by itself",
    .cost = "1 step, S(R-1) bytes",
};

}  // namespace towpath::collective
