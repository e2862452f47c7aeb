// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0

// Direct gather: 1 step over the wire, S/R bytes on the wire per rank but the root. S is the
// gathered array.
#include "towpath/collective/algorithms/building.hpp"

namespace towpath::collective {
namespace {

Schedule make(const AlgorithmOptions& options) {
  const auto channels = static_cast<std::uint32_t>(options.channels);
  Schedule schedule = schedule_without_blocks("direct_gather", Collective::gather, options,
                                              static_cast<std::uint32_t>(options.ranks) * channels);
  if (options.ranks == 1) return local_copy(std::move(schedule));
  RankProgram& root = schedule.ranks[static_cast<std::size_t>(options.root)];
  for (int channel = 0; channel < options.channels; ++channel) {
    const auto own = static_cast<std::uint32_t>(channel);
    for (int rank = 0; rank < options.ranks; ++rank) {
      const Chunk gathered = output(static_cast<std::uint32_t>(rank) * channels + own);
      if (rank == options.root) {
        add_block(root, kNone, kNone, channel).steps = {step(StepType::copy, input(own), gathered)};
      } else {
        add_block(root, rank, kNone, channel).steps = {step(StepType::receive, gathered)};
        add_block(schedule.ranks[static_cast<std::size_t>(rank)], kNone, options.root, channel)
            .steps = {step(StepType::send, input(own))};
      }
    }
  }
  return schedule;
}

}  // namespace

constinit const Algorithm direct_gather{
    .name = "direct_gather",
    .collective = Collective::gather,
    .make = make,
    .description = "every rank sends its part to the root",
    .cost = "1 step, S/R bytes",
};

}  // namespace towpath::collective
