// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0

// All-pairs all-to-all: 1 step over the wire, S (R-1)/R bytes on the wire per rank.
#include "towpath/collective/algorithms/building.hpp"

namespace towpath::collective {
namespace {

Schedule make(const AlgorithmOptions& options) {
  check_quadratic(options);
  const auto channels = static_cast<std::uint32_t>(options.channels);
  Schedule schedule =
      schedule_without_blocks("all_pairs_all_to_all", Collective::all_to_all, options,
                              static_cast<std::uint32_t>(options.ranks) * channels);
  if (options.ranks == 1) return local_copy(std::move(schedule));
  const auto list_of = [&](std::vector<Step> steps) {
    auto list = std::make_shared<StepList>();
    list->steps = std::move(steps);
    list->rows = static_cast<std::uint32_t>(options.ranks);
    list->columns = channels;
    return list;
  };
  const auto own = list_of({step(StepType::copy, input(0), output(0))});
  // In place both are the same memory, which is sent before it is overwritten.
  const auto pair = list_of({step(StepType::send, input(0)), step(StepType::receive, output(0))});
  for (int rank = 0; rank < options.ranks; ++rank) {
    const PairBlocks blocks{rank, options.ranks, options.channels};
    add_pair_blocks(schedule, blocks);
    auto& program_blocks = schedule.ranks[static_cast<std::size_t>(rank)].blocks;
    for (int channel = 0; channel < options.channels; ++channel) {
      for (int peer = 0; peer < options.ranks; ++peer) {
        const bool is_own = peer == rank;
        const Rotation part{.row_shift = static_cast<std::uint32_t>(peer),
                            .column_shift = static_cast<std::uint32_t>(channel)};
        const std::uint32_t block =
            is_own ? blocks.local_block(channel) : blocks.block_of(peer, channel);
        program_blocks[block].steps = Steps(is_own ? own : pair, part);
      }
    }
  }
  return schedule;
}

}  // namespace

constinit const Algorithm all_pairs_all_to_all{
    .name = "all_pairs_all_to_all",
    .collective = Collective::all_to_all,
    .make = make,
    .description = "every rank sends every other one its part",
    .cost = "1 step, S(R-1)/R bytes",
};

}  // namespace towpath::collective
