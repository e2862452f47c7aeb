// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0

// Ring reduce-scatter: R-1 steps one after the other, S (R-1)/R bytes on the wire per rank. S is
// the array before it is scattered. Each part ends its way round at the rank that keeps it.
#include "towpath/collective/algorithms/building.hpp"

namespace towpath::collective {
namespace {

Schedule make(const AlgorithmOptions& options) {
  check_quadratic(options);
  const auto ranks = static_cast<std::uint32_t>(options.ranks);
  const auto channels = static_cast<std::uint32_t>(options.channels);
  Schedule schedule = schedule_without_blocks("ring_reduce_scatter", Collective::reduce_scatter,
                                              options, ranks * channels);
  if (ranks == 1) return local_copy(std::move(schedule));
  for (int channel = 0; channel < options.channels; ++channel) {
    const std::vector<int> ring = ring_of(options, channel);
    const auto own = static_cast<std::uint32_t>(channel);
    for (std::uint32_t position = 0; position < ranks; ++position) {
      std::vector<Step>& steps = add_ring_block(schedule, ring, position, channel, ranks).steps;
      const auto part = [&](std::uint32_t back) {
        const int keeper = ring[(position + ranks - back) % ranks];
        return input(static_cast<std::uint32_t>(keeper) * channels + own);
      };
      steps.push_back(step(StepType::send, part(1)));
      for (std::uint32_t back = 2; back < ranks; ++back) {
        steps.push_back(step(StepType::receive_reduce_send, part(back)));
      }
      steps.push_back(step(StepType::receive_reduce_copy, part(0), output(own)));
    }
  }
  return schedule;
}

}  // namespace

constinit const Algorithm ring_reduce_scatter{
    .name = "ring_reduce_scatter",
    .collective = Collective::reduce_scatter,
    .make = make,
    .description = "every part once round a ring, ending where it is kept",
    .cost = "R-1 steps, S(R-1)/R bytes",
};

}  // namespace towpath::collective
