// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/collective/time_only/time_only_run.hpp"

#include <algorithm>

namespace towpath::collective {

using gpu_links::Flows;
using namespace time_only;

namespace {

// Below this lookahead, switching between partitions costs more than it saves.
constexpr Time kLookaheadMin = Time::from_ps(1'000'000);

}  // namespace

bool TimeOnlyRun::can_run(const Plan& plan) {
  return DirectSteps::can_run(plan) &&
         std::ranges::all_of(plan.schedule->ranks, [](const RankProgram& program) {
           return program.blocks.size() < transport::kNoTurn;
         });
}

bool TimeOnlyRun::can_run(transport::simulated::GpuRanks& ranks, const Plan& plan) {
  return std::ranges::all_of(plan.schedule->groups, [&](const std::vector<int>& group) {
    return std::ranges::all_of(group, [&](int rank) {
      return ranks.direct_moves().refusal(rank, {.groups = {group}, .peers = {}}).empty();
    });
  });
}

TimeOnlyRun::TimeOnlyRun(transport::simulated::GpuRanks& ranks, std::shared_ptr<const Plan> plan)
    : flow_table_(ranks.network(), plan->schedule->protocol),
      flows_(flow_table_),
      table_(ranks, plan, flow_table_),
      direct_(table_, flow_table_, flows_),
      agenda_(table_),
      engine_(table_, flow_table_, flows_, agenda_, direct_),
      repetition_(table_, flows_, agenda_, engine_) {
  flow_table_.join();
  divide();
  flows_.begin(agenda_.partitions());
  least_ = busiest_link();
}

Time TimeOnlyRun::busiest_link() const {
  const Plan& plan = table_.plan();
  std::vector<Time> busy(flow_table_.links().size());
  for (const Block& block : table_.blocks()) {
    if (block.flow == kNobody) continue;
    std::uint64_t chunks = 0;
    for (std::uint32_t s = 0; s < block.cursor.step_count; ++s) {
      const Step& step = block.cursor.steps[s];
      if (sends(step.type)) chunks += step.count;
    }
    const std::uint64_t elements = chunks * plan.chunking.shortest_chunk_elements();
    const Bytes size(elements * plan.chunking.element_bytes());
    flow_table_.add_busy(block.flow, block.cost->on_wire_of(size), busy);
  }
  return busy.empty() ? Time() : std::ranges::max(busy);
}

// A partition contains the thread blocks of a host, and those whose messages meet. If none meet, no
// order of time needs to be kept.
void TimeOnlyRun::divide() {
  std::vector<Block>& blocks = table_.blocks();
  Partitioning partitioning(static_cast<std::uint32_t>(blocks.size()));
  bool has_meetings = false;
  for (Block& block : blocks) {
    partitioning.join(block.number, block.number - block.number_in_rank);
    if (block.send_to == kNobody) continue;
    const Block& receiver = blocks[block.send_to];
    block.lookahead = block.latency + block.delay;
    if (block.flow != kNobody) {
      block.lookahead = flow_table_.latency_after_meeting(block.flow) + block.delay;
      flow_table_.for_each_meeting(block.flow, [&](int link) {
        partitioning.join_at(link, block.number);
        has_meetings = true;
      });
    }
    const Time lookahead = std::min(block.lookahead, receiver.credit_delay);
    if (!block.leaves_host || lookahead < kLookaheadMin)
      partitioning.join(block.number, receiver.number);
  }
  has_meetings |= direct_.join(partitioning);
  if (!has_meetings) return;
  const Partitions partitions = partitioning.divide();
  agenda_.divide(partitions.count);
  std::vector<std::uint32_t> of_flow;
  for (Block& block : blocks) {
    block.partition = partitions.of_block[block.number];
    if (block.flow != kNobody) of_flow.push_back(block.partition);
  }
  for (const std::uint32_t block : direct_.owners_of_flows()) {
    of_flow.push_back(blocks[block].partition);
  }
  flow_table_.divide(of_flow);
  const auto is_across = [&](const Block& block, std::uint32_t peer) {
    return peer != kNobody && blocks[peer].partition != block.partition;
  };
  for (Block& block : blocks) {
    block.sends_across = is_across(block, block.send_to);
    block.receives_across = is_across(block, block.receive_from);
  }
}

TimeOnlyRun::Outcome TimeOnlyRun::invoke(Time limit) {
  if (limit < least_) return {End::beyond_limit, now()};
  const Time one = Time::from_ps(1);
  const Time called = now();
  agenda_.begin_invocation(
      called, limit < Time::max() - called - one ? called + limit + one : Flows::kUnknown);
  repetition_.begin_invocation();
  engine_.begin_invocation();
  run_partitions();
  engine_.set_now(std::max(now(), engine_.finished_at()));
  if (engine_.is_finished()) return {End::finished, engine_.finished_at()};
  const bool goes_on = agenda_.has_parked() || flows_.first_time() != Flows::kUnknown;
  return {goes_on ? End::beyond_limit : End::stands_still, now()};
}

// Each partition runs until it waits for another one. Then the next one runs.
void TimeOnlyRun::run_partitions() {
  for (;;) {
    for (std::uint32_t number = 0; number < agenda_.partitions(); ++number) run_partition(number);
    if (agenda_.has_ready()) continue;
    const Time first = flows_.first_time();
    if (first >= agenda_.deadline() && agenda_.deadline() <= agenda_.horizon()) return;
    if (first >= agenda_.horizon() && agenda_.horizon() != Flows::kUnknown) {
      repetition_.reach_horizon();
      continue;
    }
    if (first == Flows::kUnknown) return;
    agenda_.reach(first);
  }
}

void TimeOnlyRun::run_partition(std::uint32_t number) {
  agenda_.open(number);
  engine_.run_ready(number);
  for (Flows::Notice notice; flows_.next(number, agenda_.limit(), notice);) {
    engine_.note(notice);
    engine_.run_ready(number);
  }
  if (agenda_.partitions() > 1) agenda_.close(number, flows_.first_time(number));
}

}  // namespace towpath::collective
