// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0

// Bruck's all-gather: log2(R) steps over the wire one after the other, rounded up, S (R-1)/R bytes
// on the wire per rank. S is the gathered array. In each round, a rank sends all that it has to one
// twice as far. With one channel, these are one or two transfers, otherwise one per part.
#include <algorithm>

#include "towpath/collective/algorithms/building.hpp"

namespace towpath::collective {
namespace {

// Parts of the array, round its end.
struct Parts {
  int first;
  int count;
};

void add_parts(Steps& steps, StepType type, Parts parts, const Schedule& schedule, int channel) {
  auto [first, count] = parts;
  const int ranks = schedule.rank_count();
  const int channels = static_cast<int>(schedule.channels);
  while (count > 0) {
    const int together =
        channels > 1 ? 1 : std::min({count, ranks - first, static_cast<int>(kSegmentChunks)});
    steps.push_back(step(type, output(static_cast<std::uint32_t>(first * channels + channel)),
                         static_cast<std::uint32_t>(together)));
    count -= together;
    first = (first + together) % ranks;
  }
}

void add_rank(Schedule& schedule, int rank, int channel) {
  const int ranks = schedule.rank_count();
  const auto channels = static_cast<int>(schedule.channels);
  RankProgram& program = schedule.ranks[static_cast<std::size_t>(rank)];
  add_block(program, kNone, kNone, channel)
      .steps.push_back(
          publishing(step(StepType::copy, input(static_cast<std::uint32_t>(channel)),
                          output(static_cast<std::uint32_t>(rank * channels + channel)))));
  std::vector<std::uint32_t> before = {last_block(program)};  // what was added in the last round
  for (int distance = 1; distance < ranks; distance *= 2) {
    const int parts = std::min(distance, ranks - distance);
    const int sender = (rank + ranks - distance) % ranks;
    ThreadBlock& sending = add_block(program, kNone, (rank + distance) % ranks, channel);
    for (std::size_t i = 0; i + 1 < before.size(); ++i) sending.steps.push_back(Step{});
    add_parts(sending.steps, StepType::send, {(rank + ranks - parts + 1) % ranks, parts}, schedule,
              channel);
    for (std::size_t i = 0; i < before.size(); ++i) {
      Steps& awaited = program.blocks[before[i]].steps;
      awaited.back().publishes = true;
      sending.steps[i] =
          after(before[i], static_cast<std::uint32_t>(awaited.size() - 1), sending.steps[i]);
    }
    before = {last_block(program)};
    ThreadBlock& receiving = add_block(program, sender, kNone, channel);
    add_parts(receiving.steps, StepType::receive, {(sender + ranks - parts + 1) % ranks, parts},
              schedule, channel);
    before.push_back(last_block(program));
  }
}

Schedule make(const AlgorithmOptions& options) {
  check_quadratic(options);
  Schedule schedule = schedule_without_blocks(
      "bruck_all_gather", Collective::all_gather, options,
      static_cast<std::uint32_t>(options.ranks) * static_cast<std::uint32_t>(options.channels));
  if (options.ranks == 1) return local_copy(std::move(schedule));
  for (int rank = 0; rank < options.ranks; ++rank) {
    for (int channel = 0; channel < options.channels; ++channel) add_rank(schedule, rank, channel);
  }
  return schedule;
}

}  // namespace

constinit const Algorithm bruck_all_gather{
    .name = "bruck_all_gather",
    .collective = Collective::all_gather,
    .make = make,
    .description = "all that a rank has, to ever farther ranks",
    .cost = "log2(R) steps, S(R-1)/R bytes",
};

}  // namespace towpath::collective
