// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0

// Ring reduce-scatter: R-1 steps one after the other, S (R-1)/R bytes on the wire per rank. S is
// the array before it is scattered. Each part ends its way round at the rank that keeps it.
#include "towpath/collective/algorithms/building.hpp"

namespace towpath::collective {
namespace {

// Of the rank at position 0 of a ring, whose parts are rows of a chunk per channel.
std::shared_ptr<StepList> steps_of_first(const std::vector<int>& ring, std::uint32_t channels) {
  const auto ranks = static_cast<std::uint32_t>(ring.size());
  std::shared_ptr<StepList> list = list_of_parts(ring, channels);
  const auto part = [&](std::uint32_t back) { return input((ranks - back) % ranks * channels); };
  std::vector<Step>& steps = list->steps;
  steps.reserve(ranks);
  steps.push_back(step(StepType::send, part(1)));
  for (std::uint32_t back = 2; back < ranks; ++back) {
    steps.push_back(step(StepType::receive_reduce_send, part(back)));
  }
  steps.push_back(step(StepType::receive_reduce_copy, part(0), output(list->places())));
  return list;
}

Schedule make(const AlgorithmOptions& options) {
  const auto ranks = static_cast<std::uint32_t>(options.ranks);
  const auto channels = static_cast<std::uint32_t>(options.channels);
  Schedule schedule = schedule_without_blocks("ring_reduce_scatter", Collective::reduce_scatter,
                                              options, ranks * channels);
  if (ranks == 1) return local_copy(std::move(schedule));
  add_rings_of_parts(schedule, options, steps_of_first);
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
