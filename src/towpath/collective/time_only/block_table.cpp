// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/collective/time_only/block_table.hpp"

#include <algorithm>
#include <bit>
#include <utility>

namespace towpath::collective::time_only {

BlockTable::BlockTable(transport::simulated::GpuRanks& ranks, std::shared_ptr<const Plan> plan,
                       FlowTable& flows)
    : ranks_(ranks), plan_(std::move(plan)), element_bytes_(plan_->chunking.element_bytes()) {
  const FifoLimits& fifo = plan_->chunking.fifo();
  const std::uint32_t slices = plan_->slots_max() * fifo.slices_per_transfer;
  marks_shift_ = static_cast<std::uint32_t>(std::bit_width(slices / fifo.slots_per_transfer - 1));
  marks_mask_ = (1u << marks_shift_) - 1;
  const std::uint64_t parts =
      works_on_parts(plan_->schedule->collective) ? plan_->schedule->ranks.size() : 1;
  is_ragged_ = plan_->chunking.part_elements() % (plan_->schedule->chunks / parts) != 0;

  const int count = simulated_ranks();
  first_block_.push_back(0);
  for (int rank = 0; rank < count; ++rank) {
    const std::size_t blocks = plan_->schedule->ranks[index(rank)].blocks.size();
    first_block_.push_back(first_block_.back() + static_cast<std::uint32_t>(blocks));
  }
  blocks_.resize(first_block_.back());
  arrivals_.resize(blocks_.size() << marks_shift_);
  credits_.resize(blocks_.size() << marks_shift_);
  for (int rank = 0; rank < count; ++rank) add_blocks(rank);
  for (int rank = 0; rank < count; ++rank) connect(rank, flows);
  for (int rank = 0; rank < count; ++rank) find_readers(rank);
}

const StepCost& BlockTable::cost_of(int rank) {
  return costs_
      .try_emplace(&ranks_.cost_of(rank), ranks_.step_cost(rank, plan_->schedule->protocol))
      .first->second;
}

void BlockTable::add_blocks(int rank) {
  const RankProgram& program = plan_->schedule->ranks[index(rank)];
  const StepCost& cost = cost_of(rank);
  for (std::size_t b = 0; b < program.blocks.size(); ++b) {
    Block& block = blocks_[first_block_[index(rank)] + b];
    block.number = static_cast<std::uint32_t>(first_block_[index(rank)] + b);
    block.number_in_rank = static_cast<std::uint32_t>(b);
    block.cursor = BlockCursor(program.blocks[b].steps);
    block.cost = &cost;
    if (is_ragged_) steps_.push_back(&program.blocks[b].steps);
  }
}

// Connects both ends of each connection, and stores the route of its puts.
void BlockTable::connect(int rank, FlowTable& flows) {
  const auto& wiring = plan_->wiring->of(rank);
  for (std::size_t b = 0; b < wiring.size(); ++b) {
    Block& block = blocks_[first_block_[index(rank)] + b];
    const ThreadBlock& program = plan_->schedule->ranks[index(rank)].blocks[b];
    if (program.receive_peer != kNone && wiring[b].receive_block != kNone) {
      const int peer = program.receive_peer;
      block.receive_from = block_at(peer, wiring[b].receive_block);
      block.credit_delay = ranks_.route(rank, peer).latency + cost_of(peer).after_flag();
    }
    if (program.send_peer == kNone || wiring[b].send_block == kNone) continue;
    const int peer = program.send_peer;
    block.send_to = block_at(peer, wiring[b].send_block);
    const gpu_links::Route& route = ranks_.route(rank, peer);
    block.send_slots = plan_->slots(!route.leaves_host);
    block.latency = route.latency;
    block.leaves_host = route.leaves_host;
    block.delay = block.cost->after_put(route, cost_of(peer));
    if (route.links.empty()) continue;
    block.flow = flows.add(route, static_cast<std::uint64_t>(rank) << 16 | b);
  }
}

void BlockTable::find_readers(int rank) {
  const std::uint32_t first = first_block_[index(rank)];
  const std::uint32_t count = first_block_[index(rank) + 1] - first;
  if (count < 2) return;
  std::vector<std::int32_t> last(count);  // step that a block asks for, per block that is asked
  for (std::uint32_t b = 0; b < count; ++b) {
    std::fill(last.begin(), last.end(), kNone);
    for (const Step& step : plan_->schedule->ranks[index(rank)].blocks[b].steps) {
      if (step.depends_on_block == kNone) continue;
      Block& other = blocks_[first + static_cast<std::uint32_t>(step.depends_on_block)];
      if (other.progress == kNobody) {
        other.progress = static_cast<std::uint32_t>(times_.size());
        times_.emplace_back();
      }
      std::int32_t& last_step = last[index(step.depends_on_block)];
      if (last_step == kNone) times_of(other).add_reader(first + b);
      if (step.depends_on_step < last_step) times_of(other).goes_back();
      last_step = step.depends_on_step;
    }
  }
}

std::uint64_t BlockTable::size_of_ragged_slice(const Block& block) const {
  std::uint64_t count = block.cursor.slice().count;
  const Step step = (*steps_[block.number])[block.cursor.step];
  if (writes_destination(step.type)) {
    count = std::min(count, existing(block, step.destination, step.destination_chunk));
  }
  if (reads_source(step.type)) {
    count = std::min(count, existing(block, step.source, step.source_chunk));
  }
  return count * element_bytes_;
}

std::uint64_t BlockTable::existing(const Block& block, Buffer buffer, std::uint32_t chunk) const {
  const BlockCursor& at = block.cursor;
  const Range range =
      plan_->chunking.range(buffer, chunk + at.first_chunk, at.chunk_count, at.iteration);
  return range.count - std::min(at.slice().offset, range.count);
}

void BlockTable::shift(Time by, std::uint64_t iterations) {
  for (Block& block : blocks_) {
    if (block.cursor.step_count == 0) continue;
    block.at += by;
    block.cursor.iteration += iterations;
    if (block.progress == kNobody) continue;
    times_of(block).shift(iterations * block.cursor.step_count, by);
  }
  for (std::vector<Mark>* marks : {&arrivals_, &credits_}) {
    for (Mark& mark : *marks) {
      if (mark.time != Flows::kUnknown) mark.time += by;
    }
  }
}

}  // namespace towpath::collective::time_only
