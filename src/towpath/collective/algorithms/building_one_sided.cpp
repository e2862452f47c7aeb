// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/collective/algorithms/building_one_sided.hpp"

#include <numeric>
#include <utility>

namespace towpath::collective {
namespace {

std::vector<SignalEnd> ends_of(int self, const std::vector<int>& ranks, int channel) {
  std::vector<SignalEnd> ends;
  for (const int rank : ranks) {
    if (rank != self) ends.push_back({rank, channel});
  }
  return ends;
}

}  // namespace

Step& add_access(ThreadBlock& block, StepType type, Access access, std::uint32_t count) {
  Step step;
  step.type = type;
  step.source_chunk = static_cast<std::uint32_t>(block.accesses.size());
  step.count = count;
  block.accesses.push_back(std::move(access));
  block.steps.push_back(step);
  return block.steps.back();
}

Step& add_direct(ThreadBlock& block, std::vector<Operand> sources,
                 std::vector<Operand> destinations) {
  Access access;
  access.sources = std::move(sources);
  access.destinations = std::move(destinations);
  return add_access(block, StepType::direct, std::move(access));
}

void add_signals(ThreadBlock& block, int self, const std::vector<int>& ranks, int channel,
                 bool is_relaxed) {
  Access access;
  access.ends = ends_of(self, ranks, channel);
  access.is_relaxed = is_relaxed;
  add_access(block, StepType::signal, std::move(access), 0);
}

void add_waits(ThreadBlock& block, int self, const std::vector<int>& ranks, int channel,
               bool is_relaxed) {
  Access access;
  access.ends = ends_of(self, ranks, channel);
  access.is_relaxed = is_relaxed;
  add_access(block, StepType::wait, std::move(access), 0);
}

void add_meeting(ThreadBlock& block, int self, const std::vector<int>& ranks, int channel,
                 bool is_relaxed) {
  add_signals(block, self, ranks, channel, is_relaxed);
  add_waits(block, self, ranks, channel, is_relaxed);
}

std::vector<int> all_ranks(const Schedule& schedule) {
  std::vector<int> ranks(schedule.ranks.size());
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

ThreadBlock& add_block_to(Schedule& schedule, int rank) {
  return program_of(schedule, rank).blocks.emplace_back();
}

}  // namespace towpath::collective
