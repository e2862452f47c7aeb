// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0

// Direct scatter: 1 step over the wire, S (R-1)/R bytes on the wire from the root. S is the root's
// array.
#include "towpath/collective/algorithms/building.hpp"

namespace towpath::collective {
namespace {

Schedule make(const AlgorithmOptions& options) {
  const auto channels = static_cast<std::uint32_t>(options.channels);
  Schedule schedule = schedule_without_blocks("direct_scatter", Collective::scatter, options,
                                              static_cast<std::uint32_t>(options.ranks) * channels);
  if (options.ranks == 1) return local_copy(std::move(schedule));
  RankProgram& root = schedule.ranks[static_cast<std::size_t>(options.root)];
  for (int channel = 0; channel < options.channels; ++channel) {
    const auto own = static_cast<std::uint32_t>(channel);
    for (int rank = 0; rank < options.ranks; ++rank) {
      const Chunk part = input(static_cast<std::uint32_t>(rank) * channels + own);
      if (rank == options.root) {
        add_block(root, kNone, kNone, channel).steps = {step(StepType::copy, part, output(own))};
      } else {
        add_block(root, kNone, rank, channel).steps = {step(StepType::send, part)};
        add_block(schedule.ranks[static_cast<std::size_t>(rank)], options.root, kNone, channel)
            .steps = {step(StepType::receive, output(own))};
      }
    }
  }
  return schedule;
}

}  // namespace

constinit const Algorithm direct_scatter{
    .name = "direct_scatter",
    .collective = Collective::scatter,
    .make = make,
    .description = "the root sends every rank its part",
    .cost = "1 step, S(R-1)/R bytes of the root",
};

}  // namespace towpath::collective
