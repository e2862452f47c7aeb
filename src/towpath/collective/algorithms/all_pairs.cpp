// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/collective/algorithms/building.hpp"

namespace towpath::collective {
namespace {

// All-pairs all-gather: 1 network step, S (R-1)/R wire bytes per rank. S is the gathered array.
// Every rank sends its part to every other rank.
void add_all_gather_rank(Schedule& schedule, const PairBlocks& blocks) {
  add_pair_blocks(schedule, blocks);
  auto& program_blocks = program_of(schedule, blocks.rank).blocks;
  for (int channel = 0; channel < blocks.channels; ++channel) {
    const auto part_of = [&](int rank) { return output(rank * blocks.channels + channel); };
    // In place, the copy overwrites data to be sent, so it follows the sends.
    Steps& copy = program_blocks[blocks.local_block(channel)].steps;
    for (int peer = 0; peer < blocks.ranks; ++peer) {
      if (peer == blocks.rank) continue;
      const std::uint32_t block = blocks.block_of(peer, channel);
      program_blocks[block].steps = {publishing(step(StepType::send, input(channel))),
                                     step(StepType::receive, part_of(peer))};
      const bool is_last = copy.size() + 2 == index(blocks.ranks);
      copy.push_back(after(
          block, 0, is_last ? step(StepType::copy, input(channel), part_of(blocks.rank)) : Step{}));
    }
  }
}

void build_all_pairs_all_gather(Schedule& schedule, const AlgorithmOptions& options) {
  for (int rank = 0; rank < options.ranks; ++rank) {
    add_all_gather_rank(schedule, {rank, options.ranks, options.channels});
  }
}

// All-pairs reduce-scatter: 1 network step, S (R-1)/R wire bytes per rank. S is the array before
// scattering. Every rank receives its part of every input and sums them.
void build_all_pairs_reduce_scatter(Schedule& schedule, const AlgorithmOptions& options) {
  const int pieces = options.channels * options.reducers;
  for (int rank = 0; rank < options.ranks; ++rank) {
    const PairBlocks blocks{rank, options.ranks, options.channels, options.reducers};
    add_pair_blocks(schedule, blocks);
    RankProgram& program = program_of(schedule, rank);
    program.scratch_chunks = pieces * (options.ranks - 1);
    const auto part_of = [&](int keeper, int piece) { return input(keeper * pieces + piece); };
    for (int channel = 0; channel < options.channels; ++channel) {
      const int first = channel * options.reducers;
      for (int peer = 0; peer < options.ranks; ++peer) {
        if (peer == rank) continue;
        const Chunk received = scratch(blocks.scratch_of(peer, first));
        program.blocks[blocks.block_of(peer, channel)].steps = {
            step(StepType::send, part_of(peer, first), options.reducers),
            publishing(step(StepType::receive, received, options.reducers))};
      }
    }
    for (int piece = 0; piece < blocks.pieces(); ++piece) {
      add_ordered_reduction(program.blocks[blocks.local_block(piece)].steps, blocks, piece,
                            part_of(rank, piece), output(piece));
    }
  }
}

// All-pairs all-to-all: 1 network step, S (R-1)/R wire bytes per rank.
void build_all_pairs_all_to_all(Schedule& schedule, const AlgorithmOptions& options) {
  const auto list_of = [&](std::vector<Step> steps) {
    auto list = std::make_shared<StepList>();
    list->steps = std::move(steps);
    list->rows = options.ranks;
    list->columns = schedule.channels;
    return list;
  };
  const auto own = list_of({step(StepType::copy, input(0), output(0))});
  // In place, both are the same memory, so the send comes first.
  const auto pair = list_of({step(StepType::send, input(0)), step(StepType::receive, output(0))});
  for (int rank = 0; rank < options.ranks; ++rank) {
    const PairBlocks blocks{rank, options.ranks, options.channels};
    add_pair_blocks(schedule, blocks);
    auto& program_blocks = program_of(schedule, rank).blocks;
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
}

// The same as a group of NCCL's sends and receives: half of a block's threads send to a peer while
// the other half receives from it. Both halves are thread blocks here.
void build_send_receive_all_to_all(Schedule& schedule, const AlgorithmOptions& options) {
  schedule.has_half_blocks = true;
  const auto list_of = [&](const Step& step) {
    auto list = std::make_shared<StepList>();
    list->steps = {step};
    list->rows = options.ranks;
    list->columns = schedule.channels;
    return list;
  };
  const auto copy = list_of(step(StepType::copy, input(0), output(0)));
  const auto send = list_of(publishing(step(StepType::send, input(0))));
  for (int channel = 0; channel < options.channels; ++channel) {
    for (int slot = -1; slot < options.ranks - 1; ++slot) {
      // In place, both are the same memory, so a receive follows the send.
      const int sender = channel * (2 * options.ranks - 1) + 2 * slot + 1;
      const auto receive = list_of(after(sender, 0, step(StepType::receive, output(0))));
      for (int rank = 0; rank < options.ranks; ++rank) {
        const int peer = slot < rank ? slot : slot + 1;
        const auto add = [&](const std::shared_ptr<StepList>& list, int part, int from, int to) {
          const Rotation at{.row_shift = static_cast<std::uint32_t>(part),
                            .column_shift = static_cast<std::uint32_t>(channel)};
          add_block(program_of(schedule, rank), from, to, channel).steps = Steps(list, at);
        };
        if (slot < 0) {
          add(copy, rank, kNone, kNone);
        } else {
          add(send, peer, kNone, peer);
          add(receive, peer, peer, kNone);
        }
      }
    }
  }
}

// All-pairs all-to-all with unequal parts: 1 network step, at most S (R-1)/R wire bytes per rank.
// Each rank has space for equal parts of channels * chunks_per_channel chunks. The pattern gives
// the number of chunks sent from the start of each part.
void add_all_to_all_rank(Schedule& schedule, const PairBlocks& blocks, std::uint32_t part_chunks) {
  add_pair_blocks(schedule, blocks);
  auto& program_blocks = program_of(schedule, blocks.rank).blocks;
  const auto count = [&](int from, int to) {
    return schedule.pattern[index(from * blocks.ranks + to)];
  };
  for (int channel = 0; channel < blocks.channels; ++channel) {
    for (int peer = 0; peer < blocks.ranks; ++peer) {
      const bool is_own = peer == blocks.rank;
      Steps& steps =
          program_blocks[is_own ? blocks.local_block(channel) : blocks.block_of(peer, channel)]
              .steps;
      const std::uint32_t first = peer * part_chunks;
      for (std::uint32_t i = channel; i < part_chunks; i += schedule.channels) {
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

void build_all_pairs_all_to_all_v(Schedule& schedule, const AlgorithmOptions& options) {
  const std::uint32_t part_chunks = schedule.chunks / options.ranks;
  schedule.pattern = options.pattern;
  if (schedule.pattern.empty()) {
    schedule.pattern.assign(index(std::int64_t{options.ranks} * options.ranks), part_chunks);
  }
  check_structure(schedule);
  for (int rank = 0; rank < options.ranks; ++rank) {
    add_all_to_all_rank(schedule, {rank, options.ranks, options.channels}, part_chunks);
  }
}

// Direct send and receive: K sequential steps for K chunks per channel, S wire bytes per rank. The
// pattern maps senders to receivers. Without a pattern, each rank sends to the next.
void build_direct_send_recv(Schedule& schedule, const AlgorithmOptions& options) {
  const std::uint32_t ranks = options.ranks;
  const std::uint32_t per_channel = options.chunks_per_channel;
  schedule.pattern = options.pattern;
  for (std::uint32_t rank = 0; options.pattern.empty() && rank < ranks; ++rank) {
    schedule.pattern.push_back((rank + 1) % ranks);
  }
  check_structure(schedule);
  for (int channel = 0; channel < options.channels; ++channel) {
    const std::uint32_t first = channel * per_channel;
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
}

// Direct gather and scatter: 1 network step, S/R wire bytes between each rank and the root. S is
// the root's array.
void add_direct_parts(Schedule& schedule, bool gathers) {
  const int root = schedule.root;
  const int channels = static_cast<int>(schedule.channels);
  for (int channel = 0; channel < channels; ++channel) {
    for (int rank = 0; rank < schedule.rank_count(); ++rank) {
      const int part = rank * channels + channel;
      const Chunk source = input(gathers ? channel : part);
      const Chunk destination = output(gathers ? part : channel);
      const int sender = gathers ? rank : root;
      const int receiver = gathers ? root : rank;
      if (rank == root) {
        add_block(program_of(schedule, root), kNone, kNone, channel).steps = {
            step(StepType::copy, source, destination)};
      } else {
        add_block(program_of(schedule, sender), kNone, receiver, channel).steps = {
            step(StepType::send, source)};
        add_block(program_of(schedule, receiver), sender, kNone, channel).steps = {
            step(StepType::receive, destination)};
      }
    }
  }
}

void build_direct_gather(Schedule& schedule, const AlgorithmOptions&) {
  add_direct_parts(schedule, true);
}

void build_direct_scatter(Schedule& schedule, const AlgorithmOptions&) {
  add_direct_parts(schedule, false);
}

}  // namespace

constinit const Algorithm all_pairs_all_gather{
    .name = "all_pairs_all_gather",
    .collective = Collective::all_gather,
    .build = build_all_pairs_all_gather,
    .description = "every rank sends its part to every other",
    .cost = "1 step, S(R-1)/R bytes",
    .is_quadratic = true,
};

constinit const Algorithm all_pairs_reduce_scatter{
    .name = "all_pairs_reduce_scatter",
    .collective = Collective::reduce_scatter,
    .build = build_all_pairs_reduce_scatter,
    .description = "every rank gets its part of every input and adds up by itself",
    .cost = "1 step, S(R-1)/R bytes",
    .chunks =
        [](const AlgorithmOptions& options) { return chunk_per_part(options) * options.reducers; },
    .is_quadratic = true,
};

constinit const Algorithm all_pairs_all_to_all{
    .name = "all_pairs_all_to_all",
    .collective = Collective::all_to_all,
    .build = build_all_pairs_all_to_all,
    .description = "every rank sends every other one its part",
    .cost = "1 step, S(R-1)/R bytes",
    .is_quadratic = true,
};

constinit const Algorithm send_receive_all_to_all{
    .name = "send_receive_all_to_all",
    .collective = Collective::all_to_all,
    .build = build_send_receive_all_to_all,
    .description =
        "the same by halves of thread blocks, one sending while one receives, as NCCL does",
    .cost = "1 step, S(R-1)/R bytes",
    .is_quadratic = true,
};

constinit const Algorithm all_pairs_all_to_all_v{
    .name = "all_pairs_all_to_all_v",
    .collective = Collective::all_to_all_v,
    .build = build_all_pairs_all_to_all_v,
    .description = "every rank sends every other one as much of its part as the pattern says",
    .cost = "1 step, S(R-1)/R bytes at most",
    .chunks =
        [](const AlgorithmOptions& options) {
          return chunk_per_part(options) * options.chunks_per_channel;
        },
    .is_quadratic = true,
    .builds_one_rank = true,
};

constinit const Algorithm direct_send_recv{
    .name = "direct_send_recv",
    .collective = Collective::send_recv,
    .build = build_direct_send_recv,
    .description = "every rank sends its array to one rank and receives another one's",
    .cost = "K steps, S bytes",
    .chunks = pipeline_chunks,
    .builds_one_rank = true,
};

constinit const Algorithm direct_gather{
    .name = "direct_gather",
    .collective = Collective::gather,
    .build = build_direct_gather,
    .description = "every rank sends its part to the root",
    .cost = "1 step, S/R bytes",
};

constinit const Algorithm direct_scatter{
    .name = "direct_scatter",
    .collective = Collective::scatter,
    .build = build_direct_scatter,
    .description = "the root sends every rank its part",
    .cost = "1 step, S(R-1)/R bytes of the root",
};

}  // namespace towpath::collective
