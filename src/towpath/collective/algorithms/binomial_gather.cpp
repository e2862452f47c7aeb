// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0

// Binomial gather: log2(R) steps over the wire one after the other, rounded up, at most S/2 bytes
// on the wire per rank. S is the gathered array. Each rank adds its part to those that came up the
// tree and sends them on.
#include <utility>

#include "towpath/collective/algorithms/binomial_tree.hpp"

namespace towpath::collective {
namespace {

void add_rank(Schedule& schedule, const BinomialTree& tree, int channel) {
  const auto channels = static_cast<std::uint32_t>(schedule.channels);
  const auto own = static_cast<std::uint32_t>(channel);
  RankProgram& program = schedule.ranks[static_cast<std::size_t>(tree.rank())];
  const bool is_root = tree.number == 0;
  // Where the part of the rank `offset` further is kept.
  const auto kept = [&](int offset) {
    const auto part = static_cast<std::uint32_t>(tree.rank_of(tree.number + offset));
    return is_root ? output(part * channels + own)
                   : scratch(static_cast<std::uint32_t>(offset - 1) * channels + own);
  };
  std::vector<Step> sends = {step(StepType::send, input(own))};
  for (int distance = 1; distance < tree.reach(); distance *= 2) {
    const int parts = tree.parts_of(distance);
    ThreadBlock& block = add_block(program, tree.rank_of(tree.number + distance), kNone, channel);
    for (int i = 0; i < parts; ++i) {
      block.steps.push_back(step(StepType::receive, kept(distance + i)));
      block.steps.back().publishes = !is_root;
      sends.push_back(after(last_block(program), static_cast<std::uint32_t>(i),
                            step(StepType::send, kept(distance + i))));
    }
  }
  if (is_root) {
    add_block(program, kNone, kNone, channel).steps = {step(StepType::copy, input(own), kept(0))};
  } else {
    add_block(program, kNone, tree.parent(), channel).steps = std::move(sends);
    program.scratch_chunks = static_cast<std::uint32_t>(tree.parts() - 1) * channels;
  }
}

Schedule make(const AlgorithmOptions& options) {
  check_quadratic(options);
  Schedule schedule = schedule_without_blocks(
      "binomial_gather", Collective::gather, options,
      static_cast<std::uint32_t>(options.ranks) * static_cast<std::uint32_t>(options.channels));
  if (options.ranks == 1) return local_copy(std::move(schedule));
  for (int number = 0; number < options.ranks; ++number) {
    for (int channel = 0; channel < options.channels; ++channel) {
      add_rank(schedule, {number, options.ranks, options.root}, channel);
    }
  }
  return schedule;
}

}  // namespace

constinit const Algorithm binomial_gather{
    .name = "binomial_gather",
    .collective = Collective::gather,
    .make = make,
    .description = "parts up a binomial tree to the root",
    .cost = "log2(R) steps, at most S/2 bytes",
};

}  // namespace towpath::collective
