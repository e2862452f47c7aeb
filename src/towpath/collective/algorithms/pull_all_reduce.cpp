// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0

// All-reduce by loads from the peers' memory, as vLLM's custom all-reduce does it inside a host.
// One-shot: every rank loads and adds up the whole array of all; 1 step, S(R-1) bytes loaded. The
// peers read its input till the end, so it does not run in place. Two-shot: every rank adds up one
// part, and then loads the others' sums; 2 steps, 2S(R-1)/R bytes. Two meetings of all ranks each:
// at the beginning, when all inputs are there, and before the end, or between the steps.
#include <algorithm>

#include "towpath/collective/algorithms/building_one_sided.hpp"

namespace towpath::collective {
namespace {

// A chunk of every rank, beginning with that of rank `first`.
std::vector<Operand> chunk_of_all(const Schedule& schedule, int self, int first, Chunk chunk) {
  std::vector<int> ranks = all_ranks(schedule);
  std::rotate(ranks.begin(), ranks.begin() + first, ranks.end());
  std::vector<Operand> operands;
  for (const int rank : ranks) operands.push_back(of_rank(self, rank, chunk));
  return operands;
}

Schedule make_one_shot_pull_all_reduce(const AlgorithmOptions& options) {
  check_one_sided(options);
  const auto channels = static_cast<std::uint32_t>(options.channels);
  Schedule schedule = schedule_without_blocks("one_shot_pull_all_reduce", Collective::all_reduce,
                                              options, channels);
  if (options.ranks == 1) return local_copy(std::move(schedule));
  schedule.in_place = false;
  const std::vector<int> ranks = all_ranks(schedule);
  for (const int rank : ranks) {
    for (std::uint32_t channel = 0; channel < channels; ++channel) {
      const int number = static_cast<int>(channel);
      ThreadBlock& block = add_block_to(schedule, rank);
      add_meeting(block, rank, ranks, number, true);
      add_direct(block, chunk_of_all(schedule, rank, 0, input(channel)), {own(output(channel))});
      add_meeting(block, rank, ranks, number);
    }
  }
  return schedule;
}

Schedule make_two_shot_pull_all_reduce(const AlgorithmOptions& options) {
  check_one_sided(options);
  const auto channels = static_cast<std::uint32_t>(options.channels);
  const auto count = static_cast<std::uint32_t>(options.ranks);
  Schedule schedule = schedule_without_blocks("two_shot_pull_all_reduce", Collective::all_reduce,
                                              options, channels * count);
  if (options.ranks == 1) return local_copy(std::move(schedule));
  const std::vector<int> ranks = all_ranks(schedule);
  for (const int rank : ranks) {
    schedule.ranks[static_cast<std::size_t>(rank)].scratch_chunks = channels;
    for (std::uint32_t channel = 0; channel < channels; ++channel) {
      const int number = static_cast<int>(channel);
      const auto part_of = [&](int of) {
        return static_cast<std::uint32_t>(of) * channels + channel;
      };
      ThreadBlock& block = add_block_to(schedule, rank);
      add_meeting(block, rank, ranks, number, true);
      add_direct(block, chunk_of_all(schedule, rank, rank, input(part_of(rank))),
                 {own(scratch(channel))});
      add_meeting(block, rank, ranks, number);
      block.steps.push_back(step(StepType::copy, scratch(channel), output(part_of(rank))));
      for (int i = 1; i < options.ranks; ++i) {
        const int from = (rank + i) % options.ranks;
        add_direct(block, {of_peer(from, scratch(channel))}, {own(output(part_of(from)))});
      }
    }
  }
  return schedule;
}

}  // namespace

constinit const Algorithm one_shot_pull_all_reduce{
    .name = "one_shot_pull_all_reduce",
    .collective = Collective::all_reduce,
    .make = make_one_shot_pull_all_reduce,
    .description = "every rank loads every other's whole input and adds up by itself",
    .cost = "1 step, S(R-1) bytes loaded",
    .reach = Reach::memory,
};

constinit const Algorithm two_shot_pull_all_reduce{
    .name = "two_shot_pull_all_reduce",
    .collective = Collective::all_reduce,
    .make = make_two_shot_pull_all_reduce,
    .description = "every rank loads and sums one part of all, and loads the others' sums",
    .cost = "2 steps, 2S(R-1)/R bytes loaded",
    .reach = Reach::memory,
};

}  // namespace towpath::collective
