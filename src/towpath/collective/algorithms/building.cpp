// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/collective/algorithms/building.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <stdexcept>

namespace towpath::collective {
namespace {

void check_between(const char* option, int value, int low, int high) {
  if (value < low || value > high) {
    throw std::invalid_argument(
        fmt::format("{} is {}; it must be {} to {}", option, value, low, high));
  }
}

void check_ring(const std::vector<int>& ring, int ranks, std::size_t channel) {
  std::vector<bool> seen(index(ranks));
  for (const int rank : ring) {
    if (rank < 0 || rank >= ranks || seen[index(rank)]) {
      throw std::invalid_argument(fmt::format(
          "the ring of channel {} has rank {}{}; it must have each of 0 to {} once", channel, rank,
          rank < 0 || rank >= ranks ? ", which does not exist" : " twice", ranks - 1));
    }
    seen[index(rank)] = true;
  }
  if (ring.size() != index(ranks)) {
    throw std::invalid_argument(
        fmt::format("the ring of channel {} has {} of {} ranks", channel, ring.size(), ranks));
  }
}

// Every rank must reach the same root.
void check_tree(const std::vector<int>& parents, int ranks, std::size_t channel) {
  if (parents.size() != index(ranks)) {
    throw std::invalid_argument(fmt::format("the tree of channel {} has {} parents for {} ranks",
                                            channel, parents.size(), ranks));
  }
  for (int rank = 0; rank < ranks; ++rank) {
    int above = rank;
    for (int steps = 0; steps < ranks && above >= 0 && above < ranks; ++steps) {
      above = parents[index(above)];
    }
    if (above != kNone) {
      throw std::invalid_argument(
          fmt::format("in the tree of channel {}, rank {} does not lead to a root; parents must be "
                      "other ranks of {}, and -1 for the root",
                      channel, rank, ranks));
    }
  }
  const auto roots = std::ranges::count(parents, kNone);
  if (roots != 1) {
    throw std::invalid_argument(
        fmt::format("the tree of channel {} has {} roots; it must have one", channel, roots));
  }
}

void check_trees(const AlgorithmOptions& options) {
  if (options.trees.empty()) return;
  if (options.trees.size() != index(options.channels)) {
    throw std::invalid_argument(
        fmt::format("there are {} trees for {} channels; each channel needs one",
                    options.trees.size(), options.channels));
  }
  for (std::size_t i = 0; i < options.trees.size(); ++i) {
    check_tree(options.trees[i], options.ranks, i);
  }
}

}  // namespace

void check_options(const AlgorithmOptions& options) {
  check_between("ranks", options.ranks, 1, kRanksMax);
  check_between("channels", options.channels, 1, kChannelsMax);
  check_between("root", options.root, 0, options.ranks - 1);
  check_between("gpus_per_host", options.gpus_per_host, 1, options.ranks);
  check_between("chunks_per_channel", options.chunks_per_channel, 1, kChunksPerChannelMax);
  check_between("reducers", options.reducers, 1, kReducersMax);
  if (options.ranks % options.gpus_per_host != 0) {
    throw std::invalid_argument(
        fmt::format("gpus_per_host is {}; {} ranks are not a multiple of it", options.gpus_per_host,
                    options.ranks));
  }
  check_between("columns", options.columns, 0, options.ranks);
  if (options.columns != 0 && options.ranks % options.columns != 0) {
    throw std::invalid_argument(fmt::format("columns is {}; {} ranks are not a multiple of it",
                                            options.columns, options.ranks));
  }
  check_trees(options);
  if (options.rings.empty()) return;
  if (options.rings.size() != index(options.channels)) {
    throw std::invalid_argument(
        fmt::format("there are {} rings for {} channels; each channel needs one",
                    options.rings.size(), options.channels));
  }
  for (std::size_t i = 0; i < options.rings.size(); ++i) {
    check_ring(options.rings[i], options.ranks, i);
  }
}

void check_quadratic(const AlgorithmOptions& options) {
  constexpr std::int64_t kSizeMax = std::int64_t{1} << 26;
  const std::int64_t ranks = options.ranks;
  const std::int64_t size = std::clamp<std::int64_t>(ranks, 1, kRanksMax) *
                            std::clamp<std::int64_t>(ranks, 1, kRanksMax) *
                            std::clamp(options.channels, 1, kChannelsMax);
  if (size > kSizeMax) {
    throw std::invalid_argument(
        fmt::format("a schedule of {} ranks with {} channels is too large; ranks * ranks * "
                    "channels must be at most {}",
                    options.ranks, options.channels, kSizeMax));
  }
}

void add_own_copies(Schedule& schedule) {
  for (std::uint32_t rank = 0; rank < schedule.ranks.size(); ++rank) {
    for (std::uint32_t channel = 0; channel < schedule.channels; ++channel) {
      ThreadBlock& block = schedule.ranks[rank].blocks.emplace_back();
      block.channel = static_cast<std::int32_t>(channel);
      block.steps.push_back(
          step(StepType::copy, input(channel), output(rank * schedule.channels + channel)));
    }
  }
}

void add_root_copies(Schedule& schedule, int channel, std::int64_t first, std::int64_t count) {
  ThreadBlock& block = add_block(program_of(schedule, schedule.root), kNone, kNone, channel);
  for (std::int64_t chunk = first; chunk < first + count; ++chunk) {
    block.steps.push_back(step(StepType::copy, input(chunk), output(chunk)));
  }
}

ThreadBlock& add_block(RankProgram& program, int receive_peer, int send_peer, int channel) {
  ThreadBlock& block = program.blocks.emplace_back();
  block.receive_peer = receive_peer;
  block.send_peer = send_peer;
  block.channel = channel;
  return block;
}

std::uint32_t last_block(const RankProgram& program) {
  return static_cast<std::uint32_t>(program.blocks.size() - 1);
}

void take_two_channels_each(Schedule& schedule) {
  if (schedule.channels > kChannelsMax / 2) {
    throw std::invalid_argument(
        fmt::format("channels is {}; {} takes two for each, so it must be 1 to {}",
                    schedule.channels, schedule.name, kChannelsMax / 2));
  }
  schedule.channels *= 2;
}

std::vector<int> ring_of(const AlgorithmOptions& options, int channel) {
  if (!options.rings.empty()) return options.rings[index(channel)];
  std::vector<int> ring(index(options.ranks));
  std::iota(ring.begin(), ring.end(), 0);
  return ring;
}

ThreadBlock& add_ring_block(Schedule& schedule, const std::vector<int>& ring, std::size_t position,
                            int channel) {
  const std::size_t ranks = ring.size();
  return add_block(program_of(schedule, ring[position]), ring[(position + ranks - 1) % ranks],
                   ring[(position + 1) % ranks], channel);
}

std::shared_ptr<StepList> list_of_parts(const std::vector<int>& ring, std::uint32_t channels) {
  auto list = std::make_shared<StepList>();
  list->rows = static_cast<std::uint32_t>(ring.size());
  list->columns = channels;
  if (!std::ranges::is_sorted(ring)) list->order.assign(ring.begin(), ring.end());
  return list;
}

void add_rings_of_parts(Schedule& schedule, const AlgorithmOptions& options,
                        std::shared_ptr<StepList> (*steps_of_first)(const std::vector<int>& ring,
                                                                    std::uint32_t channels)) {
  std::vector<int> ring_before;
  std::shared_ptr<StepList> steps;
  for (int channel = 0; channel < options.channels; ++channel) {
    const std::vector<int> ring = ring_of(options, channel);
    if (ring != ring_before) steps = steps_of_first(ring, schedule.channels);
    for (std::uint32_t position = 0; position < ring.size(); ++position) {
      add_ring_block(schedule, ring, position, channel).steps =
          Steps(steps, {.row_shift = position, .first_chunk = static_cast<std::uint32_t>(channel)});
    }
    ring_before = ring;
  }
}

ThreadBlock& add_line_block(Schedule& schedule, const std::vector<int>& line, std::size_t position,
                            int channel) {
  const bool is_last = position + 1 == line.size();
  return add_block(program_of(schedule, line[position]), position > 0 ? line[position - 1] : kNone,
                   is_last ? kNone : line[position + 1], channel);
}

void add_pair_blocks(Schedule& schedule, const PairBlocks& blocks) {
  RankProgram& program = program_of(schedule, blocks.rank);
  for (int channel = 0; channel < blocks.channels; ++channel) {
    for (int peer = 0; peer < blocks.ranks; ++peer) {
      if (peer == blocks.rank) continue;
      add_block(program, peer, peer, channel);
    }
  }
  for (int channel = 0; channel < blocks.channels; ++channel) {
    for (int i = 0; i < blocks.reducers; ++i) program.blocks.emplace_back().channel = channel;
  }
}

void add_ordered_reduction(Steps& steps, const PairBlocks& blocks, int piece, Chunk own,
                           Chunk result) {
  // The first peer's slot accumulates the sum. On rank 0 that peer is second in rank order, which
  // is equivalent because the operations commute.
  const int first = blocks.rank == 0 ? 1 : 0;
  const Chunk sum = scratch(blocks.scratch_of(first, piece));
  const auto received = [&](int peer, Step next) {
    return after(blocks.block_of(peer, piece / blocks.reducers), 1, next);
  };
  const Step add_own = step(StepType::reduce, own, sum);
  bool is_first_awaited = false;
  for (int rank = 0; rank < blocks.ranks; ++rank) {
    if (rank == first) continue;
    if (rank == blocks.rank) {
      steps.push_back(is_first_awaited ? add_own : received(first, add_own));
    } else {
      if (!is_first_awaited) steps.push_back(received(first, Step{}));
      const Chunk slot = scratch(blocks.scratch_of(rank, piece));
      steps.push_back(received(rank, step(StepType::reduce, slot, sum)));
    }
    is_first_awaited = true;
  }
  steps.push_back(step(StepType::copy, sum, result));
}

}  // namespace towpath::collective
