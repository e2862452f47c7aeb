// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/collective/algorithms/building.hpp"

namespace towpath::collective {

// All-pairs all-gather: 1 network step, S (R-1)/R wire bytes per rank. S is the gathered array.
// Every rank sends its part to every other rank.
namespace {

void add_all_gather_rank(Schedule& schedule, const PairBlocks& blocks) {
  add_pair_blocks(schedule, blocks);
  const auto channels = static_cast<std::uint32_t>(blocks.channels);
  auto& program_blocks = schedule.ranks[static_cast<std::size_t>(blocks.rank)].blocks;
  for (int channel = 0; channel < blocks.channels; ++channel) {
    const auto own = static_cast<std::uint32_t>(channel);
    const auto part_of = [&](int rank) {
      return output(static_cast<std::uint32_t>(rank) * channels + own);
    };
    // In place, the copy overwrites data to be sent, so it follows the sends.
    Steps& copy = program_blocks[blocks.local_block(channel)].steps;
    for (int peer = 0; peer < blocks.ranks; ++peer) {
      if (peer == blocks.rank) continue;
      const std::uint32_t block = blocks.block_of(peer, channel);
      program_blocks[block].steps = {publishing(step(StepType::send, input(own))),
                                     step(StepType::receive, part_of(peer))};
      const bool is_last = copy.size() + 2 == static_cast<std::size_t>(blocks.ranks);
      copy.push_back(after(
          block, 0, is_last ? step(StepType::copy, input(own), part_of(blocks.rank)) : Step{}));
    }
  }
}

Schedule make_all_pairs_all_gather(const AlgorithmOptions& options) {
  check_quadratic(options);
  Schedule schedule = schedule_without_blocks(
      "all_pairs_all_gather", Collective::all_gather, options,
      static_cast<std::uint32_t>(options.ranks) * static_cast<std::uint32_t>(options.channels));
  if (options.ranks == 1) return local_copy(std::move(schedule));
  for (int rank = 0; rank < options.ranks; ++rank) {
    add_all_gather_rank(schedule, {rank, options.ranks, options.channels});
  }
  return schedule;
}

}  // namespace

constinit const Algorithm all_pairs_all_gather{
    .name = "all_pairs_all_gather",
    .collective = Collective::all_gather,
    .make = make_all_pairs_all_gather,
    .description = "every rank sends its part to every other",
    .cost = "1 step, S(R-1)/R bytes",
};

// All-pairs reduce-scatter: 1 network step, S (R-1)/R wire bytes per rank. S is the array before
// scattering. Every rank receives its part of every input and sums them.
namespace {

Schedule make_all_pairs_reduce_scatter(const AlgorithmOptions& options) {
  check_quadratic(options);
  // A channel has one piece of a part per reducing thread block.
  const auto reducers = static_cast<std::uint32_t>(options.reducers);
  const auto pieces = static_cast<std::uint32_t>(options.channels) * reducers;
  Schedule schedule =
      schedule_without_blocks("all_pairs_reduce_scatter", Collective::reduce_scatter, options,
                              static_cast<std::uint32_t>(options.ranks) * pieces);
  if (options.ranks == 1) return local_copy(std::move(schedule));
  for (int rank = 0; rank < options.ranks; ++rank) {
    const PairBlocks blocks{rank, options.ranks, options.channels, options.reducers};
    add_pair_blocks(schedule, blocks);
    RankProgram& program = schedule.ranks[static_cast<std::size_t>(rank)];
    program.scratch_chunks = pieces * static_cast<std::uint32_t>(options.ranks - 1);
    const auto part_of = [&](int keeper, int piece) {
      return input(static_cast<std::uint32_t>(keeper) * pieces + static_cast<std::uint32_t>(piece));
    };
    for (int channel = 0; channel < options.channels; ++channel) {
      const int first = channel * options.reducers;
      for (int peer = 0; peer < options.ranks; ++peer) {
        if (peer == rank) continue;
        const Chunk received = scratch(blocks.scratch_of(peer, first));
        program.blocks[blocks.block_of(peer, channel)].steps = {
            step(StepType::send, part_of(peer, first), reducers),
            publishing(step(StepType::receive, received, reducers))};
      }
    }
    for (int piece = 0; piece < blocks.pieces(); ++piece) {
      add_ordered_reduction(program.blocks[blocks.local_block(piece)].steps, blocks, piece,
                            part_of(rank, piece), output(static_cast<std::uint32_t>(piece)));
    }
  }
  return schedule;
}

}  // namespace

constinit const Algorithm all_pairs_reduce_scatter{
    .name = "all_pairs_reduce_scatter",
    .collective = Collective::reduce_scatter,
    .make = make_all_pairs_reduce_scatter,
    .description = "every rank gets its part of every input and adds up by itself",
    .cost = "1 step, S(R-1)/R bytes",
};

// All-pairs all-to-all: 1 network step, S (R-1)/R wire bytes per rank.
namespace {

Schedule make_all_pairs_all_to_all(const AlgorithmOptions& options) {
  check_quadratic(options);
  const auto channels = static_cast<std::uint32_t>(options.channels);
  Schedule schedule =
      schedule_without_blocks("all_pairs_all_to_all", Collective::all_to_all, options,
                              static_cast<std::uint32_t>(options.ranks) * channels);
  if (options.ranks == 1) return local_copy(std::move(schedule));
  const auto list_of = [&](std::vector<Step> steps) {
    auto list = std::make_shared<StepList>();
    list->steps = std::move(steps);
    list->rows = static_cast<std::uint32_t>(options.ranks);
    list->columns = channels;
    return list;
  };
  const auto own = list_of({step(StepType::copy, input(0), output(0))});
  // In place, both are the same memory, so the send comes first.
  const auto pair = list_of({step(StepType::send, input(0)), step(StepType::receive, output(0))});
  for (int rank = 0; rank < options.ranks; ++rank) {
    const PairBlocks blocks{rank, options.ranks, options.channels};
    add_pair_blocks(schedule, blocks);
    auto& program_blocks = schedule.ranks[static_cast<std::size_t>(rank)].blocks;
    for (int channel = 0; channel < options.channels; ++channel) {
      for (int peer = 0; peer < options.ranks; ++peer) {
        const bool is_own = peer == rank;
        const Rotation part{.row_shift = static_cast<std::uint32_t>(peer),
                            .column_shift = static_cast<std::uint32_t>(channel)};
        const std::uint32_t block =
            is_own ? blocks.local_block(channel) : blocks.block_of(peer, channel);
        program_blocks[block].steps = Steps(is_own ? own : pair, part);
      }
    }
  }
  return schedule;
}

}  // namespace

constinit const Algorithm all_pairs_all_to_all{
    .name = "all_pairs_all_to_all",
    .collective = Collective::all_to_all,
    .make = make_all_pairs_all_to_all,
    .description = "every rank sends every other one its part",
    .cost = "1 step, S(R-1)/R bytes",
};

// All-pairs all-to-all with unequal parts: 1 network step, at most S (R-1)/R wire bytes per rank.
// Each rank has space for equal parts of channels * chunks_per_channel chunks. The pattern gives
// the number of chunks sent from the start of each part.
namespace {

void add_all_to_all_rank(Schedule& schedule, const PairBlocks& blocks, std::uint32_t part_chunks) {
  add_pair_blocks(schedule, blocks);
  auto& program_blocks = schedule.ranks[static_cast<std::size_t>(blocks.rank)].blocks;
  const auto count = [&](int from, int to) {
    return schedule
        .pattern[static_cast<std::size_t>(from) * static_cast<std::size_t>(blocks.ranks) +
                 static_cast<std::size_t>(to)];
  };
  for (int channel = 0; channel < blocks.channels; ++channel) {
    for (int peer = 0; peer < blocks.ranks; ++peer) {
      const bool is_own = peer == blocks.rank;
      Steps& steps =
          program_blocks[is_own ? blocks.local_block(channel) : blocks.block_of(peer, channel)]
              .steps;
      const std::uint32_t first = static_cast<std::uint32_t>(peer) * part_chunks;
      for (auto i = static_cast<std::uint32_t>(channel); i < part_chunks;
           i += static_cast<std::uint32_t>(blocks.channels)) {
        const Chunk out = input(first + i);
        const Chunk in = output(first + i);
        // In place, both are the same memory, so the send comes first.
        if (is_own && i < count(peer, peer)) steps.push_back(step(StepType::copy, out, in));
        if (!is_own && i < count(blocks.rank, peer)) steps.push_back(step(StepType::send, out));
        if (!is_own && i < count(peer, blocks.rank)) steps.push_back(step(StepType::receive, in));
      }
    }
  }
}

Schedule make_all_pairs_all_to_all_v(const AlgorithmOptions& options) {
  check_quadratic(options);
  const auto ranks = static_cast<std::uint32_t>(options.ranks);
  const std::uint32_t part_chunks = static_cast<std::uint32_t>(options.channels) *
                                    static_cast<std::uint32_t>(options.chunks_per_channel);
  Schedule schedule = schedule_without_blocks("all_pairs_all_to_all_v", Collective::all_to_all_v,
                                              options, ranks * part_chunks);
  schedule.pattern = options.pattern;
  if (schedule.pattern.empty()) {
    schedule.pattern.assign(std::size_t{ranks} * ranks, part_chunks);
  }
  check_structure(schedule);
  for (int rank = 0; rank < options.ranks; ++rank) {
    add_all_to_all_rank(schedule, {rank, options.ranks, options.channels}, part_chunks);
  }
  return schedule;
}

}  // namespace

constinit const Algorithm all_pairs_all_to_all_v{
    .name = "all_pairs_all_to_all_v",
    .collective = Collective::all_to_all_v,
    .make = make_all_pairs_all_to_all_v,
    .description = "every rank sends every other one as much of its part as the pattern says",
    .cost = "1 step, S(R-1)/R bytes at most",
};

// Direct send and receive: K sequential steps for K chunks per channel, S wire bytes per rank. The
// pattern maps senders to receivers. Without a pattern, each rank sends to the next.
namespace {

Schedule make_direct_send_recv(const AlgorithmOptions& options) {
  const auto ranks = static_cast<std::uint32_t>(options.ranks);
  const auto per_channel = static_cast<std::uint32_t>(options.chunks_per_channel);
  Schedule schedule =
      schedule_without_blocks("direct_send_recv", Collective::send_recv, options,
                              per_channel * static_cast<std::uint32_t>(options.channels));
  schedule.pattern = options.pattern;
  for (std::uint32_t rank = 0; options.pattern.empty() && rank < ranks; ++rank) {
    schedule.pattern.push_back((rank + 1) % ranks);
  }
  check_structure(schedule);
  for (int channel = 0; channel < options.channels; ++channel) {
    const std::uint32_t first = static_cast<std::uint32_t>(channel) * per_channel;
    for (std::uint32_t rank = 0; rank < ranks; ++rank) {
      add_block(schedule.ranks[rank], kNone, kNone, channel);
    }
    for (std::uint32_t rank = 0; rank < ranks; ++rank) {
      const std::uint32_t target = schedule.pattern[rank];
      ThreadBlock& block = schedule.ranks[rank].blocks.back();
      if (target != rank) {
        block.send_peer = static_cast<int>(target);
        schedule.ranks[target].blocks.back().receive_peer = static_cast<int>(rank);
      }
      for (std::uint32_t chunk = first; chunk < first + per_channel; ++chunk) {
        if (target == rank) {
          block.steps.push_back(step(StepType::copy, input(chunk), output(chunk)));
        } else {
          // In place, both are the same memory, so the send comes first.
          block.steps.push_back(step(StepType::send, input(chunk)));
          block.steps.push_back(step(StepType::receive, output(chunk)));
        }
      }
    }
  }
  return schedule;
}

}  // namespace

constinit const Algorithm direct_send_recv{
    .name = "direct_send_recv",
    .collective = Collective::send_recv,
    .make = make_direct_send_recv,
    .description = "every rank sends its array to one rank and receives another one's",
    .cost = "K steps, S bytes",
};

// Direct gather: 1 network step, S/R wire bytes per rank except the root. S is the gathered array.
namespace {

Schedule make_direct_gather(const AlgorithmOptions& options) {
  const auto channels = static_cast<std::uint32_t>(options.channels);
  Schedule schedule = schedule_without_blocks("direct_gather", Collective::gather, options,
                                              static_cast<std::uint32_t>(options.ranks) * channels);
  if (options.ranks == 1) return local_copy(std::move(schedule));
  RankProgram& root = schedule.ranks[static_cast<std::size_t>(options.root)];
  for (int channel = 0; channel < options.channels; ++channel) {
    const auto own = static_cast<std::uint32_t>(channel);
    for (int rank = 0; rank < options.ranks; ++rank) {
      const Chunk gathered = output(static_cast<std::uint32_t>(rank) * channels + own);
      if (rank == options.root) {
        add_block(root, kNone, kNone, channel).steps = {step(StepType::copy, input(own), gathered)};
      } else {
        add_block(root, rank, kNone, channel).steps = {step(StepType::receive, gathered)};
        add_block(schedule.ranks[static_cast<std::size_t>(rank)], kNone, options.root, channel)
            .steps = {step(StepType::send, input(own))};
      }
    }
  }
  return schedule;
}

}  // namespace

constinit const Algorithm direct_gather{
    .name = "direct_gather",
    .collective = Collective::gather,
    .make = make_direct_gather,
    .description = "every rank sends its part to the root",
    .cost = "1 step, S/R bytes",
};

// Direct scatter: 1 network step, S (R-1)/R wire bytes from the root. S is the root's array.
namespace {

Schedule make_direct_scatter(const AlgorithmOptions& options) {
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
    .make = make_direct_scatter,
    .description = "the root sends every rank its part",
    .cost = "1 step, S(R-1)/R bytes of the root",
};

}  // namespace towpath::collective
