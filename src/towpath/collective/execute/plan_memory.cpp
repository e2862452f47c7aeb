// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/collective/execute/plan_memory.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>

namespace towpath::collective {

using transport::Offset;
using transport::Signal;

namespace {

constexpr Offset kWindowAlignment = 256;

bool overlap(const std::byte* a, std::uint64_t a_bytes, const std::byte* b, std::uint64_t b_bytes) {
  return a < b + b_bytes && b < a + a_bytes;
}

}  // namespace

PlanMemory::PlanMemory(transport::Transport& transport, std::shared_ptr<const Plan> plan)
    : transport_(transport), plan_(std::move(plan)) {
  if (plan_->wiring->fifos > 0) {
    fifos_ = transport_.allocate(plan_->wiring->fifos * plan_->fifo_bytes());
  }
  if (plan_->scratch_bytes > 0) {
    scratch_ = transport_.allocate(plan_->scratch_count() * plan_->scratch_bytes);
  }
  if (plan_->window_bytes > 0) {
    const std::string refusal = transport_.direct_refusal(direct_needs());
    if (!refusal.empty()) {
      throw std::invalid_argument(fmt::format("schedule '{}': {}", plan_->schedule->name, refusal));
    }
    window_ = transport_.allocate(plan_->window_bytes);
  }
  if (plan_->signals() > 0) signals_ = transport_.allocate_signals(plan_->signals());
}

PlanMemory::~PlanMemory() {
  if (plan_->signals() > 0) transport_.release_signals(signals_);
  if (plan_->window_bytes > 0) transport_.release(window_);
  if (plan_->scratch_bytes > 0) transport_.release(scratch_);
  if (plan_->wiring->fifos > 0) transport_.release(fifos_);
}

transport::DirectNeeds PlanMemory::direct_needs() const {
  transport::DirectNeeds needs;
  for (const auto& group : plan_->schedule->groups) {
    if (std::binary_search(group.begin(), group.end(), transport_.rank())) {
      needs.groups.push_back(group);
    }
  }
  std::set<int> peers;
  const RankProgram& program = plan_->schedule->ranks[static_cast<std::size_t>(transport_.rank())];
  for (const ThreadBlock& block : program.blocks) {
    for (const Access& access : block.accesses) {
      needs.combines |= access.sources.size() > 1;
      for (const Operand& source : access.sources) {
        needs.combines |= source.holder == Holder::group;
      }
      if (access.is_port) continue;
      for (const auto* operands : {&access.sources, &access.destinations}) {
        for (const Operand& operand : *operands) {
          if (operand.holder == Holder::peer) peers.insert(operand.number);
        }
      }
    }
  }
  needs.peers.assign(peers.begin(), peers.end());
  return needs;
}

// --- an invocation ------------------------------------------------------------------------------

void PlanMemory::begin_invocation(const Buffers& buffers) {
  buffers_ = buffers;
  ++invocations_;
  if (plan_->window_bytes > 0) open_window();
}

void PlanMemory::open_window() {
  const Schedule& schedule = *plan_->schedule;
  if (!transport_.carries_data()) {
    is_in_place_ = !schedule.out_of_place;
    return;
  }
  is_in_place_ =
      overlap(buffers_.input, plan_->input_bytes(), buffers_.output, plan_->output_bytes());
  const int rank = transport_.rank();
  // If a rank has no defined result, its output keeps its contents.
  if (schedule.collective == Collective::reduce && !is_in_place_) {
    std::memcpy(transport_.data(offset_of(Buffer::output, rank)), buffers_.output,
                plan_->output_bytes());
  }
  std::memcpy(transport_.data(offset_of(Buffer::input, rank)), buffers_.input,
              plan_->input_bytes());
}

void PlanMemory::end_invocation() {
  if (!transport_.carries_data()) return;
  if (plan_->window_bytes > 0) {
    std::memcpy(buffers_.output, transport_.data(offset_of(Buffer::output, transport_.rank())),
                plan_->output_bytes());
  }
  if (plan_->reduction.operation == transport::ReductionOperation::avg) divide_average();
}

void PlanMemory::divide_average() {
  const Schedule& schedule = *plan_->schedule;
  const bool has_result =
      schedule.collective == Collective::all_reduce ||
      schedule.collective == Collective::reduce_scatter ||
      (schedule.collective == Collective::reduce && schedule.root == transport_.rank());
  if (!has_result) return;
  transport::divide(buffers_.output, plan_->output_bytes(), plan_->reduction.type,
                    schedule.rank_count());
}

// --- places -------------------------------------------------------------------------------------

std::uint64_t PlanMemory::connection_slots(std::int32_t peer) const {
  return peer == kNone ? 0 : plan_->slots(transport_.is_addressable(peer));
}

Offset PlanMemory::slot_offset(std::int32_t fifo, std::uint64_t slot) const {
  return fifos_ + static_cast<std::uint64_t>(fifo) * plan_->fifo_bytes() + slot * plan_->slot_bytes;
}

Signal PlanMemory::data_signal(std::int32_t fifo, std::uint64_t slot) const {
  return signals_ +
         static_cast<Signal>(static_cast<std::uint64_t>(fifo) * plan_->slots_max() + slot);
}

Signal PlanMemory::credit_signal(std::int32_t credit) const {
  return signals_ + plan_->wiring->fifos * plan_->slots_max() + static_cast<Signal>(credit);
}

Signal PlanMemory::counter_signal(std::uint32_t counter) const {
  return signals_ + plan_->wiring->fifos * plan_->slots_max() + plan_->wiring->credits + counter;
}

std::byte* PlanMemory::base(Buffer buffer) const {
  if (!transport_.carries_data()) return nullptr;
  if (plan_->window_bytes > 0) return transport_.data(offset_of(buffer, transport_.rank()));
  switch (buffer) {
    // A step that stores to the input runs in place: input and output are the same memory.
    case Buffer::input: return const_cast<std::byte*>(buffers_.input);
    case Buffer::output: return buffers_.output;
    case Buffer::scratch: return transport_.data(scratch_);
  }
  return nullptr;
}

// In place, the smaller of input and output is the rank's part of the other one.
Offset PlanMemory::offset_of(Buffer buffer, int rank) const {
  if (buffer == Buffer::scratch) {
    const bool is_second = plan_->schedule->has_double_scratch && invocations_ % 2 == 0;
    return scratch_ + (is_second ? plan_->scratch_bytes : 0);
  }
  const Schedule& schedule = *plan_->schedule;
  const std::uint64_t part_bytes =
      plan_->chunking.part_elements() * plan_->chunking.element_bytes();
  if (is_in_place_) {
    const bool is_part = chunks_in(schedule, rank, buffer) < schedule.chunks;
    return window_ + (is_part ? static_cast<Offset>(rank) * part_bytes : 0);
  }
  if (buffer == Buffer::input) return window_;
  return window_ +
         (plan_->input_bytes() + kWindowAlignment - 1) / kWindowAlignment * kWindowAlignment;
}

}  // namespace towpath::collective
