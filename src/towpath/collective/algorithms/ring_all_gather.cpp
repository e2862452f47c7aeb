// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0

// Ring all-gather: R-1 steps one after the other, S (R-1)/R bytes on the wire per rank. S is the
// gathered array. Every part travels round once, one chunk of it on each channel.
#include "towpath/collective/algorithms/building.hpp"

namespace towpath::collective {
namespace {

// Of the rank at position 0 of a ring, whose parts are rows of a chunk per channel.
std::shared_ptr<StepList> steps_of_first(const std::vector<int>& ring, std::uint32_t channels) {
  const auto ranks = static_cast<std::uint32_t>(ring.size());
  std::shared_ptr<StepList> list = list_of_parts(ring, channels);
  const auto gathered = [&](std::uint32_t back) { return output((ranks - back) * channels); };
  std::vector<Step>& steps = list->steps;
  steps.reserve(ranks);
  steps.push_back(step(StepType::send, input(list->places())));
  for (std::uint32_t back = 1; back < ranks - 1; ++back) {
    steps.push_back(step(StepType::receive_copy_send, gathered(back)));
  }
  steps.push_back(step(StepType::receive, gathered(ranks - 1)));
  return list;
}

Schedule make(const AlgorithmOptions& options) {
  const auto ranks = static_cast<std::uint32_t>(options.ranks);
  const auto channels = static_cast<std::uint32_t>(options.channels);
  Schedule schedule =
      schedule_without_blocks("ring_all_gather", Collective::all_gather, options, ranks * channels);
  if (ranks == 1) return local_copy(std::move(schedule));
  add_rings_of_parts(schedule, options, steps_of_first);
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
