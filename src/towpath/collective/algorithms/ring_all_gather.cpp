// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0

// Ring all-gather: R-1 steps one after the other, S (R-1)/R bytes on the wire per rank. S is the
// gathered array. Every part travels round once, one chunk of it on each channel.
#include "towpath/collective/algorithms/building.hpp"

namespace towpath::collective {
namespace {

Schedule make(const AlgorithmOptions& options) {
  check_quadratic(options);
  const auto ranks = static_cast<std::uint32_t>(options.ranks);
  const auto channels = static_cast<std::uint32_t>(options.channels);
  Schedule schedule =
      schedule_without_blocks("ring_all_gather", Collective::all_gather, options, ranks * channels);
  if (ranks == 1) return local_copy(std::move(schedule));
  for (int channel = 0; channel < options.channels; ++channel) {
    const std::vector<int> ring = ring_of(options, channel);
    const auto own = static_cast<std::uint32_t>(channel);
    for (std::uint32_t position = 0; position < ranks; ++position) {
      std::vector<Step>& steps = add_ring_block(schedule, ring, position, channel, ranks).steps;
      const auto gathered = [&](std::uint32_t back) {
        const int source = ring[(position + ranks - back) % ranks];
        return output(static_cast<std::uint32_t>(source) * channels + own);
      };
      steps.push_back(step(StepType::send, input(own)));
      for (std::uint32_t back = 1; back < ranks - 1; ++back) {
        steps.push_back(step(StepType::receive_copy_send, gathered(back)));
      }
      steps.push_back(step(StepType::receive, gathered(ranks - 1)));
    }
  }
  add_own_copies(schedule);
  return schedule;
}

}  // namespace

constinit const Algorithm ring_all_gather{
    .name = "ring_all_gather",
    .collective = Collective::all_gather,
    .make = make,
    .description = "every part once round a ring",
    .cost = "R-1 steps, S(R-1)/R bytes",
};

}  // namespace towpath::collective
