// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "towpath/collective/algorithms/building.hpp"
#include "towpath/collective/algorithms/building_one_sided.hpp"

namespace towpath::collective {

// One-shot all-reduce: 1 network step, S wire bytes per rank. Every rank receives every input
// and sums locally: fastest for small sizes, most expensive for large ones.
namespace {

Schedule make_one_shot_all_reduce(const AlgorithmOptions& options) {
  check_quadratic(options);
  const auto channels = static_cast<std::uint32_t>(options.channels);
  Schedule schedule =
      schedule_without_blocks("one_shot_all_reduce", Collective::all_reduce, options, channels);
  if (options.ranks == 1) return local_copy(std::move(schedule));
  for (int rank = 0; rank < options.ranks; ++rank) {
    const PairBlocks blocks{rank, options.ranks, options.channels};
    add_pair_blocks(schedule, blocks);
    RankProgram& program = schedule.ranks[static_cast<std::size_t>(rank)];
    program.scratch_chunks = channels * static_cast<std::uint32_t>(options.ranks - 1);
    for (int channel = 0; channel < options.channels; ++channel) {
      const auto chunk = static_cast<std::uint32_t>(channel);
      for (int peer = 0; peer < options.ranks; ++peer) {
        if (peer == rank) continue;
        program.blocks[blocks.block_of(peer, channel)].steps = {
            step(StepType::send, input(chunk)),
            publishing(step(StepType::receive, scratch(blocks.scratch_of(peer, channel))))};
      }
      // In place, the result overwrites the source of the sends above. Each of those thread blocks
      // sends before it receives, and all receives are awaited.
      add_ordered_reduction(program.blocks[blocks.local_block(channel)].steps, blocks, channel,
                            input(chunk), output(chunk));
    }
  }
  return schedule;
}

}  // namespace

constinit const Algorithm one_shot_all_reduce{
    .name = "one_shot_all_reduce",
    .collective = Collective::all_reduce,
    .make = make_one_shot_all_reduce,
    .description = "every rank sends its whole input to every other and adds up by itself",
    .cost = "1 step, S(R-1) bytes",
};

// Two-shot all-reduce: 2 network steps, 2 S (R-1)/R wire bytes per rank. Rank r sums the r-th part
// of every input and sends the sum to every rank.
namespace {

void add_rank(Schedule& schedule, const PairBlocks& blocks) {
  add_pair_blocks(schedule, blocks);
  const auto channels = static_cast<std::uint32_t>(blocks.channels);
  RankProgram& program = schedule.ranks[static_cast<std::size_t>(blocks.rank)];
  program.scratch_chunks = channels * static_cast<std::uint32_t>(blocks.ranks - 1);
  for (int channel = 0; channel < blocks.channels; ++channel) {
    const auto part_of = [&](int rank) {
      return static_cast<std::uint32_t>(rank) * channels + static_cast<std::uint32_t>(channel);
    };
    const std::uint32_t own = part_of(blocks.rank);
    const std::uint32_t local = blocks.local_block(channel);
    Steps& reduction = program.blocks[local].steps;
    add_ordered_reduction(reduction, blocks, channel, input(own), output(own));
    reduction.back().publishes = true;
    const auto last = static_cast<std::uint32_t>(reduction.size() - 1);
    for (int peer = 0; peer < blocks.ranks; ++peer) {
      if (peer == blocks.rank) continue;
      program.blocks[blocks.block_of(peer, channel)].steps = {
          step(StepType::send, input(part_of(peer))),
          publishing(step(StepType::receive, scratch(blocks.scratch_of(peer, channel)))),
          after(local, last, step(StepType::send, output(own))),
          step(StepType::receive, output(part_of(peer)))};
    }
  }
}

Schedule make_two_shot_all_reduce(const AlgorithmOptions& options) {
  check_quadratic(options);
  const auto ranks = static_cast<std::uint32_t>(options.ranks);
  Schedule schedule =
      schedule_without_blocks("two_shot_all_reduce", Collective::all_reduce, options,
                              ranks * static_cast<std::uint32_t>(options.channels));
  if (ranks == 1) return local_copy(std::move(schedule));
  for (int rank = 0; rank < options.ranks; ++rank) {
    add_rank(schedule, {rank, options.ranks, options.channels});
  }
  return schedule;
}

}  // namespace

constinit const Algorithm two_shot_all_reduce{
    .name = "two_shot_all_reduce",
    .collective = Collective::all_reduce,
    .make = make_two_shot_all_reduce,
    .description = "every rank sums one part for all and hands it to all",
    .cost = "2 steps, 2S(R-1)/R bytes",
};

// All-reduce by loads from peer memory, like vLLM's custom all-reduce within a host. One-shot:
// every rank loads and sums all arrays; 1 step, S(R-1) bytes loaded. Peers read its input until the
// end, so it does not run in place. Two-shot: every rank sums one part, then loads the other sums;
// 2 steps, 2S(R-1)/R bytes. Each has two barriers: at the start for the inputs, and before the end
// or between the steps.
namespace {

// A chunk of every rank, starting with rank `first`.
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
