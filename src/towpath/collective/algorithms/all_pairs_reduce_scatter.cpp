// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0

// All-pairs reduce-scatter: 1 step over the wire, S (R-1)/R bytes on the wire per rank. S is the
// array before it is scattered. Every rank gets its part of every input and adds them up.
#include "towpath/collective/algorithms/building.hpp"

namespace towpath::collective {
namespace {

Schedule make(const AlgorithmOptions& options) {
  check_quadratic(options);
  // A channel carries as many pieces of a part, and as many thread blocks add them up.
  const auto reducers = static_cast<std::uint32_t>(options.reducers);
  const auto pieces = static_cast<std::uint32_t>(options.channels) * reducers;
  Schedule schedule =
      schedule_without_blocks("all_pairs_reduce_scatter", Collective::reduce_scatter, options,
                              static_cast<std::uint32_t>(options.ranks) * pieces);
  if (options.ranks == 1) return local_copy(std::move(schedule));
  for (int rank = 0; rank < options.ranks; ++rank) {
    const PairBlocks blocks{rank, options.ranks, options.channels, options.reducers};
    add_pair_blocks(schedule, blocks);
    RankProgram& program = schedule.ranks[static_cast<std::size_t>(rank)];
    program.scratch_chunks = pieces * static_cast<std::uint32_t>(options.ranks - 1);
    const auto part_of = [&](int keeper, int piece) {
      return input(static_cast<std::uint32_t>(keeper) * pieces + static_cast<std::uint32_t>(piece));
    };
    for (int channel = 0; channel < options.channels; ++channel) {
      const int first = channel * options.reducers;
      for (int peer = 0; peer < options.ranks; ++peer) {
        if (peer == rank) continue;
        const Chunk received = scratch(blocks.scratch_of(peer, first));
        program.blocks[blocks.block_of(peer, channel)].steps = {
            step(StepType::send, part_of(peer, first), reducers),
            publishing(step(StepType::receive, received, reducers))};
      }
    }
    for (int piece = 0; piece < blocks.pieces(); ++piece) {
      add_ordered_reduction(program.blocks[blocks.local_block(piece)].steps, blocks, piece,
                            part_of(rank, piece), output(static_cast<std::uint32_t>(piece)));
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
