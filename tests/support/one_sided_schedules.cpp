// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "one_sided_schedules.hpp"

#include <utility>

#include "schedules.hpp"

namespace towpath::collective::samples {
namespace {

constexpr Buffer kInput = Buffer::input;
constexpr Buffer kOutput = Buffer::output;
constexpr Buffer kScratch = Buffer::scratch;

// Both signal and both wait.
void meet(ThreadBlock& block, int peer, int channel) {
  add(block, StepType::signal, ends_with({{peer, channel}}), 0);
  add(block, StepType::wait, ends_with({{peer, channel}}), 0);
}

Access semaphore(std::uint32_t number) {
  Access access;
  access.semaphores = {number};
  return access;
}

Schedule two_ranks(std::uint32_t chunks, std::uint32_t scratch) {
  Schedule schedule = empty_schedule(Collective::all_reduce, 2, chunks);
  for (RankProgram& program : schedule.ranks) program.scratch_chunks = scratch;
  return schedule;
}

}  // namespace

Operand own_chunk(Buffer buffer, std::uint32_t chunk) {
  return {Holder::own, buffer, false, kNone, chunk};
}
Operand peer_chunk(int peer, Buffer buffer, std::uint32_t chunk) {
  return {Holder::peer, buffer, false, peer, chunk};
}
Operand packets(Operand operand) {
  operand.is_packet = true;
  return operand;
}

Access move_of(std::vector<Operand> sources, std::vector<Operand> destinations) {
  Access access;
  access.sources = std::move(sources);
  access.destinations = std::move(destinations);
  return access;
}

Access ends_with(std::vector<SignalEnd> ends) {
  Access access;
  access.ends = std::move(ends);
  return access;
}

void add(ThreadBlock& block, StepType type, const Access& access, std::uint32_t count) {
  Step step;
  step.type = type;
  step.source_chunk = static_cast<std::uint32_t>(block.accesses.size());
  step.count = count;
  block.accesses.push_back(access);
  block.steps.push_back(step);
}

void drop_signals(RankProgram& program, int channel, std::size_t n) {
  for (ThreadBlock& block : program.blocks) {
    std::size_t signals = 0;
    std::size_t waits = 0;
    ThreadBlock left = block;
    left.steps.clear();
    left.accesses.clear();
    for (const Step& step : block.steps) {
      if (!is_one_sided(step.type)) {
        left.steps.push_back(step);
        continue;
      }
      const Access& access = block.access(step);
      const bool is_there = !access.ends.empty() && access.ends.front().channel == channel;
      const bool is_dropped = is_there && ((step.type == StepType::signal && signals++ == n) ||
                                           (step.type == StepType::wait && waits++ == n));
      if (is_dropped) {
        left.steps.emplace_back();  // a nop, so that dependencies stay where they are
        continue;
      }
      Step kept = step;
      kept.source_chunk = static_cast<std::uint32_t>(left.accesses.size());
      left.accesses.push_back(access);
      left.steps.push_back(kept);
    }
    block = std::move(left);
  }
}

Schedule one_transfer(bool is_get) {
  Schedule schedule = two_ranks(2, 0);
  ThreadBlock& first = add_block(schedule, 0, kNone, kNone);
  ThreadBlock& second = add_block(schedule, 1, kNone, kNone);
  const Access get = move_of({peer_chunk(0, kInput, 0)}, {own_chunk(kOutput, 0)});
  const Access put = move_of({own_chunk(kInput, 0)}, {peer_chunk(1, kOutput, 0)});
  if (is_get) {
    add(second, StepType::direct, get);
    add(second, StepType::signal, ends_with({{0, 0}}), 0);
    add(first, StepType::wait, ends_with({{1, 0}}), 0);
  } else {
    add(first, StepType::direct, put);
    add(first, StepType::signal, ends_with({{1, 0}}), 0);
    add(second, StepType::wait, ends_with({{0, 0}}), 0);
  }
  return schedule;
}

Schedule packet_all_reduce() {
  Schedule schedule = two_ranks(2, 2);
  schedule.protocol = Protocol::ll;
  schedule.has_double_scratch = true;
  for (int rank = 0; rank < 2; ++rank) {
    for (std::uint32_t part = 0; part < 2; ++part) {
      ThreadBlock& block = add_block(schedule, rank, kNone, kNone);
      Access put = move_of({own_chunk(kInput, 0)}, {packets(peer_chunk(1 - rank, kScratch, 0))});
      Access sum =
          move_of({own_chunk(kInput, 0), packets(own_chunk(kScratch, 0))}, {own_chunk(kOutput, 0)});
      put.part = sum.part = part;
      put.parts = sum.parts = 2;
      add(block, StepType::direct, put, 2);
      add(block, StepType::direct, sum, 2);
    }
  }
  return schedule;
}

Schedule gathered_all_reduce() {
  Schedule schedule = two_ranks(2, 2);
  for (int rank = 0; rank < 2; ++rank) {
    const int peer = 1 - rank;
    schedule.ranks[static_cast<std::size_t>(rank)].semaphores = {0};
    Access barrier;
    barrier.barrier = 3;
    barrier.barrier_blocks = 2;
    ThreadBlock& get = add_block(schedule, rank, kNone, kNone);
    meet(get, peer, 0);
    add(get, StepType::direct, move_of({peer_chunk(peer, kInput, 0)}, {own_chunk(kScratch, 0)}), 2);
    meet(get, peer, 0);
    add(get, StepType::release, semaphore(0), 0);
    add(get, StepType::barrier, barrier, 0);
    ThreadBlock& sum = add_block(schedule, rank, kNone, kNone);
    add(sum, StepType::acquire, semaphore(0), 0);
    add(sum, StepType::direct,
        move_of({own_chunk(kInput, 0), own_chunk(kScratch, 0)}, {own_chunk(kOutput, 0)}), 2);
    add(sum, StepType::barrier, barrier, 0);
  }
  return schedule;
}

Schedule piped_all_reduce(std::uint64_t unit_bytes, std::uint32_t depth) {
  Schedule schedule = two_ranks(2, 2);
  schedule.scratch_bytes_max = unit_bytes * depth * 2;
  Access pipeline;
  pipeline.unit_bytes = unit_bytes;
  pipeline.chunks = 1;
  for (int rank = 0; rank < 2; ++rank) {
    const int peer = 1 - rank;
    // What has been got, and the room that is left.
    schedule.ranks[static_cast<std::size_t>(rank)].semaphores = {0, depth};
    ThreadBlock& get = add_block(schedule, rank, kNone, kNone);
    meet(get, peer, 0);
    add(get, StepType::pipeline, pipeline, 4);
    add(get, StepType::acquire, semaphore(1), 0);
    for (std::uint32_t chunk = 0; chunk < 2; ++chunk) {
      add(get, StepType::direct,
          move_of({peer_chunk(peer, kInput, chunk)}, {own_chunk(kScratch, chunk)}));
    }
    add(get, StepType::release, semaphore(0), 0);
    meet(get, peer, 0);
    ThreadBlock& sum = add_block(schedule, rank, kNone, kNone);
    add(sum, StepType::pipeline, pipeline, 4);
    add(sum, StepType::acquire, semaphore(0), 0);
    for (std::uint32_t chunk = 0; chunk < 2; ++chunk) {
      add(sum, StepType::direct,
          move_of({own_chunk(kInput, chunk), own_chunk(kScratch, chunk)},
                  {own_chunk(kOutput, chunk)}));
    }
    add(sum, StepType::release, semaphore(1), 0);
  }
  schedule.in_place = false;
  return schedule;
}

}  // namespace towpath::collective::samples
