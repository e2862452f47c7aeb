// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "towpath/collective/algorithms/building.hpp"

namespace towpath::collective {
namespace {
// A rank's position in the binomial tree of a root. Ranks are numbered from the root. The children
// of a number are at distances 1, 2, 4, ... within its reach. A rank holds the parts of its
// descendants, which follow it.
struct BinomialTree {
  int number;
  int ranks;
  int root;

  int rank_of(int other) const { return (other + root) % ranks; }
  int rank() const { return rank_of(number); }
  int parent() const { return rank_of(number & (number - 1)); }
  // Children are at smaller distances.
  int reach() const { return number == 0 ? ranks : std::min(number & -number, ranks - number); }
  // Number of parts of the rank's subtree, and of a child's subtree.
  int parts() const { return reach(); }
  int parts_of(int distance) const { return std::min(distance, ranks - number - distance); }
};

// Binomial gather: ceil(log2(R)) sequential network steps, at most S/2 wire bytes per rank. S is
// the gathered array. Each rank adds its part to its children's parts and sends them to its parent.
void add_gather_rank(Schedule& schedule, const BinomialTree& tree, int channel) {
  const int channels = static_cast<int>(schedule.channels);
  RankProgram& program = schedule.ranks[index(tree.rank())];
  const bool is_root = tree.number == 0;
  // Location of the part of the rank `offset` further.
  const auto kept = [&](int offset) {
    const int part = tree.rank_of(tree.number + offset);
    return is_root ? output(part * channels + channel) : scratch((offset - 1) * channels + channel);
  };
  std::vector<Step> sends = {step(StepType::send, input(channel))};
  for (int distance = 1; distance < tree.reach(); distance *= 2) {
    const int parts = tree.parts_of(distance);
    ThreadBlock& block = add_block(program, tree.rank_of(tree.number + distance), kNone, channel);
    for (int i = 0; i < parts; ++i) {
      block.steps.push_back(step(StepType::receive, kept(distance + i)));
      block.steps.back().publishes = !is_root;
      sends.push_back(after(last_block(program), i, step(StepType::send, kept(distance + i))));
    }
  }
  if (is_root) {
    add_block(program, kNone, kNone, channel).steps = {
        step(StepType::copy, input(channel), kept(0))};
  } else {
    add_block(program, kNone, tree.parent(), channel).steps = std::move(sends);
    program.scratch_chunks = (tree.parts() - 1) * channels;
  }
}

// Binomial scatter: ceil(log2(R)) sequential network steps, at most S/2 wire bytes per rank except
// the root, which sends S (R-1)/R. S is the root's array. Each rank keeps its part of the incoming
// parts and forwards the others.
void add_scatter_rank(Schedule& schedule, const BinomialTree& tree, int channel) {
  const int channels = static_cast<int>(schedule.channels);
  RankProgram& program = schedule.ranks[index(tree.rank())];
  const bool is_root = tree.number == 0;
  // Location of the part of the rank `offset` further.
  const auto kept = [&](int offset) {
    if (is_root) return input(tree.rank_of(tree.number + offset) * channels + channel);
    return offset == 0 ? output(channel) : scratch((offset - 1) * channels + channel);
  };
  if (is_root) {
    add_block(program, kNone, kNone, channel).steps = {
        step(StepType::copy, kept(0), output(channel))};
  } else {
    ThreadBlock& block = add_block(program, tree.parent(), kNone, channel);
    // Parts with the longest path come first.
    for (int offset = tree.parts() - 1; offset >= 0; --offset) {
      block.steps.push_back(step(StepType::receive, kept(offset)));
      block.steps.back().publishes = offset != 0;
    }
    program.scratch_chunks = (tree.parts() - 1) * channels;
  }
  const std::uint32_t receiving = last_block(program);
  for (int distance = 1; distance < tree.reach(); distance *= 2) {
    ThreadBlock& block = add_block(program, kNone, tree.rank_of(tree.number + distance), channel);
    for (int offset = distance + tree.parts_of(distance) - 1; offset >= distance; --offset) {
      Step next = step(StepType::send, kept(offset));
      block.steps.push_back(is_root ? next : after(receiving, tree.parts() - 1 - offset, next));
    }
  }
}

using AddRank = void (*)(Schedule& schedule, const BinomialTree& tree, int channel);

template <AddRank add_rank>
void build_binomial(Schedule& schedule, const AlgorithmOptions& options) {
  for (int number = 0; number < options.ranks; ++number) {
    for (int channel = 0; channel < options.channels; ++channel) {
      add_rank(schedule, {number, options.ranks, options.root}, channel);
    }
  }
}

}  // namespace

constinit const Algorithm binomial_gather{
    .name = "binomial_gather",
    .collective = Collective::gather,
    .build = build_binomial<add_gather_rank>,
    .description = "parts up a binomial tree to the root",
    .cost = "log2(R) steps, at most S/2 bytes",
    .is_quadratic = true,
};

constinit const Algorithm binomial_scatter{
    .name = "binomial_scatter",
    .collective = Collective::scatter,
    .build = build_binomial<add_scatter_rank>,
    .description = "parts down a binomial tree from the root",
    .cost = "log2(R) steps, at most S/2 bytes; S(R-1)/R of the root",
    .is_quadratic = true,
};

}  // namespace towpath::collective
