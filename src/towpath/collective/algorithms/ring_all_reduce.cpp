// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0

// Ring all-reduce: 2(R-1) steps one after the other, 2 S (R-1)/R bytes on the wire per rank.
// Each of the R chunks of a channel travels round once to be summed and once to be handed out.
#include "towpath/collective/algorithms/building.hpp"

namespace towpath::collective {
namespace {

// Of the rank at position 0 of a ring. The others take the same steps with chunks further on.
std::shared_ptr<StepList> steps_of_first(std::uint32_t ranks) {
  auto list = std::make_shared<StepList>();
  list->rows = ranks;
  const auto chunk = [ranks](std::uint32_t back) { return (2 * ranks - back) % ranks; };
  std::vector<Step>& steps = list->steps;
  steps.reserve(2 * ranks - 1);
  steps.push_back(step(StepType::send, input(chunk(1))));
  for (std::uint32_t back = 2; back < ranks; ++back) {
    steps.push_back(step(StepType::receive_reduce_send, input(chunk(back))));
  }
  steps.push_back(
      step(StepType::receive_reduce_copy_send, input(chunk(ranks)), output(chunk(ranks))));
  for (std::uint32_t back = ranks + 1; back < 2 * ranks - 1; ++back) {
    steps.push_back(step(StepType::receive_copy_send, output(chunk(back))));
  }
  steps.push_back(step(StepType::receive, output(chunk(2 * ranks - 1))));
  return list;
}

Schedule make(const AlgorithmOptions& options) {
  const auto ranks = static_cast<std::uint32_t>(options.ranks);
  Schedule schedule = schedule_without_blocks("ring_all_reduce", Collective::all_reduce, options,
                                              ranks * static_cast<std::uint32_t>(options.channels));
  if (ranks == 1) return local_copy(std::move(schedule));
  const std::shared_ptr<StepList> steps = steps_of_first(ranks);
  for (int channel = 0; channel < options.channels; ++channel) {
    const std::vector<int> ring = ring_of(options, channel);
    const std::uint32_t first = static_cast<std::uint32_t>(channel) * ranks;
    for (std::uint32_t position = 0; position < ranks; ++position) {
      add_ring_block(schedule, ring, position, channel).steps =
          Steps(steps, {.row_shift = position, .first_chunk = first});
    }
  }
  return schedule;
}

}  // namespace

constinit const Algorithm ring_all_reduce{
    .name = "ring_all_reduce",
    .collective = Collective::all_reduce,
    .make = make,
    .description = "every chunk once round a ring to be summed, once more to be handed out",
    .cost = "2(R-1) steps, 2S(R-1)/R bytes",
};

}  // namespace towpath::collective
