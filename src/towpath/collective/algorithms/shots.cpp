// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "towpath/collective/algorithms/building.hpp"
#include "towpath/collective/algorithms/building_one_sided.hpp"

namespace towpath::collective {
namespace {

// One-shot all-reduce: 1 network step, S wire bytes per rank. Every rank receives every input
// and sums locally: fastest for small sizes, most expensive for large ones.
void build_one_shot_all_reduce(Schedule& schedule, const AlgorithmOptions& options) {
  for (int rank = 0; rank < options.ranks; ++rank) {
    const PairBlocks blocks{rank, options.ranks, options.channels};
    add_pair_blocks(schedule, blocks);
    RankProgram& program = program_of(schedule, rank);
    program.scratch_chunks = options.channels * (options.ranks - 1);
    for (int channel = 0; channel < options.channels; ++channel) {
      for (int peer = 0; peer < options.ranks; ++peer) {
        if (peer == rank) continue;
        program.blocks[blocks.block_of(peer, channel)].steps = {
            step(StepType::send, input(channel)),
            publishing(step(StepType::receive, scratch(blocks.scratch_of(peer, channel))))};
      }
      // In place, the result overwrites the source of the sends above. Each of those thread blocks
      // sends before it receives, and all receives are awaited.
      add_ordered_reduction(program.blocks[blocks.local_block(channel)].steps, blocks, channel,
                            input(channel), output(channel));
    }
  }
}

// Two-shot all-reduce: 2 network steps, 2 S (R-1)/R wire bytes per rank. Rank r sums the r-th part
// of every input and sends the sum to every rank.
void add_rank(Schedule& schedule, const PairBlocks& blocks) {
  add_pair_blocks(schedule, blocks);
  RankProgram& program = program_of(schedule, blocks.rank);
  program.scratch_chunks = blocks.channels * (blocks.ranks - 1);
  for (int channel = 0; channel < blocks.channels; ++channel) {
    const auto part_of = [&](int rank) { return rank * blocks.channels + channel; };
    const int own = part_of(blocks.rank);
    const std::uint32_t local = blocks.local_block(channel);
    Steps& reduction = program.blocks[local].steps;
    add_ordered_reduction(reduction, blocks, channel, input(own), output(own));
    reduction.back().publishes = true;
    const std::int64_t last = reduction.size() - 1;
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

void build_two_shot_all_reduce(Schedule& schedule, const AlgorithmOptions& options) {
  for (int rank = 0; rank < options.ranks; ++rank) {
    add_rank(schedule, {rank, options.ranks, options.channels});
  }
}

// All-reduce by loads from peer memory, like vLLM's custom all-reduce within a host. One-shot:
// every rank loads and sums all arrays; 1 step, S(R-1) bytes loaded. Peers read its input until the
// end, so it does not run in place. Two-shot: every rank sums one part, then loads the other sums;
// 2 steps, 2S(R-1)/R bytes. Each has two barriers: at the start for the inputs, and before the end
// or between the steps.

// A chunk of every rank, starting with rank `first`.
std::vector<Operand> chunk_of_all(const Schedule& schedule, int self, int first, Chunk chunk) {
  std::vector<int> ranks = all_ranks(schedule);
  std::rotate(ranks.begin(), ranks.begin() + first, ranks.end());
  std::vector<Operand> operands;
  for (const int rank : ranks) operands.push_back(of_rank(self, rank, chunk));
  return operands;
}

void build_one_shot_pull_all_reduce(Schedule& schedule, const AlgorithmOptions& options) {
  schedule.in_place = false;
  const std::vector<int> ranks = all_ranks(schedule);
  for (const int rank : ranks) {
    for (int channel = 0; channel < options.channels; ++channel) {
      ThreadBlock& block = add_block_to(schedule, rank);
      add_meeting(block, rank, ranks, channel, true);
      add_direct(block, chunk_of_all(schedule, rank, 0, input(channel)), {own(output(channel))});
      add_meeting(block, rank, ranks, channel);
    }
  }
}

void build_two_shot_pull_all_reduce(Schedule& schedule, const AlgorithmOptions& options) {
  const std::vector<int> ranks = all_ranks(schedule);
  for (const int rank : ranks) {
    program_of(schedule, rank).scratch_chunks = schedule.channels;
    for (int channel = 0; channel < options.channels; ++channel) {
      const auto part_of = [&](int of) { return of * options.channels + channel; };
      ThreadBlock& block = add_block_to(schedule, rank);
      add_meeting(block, rank, ranks, channel, true);
      add_direct(block, chunk_of_all(schedule, rank, rank, input(part_of(rank))),
                 {own(scratch(channel))});
      add_meeting(block, rank, ranks, channel);
      block.steps.push_back(step(StepType::copy, scratch(channel), output(part_of(rank))));
      for (int i = 1; i < options.ranks; ++i) {
        const int from = (rank + i) % options.ranks;
        add_direct(block, {of_peer(from, scratch(channel))}, {own(output(part_of(from)))});
      }
    }
  }
}

// All-reduce by stores to peer memory, without barriers: every rank stores its array to a place of
// its own at every rank, and polls those places until they hold data (Lamport buffers, and in LL
// each word has a flag). 1 step, S(R-1) bytes stored. Calls in a row use two sets of places: a rank
// stores to a set again when all have read it, since it has their data of the call between.
void build_one_shot_push_all_reduce(Schedule& schedule, const AlgorithmOptions& options) {
  schedule.has_double_scratch = true;
  const auto packets = [](Operand operand) {
    operand.is_packet = true;
    return operand;
  };
  for (const int rank : all_ranks(schedule)) {
    program_of(schedule, rank).scratch_chunks = options.ranks * options.channels;
    for (int channel = 0; channel < options.channels; ++channel) {
      const auto place_of = [&](int of) { return scratch(of * options.channels + channel); };
      std::vector<Operand> stored;
      std::vector<Operand> polled;
      for (const int other : all_ranks(schedule)) {
        stored.push_back(packets(of_rank(rank, other, place_of(rank))));
        polled.push_back(packets(own(place_of(other))));
      }
      ThreadBlock& block = add_block_to(schedule, rank);
      add_direct(block, {own(input(channel))}, std::move(stored));
      add_direct(block, std::move(polled), {own(output(channel))});
    }
  }
}

// Between the two barriers, every rank loads and sums one part of all arrays, and stores the sum to
// all: 2S(R-1)/R bytes, half of them loaded.
void build_two_shot_pull_push_all_reduce(Schedule& schedule, const AlgorithmOptions& options) {
  const std::vector<int> ranks = all_ranks(schedule);
  for (const int rank : ranks) {
    for (int channel = 0; channel < options.channels; ++channel) {
      const int part = rank * options.channels + channel;
      ThreadBlock& block = add_block_to(schedule, rank);
      add_meeting(block, rank, ranks, channel, true);
      add_direct(block, chunk_of_all(schedule, rank, rank, input(part)),
                 chunk_of_all(schedule, rank, rank, output(part)));
      add_meeting(block, rank, ranks, channel);
    }
  }
}

}  // namespace

constinit const Algorithm one_shot_all_reduce{
    .name = "one_shot_all_reduce",
    .collective = Collective::all_reduce,
    .build = build_one_shot_all_reduce,
    .description = "every rank sends its whole input to every other and adds up by itself",
    .cost = "1 step, S(R-1) bytes",
    .chunks = chunk_per_channel,
    .is_quadratic = true,
};

constinit const Algorithm two_shot_all_reduce{
    .name = "two_shot_all_reduce",
    .collective = Collective::all_reduce,
    .build = build_two_shot_all_reduce,
    .description = "every rank sums one part for all and hands it to all",
    .cost = "2 steps, 2S(R-1)/R bytes",
    .is_quadratic = true,
};

constinit const Algorithm one_shot_pull_all_reduce{
    .name = "one_shot_pull_all_reduce",
    .collective = Collective::all_reduce,
    .build = build_one_shot_pull_all_reduce,
    .description = "every rank loads every other's whole input and adds up by itself",
    .cost = "1 step, S(R-1) bytes loaded",
    .chunks = chunk_per_channel,
    .is_quadratic = true,
    .reach = Reach::memory,
};

constinit const Algorithm two_shot_pull_all_reduce{
    .name = "two_shot_pull_all_reduce",
    .collective = Collective::all_reduce,
    .build = build_two_shot_pull_all_reduce,
    .description = "every rank loads and sums one part of all, and loads the others' sums",
    .cost = "2 steps, 2S(R-1)/R bytes loaded",
    .is_quadratic = true,
    .reach = Reach::memory,
};

constinit const Algorithm one_shot_push_all_reduce{
    .name = "one_shot_push_all_reduce",
    .collective = Collective::all_reduce,
    .build = build_one_shot_push_all_reduce,
    .description = "every rank stores its whole input to every other, which polls the data itself",
    .cost = "1 step, S(R-1) bytes stored",
    .chunks = chunk_per_channel,
    .is_quadratic = true,
    .reach = Reach::memory,
};

constinit const Algorithm two_shot_pull_push_all_reduce{
    .name = "two_shot_pull_push_all_reduce",
    .collective = Collective::all_reduce,
    .build = build_two_shot_pull_push_all_reduce,
    .description = "every rank loads and sums one part of all, and stores the sum to all",
    .cost = "1 step, S(R-1)/R bytes loaded and stored",
    .is_quadratic = true,
    .reach = Reach::memory,
};

}  // namespace towpath::collective
