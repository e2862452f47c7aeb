// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/collective/execute/executor.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "towpath/collective/execute/executor_block.hpp"

namespace towpath::collective {

using transport::Move;
using transport::SignalWait;

Executor::Executor(transport::Transport& transport, std::shared_ptr<const Plan> plan)
    : transport_(transport), plan_(std::move(plan)) {
  const Schedule& schedule = *plan_->schedule;
  if (schedule.rank_count() != transport.ranks()) {
    throw std::invalid_argument(fmt::format("schedule '{}' is for {} ranks, not {}", schedule.name,
                                            schedule.rank_count(), transport.ranks()));
  }
  const auto rank = static_cast<std::size_t>(transport.rank());
  program_ = &schedule.ranks[rank];
  if (plan_->wiring->fifos > 0) {
    fifos_ = transport_.allocate(plan_->wiring->fifos * plan_->fifo_bytes());
  }
  if (plan_->scratch_bytes > 0) {
    scratch_ = transport_.allocate(plan_->scratch_count() * plan_->scratch_bytes);
  }
  if (plan_->window_bytes > 0) {
    const std::string refusal = transport_.direct_refusal(direct_needs());
    if (!refusal.empty()) {
      throw std::invalid_argument(fmt::format("schedule '{}': {}", schedule.name, refusal));
    }
    window_ = transport_.allocate(plan_->window_bytes);
  }
  if (plan_->signals() > 0) signals_ = transport_.allocate_signals(plan_->signals());

  blocks_.resize(program_->blocks.size());
  for (std::size_t b = 0; b < blocks_.size(); ++b) {
    Block& block = blocks_[b];
    block.executor = this;
    block.program = &program_->blocks[b];
    block.wiring = &plan_->wiring->of(transport.rank())[b];
    block.index = static_cast<std::uint32_t>(b);
    block.send_slots = connection_slots(block.program->send_peer);
    block.receive_slots = connection_slots(block.program->receive_peer);
    block.move.context = &block;
    block.move.protocol = schedule.protocol;
    if (b < transport::kNoTurn) block.move.turn = static_cast<std::uint16_t>(b);
    block.move.reduction = plan_->reduction;
    block.move.done = [](Move& move) {
      Block& owner = *static_cast<Block*>(move.context);
      owner.is_moving = false;
      if (owner.is_starting_move) return;
      owner.executor->finish_slice(owner);
      owner.executor->advance(owner);
    };
    block.wait.context = &block;
    block.wait.ready = [](SignalWait& wait) {
      Block& owner = *static_cast<Block*>(wait.context);
      owner.is_waiting = false;
      owner.executor->advance(owner);
    };
    block.wait.describe = [](const SignalWait& wait) {
      const Block& owner = *static_cast<const Block*>(wait.context);
      return owner.executor->describe(owner);
    };
    if (!block.program->accesses.empty()) prepare_one_sided(block);
  }
}

Executor::~Executor() {
  for (Block& block : blocks_) {
    if (block.wait.is_waiting) transport_.cancel(block.wait);
  }
  if (plan_->signals() > 0) transport_.release_signals(signals_);
  if (plan_->window_bytes > 0) transport_.release(window_);
  if (plan_->scratch_bytes > 0) transport_.release(scratch_);
  if (plan_->wiring->fifos > 0) transport_.release(fifos_);
}

void Executor::start(const Buffers& buffers) {
  buffers_ = buffers;
  ++invocations_;
  if (plan_->window_bytes > 0) open_window();
  unfinished_blocks_ = blocks_.size();
  for (Block& block : blocks_) {
    block.iteration = 0;
    block.step = 0;
    block.steps_finished = 0;
    block.first_chunk = 0;
    block.slice_index = 0;
    block.is_finished = false;
    block.entered = transport_.now();
  }
  if (blocks_.empty()) finish_invocation();
  for (Block& block : blocks_) {
    if (block.program->steps.empty()) {
      finish_block(block);
    } else {
      begin_transfer(block);
    }
  }
  for (Block& block : blocks_) {
    // A block may already have been woken by the end of another one's step.
    if (!block.is_finished && !block.is_waiting && !block.is_moving) advance(block);
  }
}

void Executor::finish(Time timeout) {
  transport_.block_until([this] { return is_finished(); }, timeout, transport::kNoPeer,
                         [this] { return waiting_for(); });
}

void Executor::advance(Block& block) {
  while (!block.is_finished) {
    if (!dependency_met(block)) return;
    if (is_one_sided(block.current().type)) {
      if (!advance_one_sided(block)) return;
      finish_step(block);
      continue;
    }
    if (!stores_visible(block) || !slice_arrived(block) || !slots_free(block)) return;
    start_slice(block);
    if (block.is_moving) return;
    finish_slice(block);
  }
}

bool Executor::dependency_met(Block& block) {
  const Step& step = block.current();
  if (step.depends_on_block == kNone) return true;
  Block& other = blocks_[static_cast<std::size_t>(step.depends_on_block)];
  const std::uint64_t needed = block.iteration * other.program->steps.size() +
                               static_cast<std::uint64_t>(step.depends_on_step) + 1;
  if (other.steps_finished >= needed) return true;
  block.reason = WaitReason::dependency;
  block.is_waiting = true;
  block.next_dependent = other.first_dependent;
  other.first_dependent = &block;
  return false;
}

bool Executor::slice_arrived(Block& block) {
  if (!receives(block.current().type)) return true;
  const std::uint64_t needed = block.slots_received + block.slice.slots;
  const transport::Signal signal =
      data_signal(block.wiring->fifo, block.slots_received % block.receive_slots);
  if (transport_.signal_fetch(signal) >= needed) return true;
  wait_for(block, signal, needed, block.program->receive_peer, WaitReason::data);
  return false;
}

bool Executor::slots_free(Block& block) {
  if (!sends(block.current().type)) return true;
  const std::uint64_t slots = block.send_slots;
  const std::uint64_t after = block.slots_sent + block.slice.slots;
  if (after <= slots) return true;
  const transport::Signal signal = credit_signal(block.wiring->credit);
  if (transport_.signal_fetch(signal) >= after - slots) return true;
  wait_for(block, signal, after - slots, block.program->send_peer, WaitReason::slot);
  return false;
}

void Executor::wait_for(Block& block, transport::Signal signal, std::uint64_t value, int peer,
                        WaitReason reason) {
  block.reason = reason;
  block.is_waiting = true;
  block.wait.signal = signal;
  block.wait.value = value;
  block.wait.peer = peer;
  transport_.wait(block.wait);
}

void Executor::start_slice(Block& block) {
  if (block.slice_index == 0 && block.first_chunk == 0) block.moving = transport_.now();
  if (block.current().type == StepType::nop) return;
  set_operands(block);
  block.is_moving = true;
  block.is_starting_move = true;
  transport_.start(block.move);
  block.is_starting_move = false;
}

Executor::Part Executor::part(const Block& block, Buffer buffer, std::uint32_t first_chunk) const {
  const Chunking& chunking = plan_->chunking;
  const Range range =
      chunking.range(buffer, first_chunk + block.first_chunk, block.chunk_count, block.iteration);
  const std::uint64_t skipped = std::min(block.slice.offset, range.count);
  const std::uint64_t count = std::min(block.slice.count, range.count - skipped);
  std::byte* start = base(buffer);
  const std::uint64_t offset = (range.offset + skipped) * chunking.element_bytes();
  return {start == nullptr ? nullptr : start + offset, count * chunking.element_bytes()};
}

static Move::Region region_of(Buffer buffer) {
  return buffer == Buffer::scratch ? Move::Region::scratch : Move::Region::array;
}

// Which memory the step's kind reads and writes. What does not exist of a ragged chunk in one of
// the buffers is left out of all.
void Executor::set_operands(Block& block) {
  const Step step = block.program->steps[block.step];
  Move& move = block.move;
  move.source = move.addend = nullptr;
  move.destination = nullptr;
  move.has_source = move.has_addend = move.has_destination = move.accumulates = false;
  move.has_signal = false;
  move.peer = transport::kNoPeer;
  move.size_bytes = block.slice.count * plan_->chunking.element_bytes();

  const auto add_operand = [&move](const std::byte* address, Move::Region region) {
    (move.has_source ? move.addend : move.source) = address;
    (move.has_source ? move.addend_in : move.source_in) = region;
    (move.has_source ? move.has_addend : move.has_source) = true;
  };
  if (receives(step.type)) {
    add_operand(transport_.data(
                    slot_offset(block.wiring->fifo, block.slots_received % block.receive_slots)),
                Move::Region::slot);
  }
  if (writes_destination(step.type)) {
    const Part to = part(block, step.destination, step.destination_chunk);
    move.destination = to.address;
    move.destination_in = region_of(step.destination);
    move.has_destination = true;
    move.size_bytes = std::min(move.size_bytes, to.size_bytes);
    move.accumulates = step.type == StepType::reduce;
    if (move.accumulates) add_operand(to.address, move.destination_in);
  }
  if (reads_source(step.type)) {
    const Part from = part(block, step.source, step.source_chunk);
    move.size_bytes = std::min(move.size_bytes, from.size_bytes);
    add_operand(from.address, region_of(step.source));
  }
  if (sends(step.type)) {
    move.peer = block.program->send_peer;
    move.remote = slot_offset(block.wiring->peer_fifo, block.slots_sent % block.send_slots);
    move.has_signal = true;
    move.signal = data_signal(block.wiring->peer_fifo, block.slots_sent % block.send_slots);
    move.signal_value = block.slots_sent + block.slice.slots;
  }
}

// Hands the slots back, then goes to the next slice, transfer, step or iteration.
void Executor::finish_slice(Block& block) {
  const Step& step = block.current();
  if (sends(step.type)) block.slots_sent += block.slice.slots;
  if (receives(step.type)) {
    block.slots_received += block.slice.slots;
    Move credit;  // a flag alone is done when start() returns
    credit.protocol = block.move.protocol;
    credit.peer = block.program->receive_peer;
    credit.has_signal = true;
    credit.signal = credit_signal(block.wiring->peer_credit);
    credit.signal_value = block.slice.slots;
    credit.signal_operation = transport::SignalOperation::add;
    transport_.start(credit);
  }
  if (++block.slice_index < block.slices) {
    block.slice = plan_->chunking.slice(block.transfer_elements, block.slice_index);
    return;
  }
  block.first_chunk += block.chunk_count;
  if (block.first_chunk < step.count) {
    begin_transfer(block);
  } else {
    finish_step(block);
  }
}

void Executor::begin_transfer(Block& block) {
  const Step& step = block.current();
  if (is_one_sided(step.type)) return;
  const Chunking& chunking = plan_->chunking;
  block.chunk_count = std::min(step.count - block.first_chunk, chunking.chunks_per_transfer());
  block.transfer_elements = chunking.nominal(block.chunk_count, block.iteration);
  block.slice_index = 0;
  const bool is_local = !sends(step.type) && !receives(step.type);
  block.slices = is_local ? 1 : chunking.slices(block.transfer_elements);
  block.slice =
      is_local ? Slice{0, block.transfer_elements, 0} : chunking.slice(block.transfer_elements, 0);
}

void Executor::finish_step(Block& block) {
  const bool publishes = block.current().publishes;
  if (on_step) {
    on_step({transport_.rank(), block.index, block.step, block.entered, block.moving,
             transport_.now()});
    block.entered = transport_.now();
  }
  if (block.one_sided != nullptr && goes_back(block)) return;
  ++block.steps_finished;
  block.first_chunk = 0;
  if (++block.step == block.program->steps.size()) {
    block.step = 0;
    ++block.iteration;
  }
  if (block.iteration == plan_->chunking.iterations()) {
    finish_block(block);
  } else {
    begin_transfer(block);
  }
  if (!publishes) return;
  // Those whose dependency is still not met queue up again.
  Block* dependent = std::exchange(block.first_dependent, nullptr);
  while (dependent != nullptr) {
    Block* next = std::exchange(dependent->next_dependent, nullptr);
    dependent->is_waiting = false;
    advance(*dependent);
    dependent = next;
  }
}

void Executor::finish_block(Block& block) {
  block.is_finished = true;
  if (--unfinished_blocks_ == 0) finish_invocation();
}

void Executor::finish_invocation() {
  if (plan_->window_bytes > 0) close_window();
  const bool is_average = plan_->reduction.operation == transport::ReductionOperation::avg;
  const Schedule& schedule = *plan_->schedule;
  const bool has_result =
      schedule.collective == Collective::all_reduce ||
      schedule.collective == Collective::reduce_scatter ||
      (schedule.collective == Collective::reduce && schedule.root == transport_.rank());
  if (is_average && has_result && transport_.carries_data()) {
    transport::divide(buffers_.output, plan_->output_bytes(), plan_->reduction.type,
                      schedule.rank_count());
  }
  if (on_finished) on_finished();
}

std::uint64_t Executor::connection_slots(std::int32_t peer) const {
  return peer == kNone ? 0 : plan_->slots(transport_.is_addressable(peer));
}

std::uint64_t Executor::slot_offset(std::int32_t fifo, std::uint64_t slot) const {
  return fifos_ + static_cast<std::uint64_t>(fifo) * plan_->fifo_bytes() + slot * plan_->slot_bytes;
}

// Raised to the count of slots after the slice that begins there. A slot carries one slice at a
// time, so its signal only grows, in whatever order slices arrive.
transport::Signal Executor::data_signal(std::int32_t fifo, std::uint64_t slot) const {
  return signals_ + static_cast<transport::Signal>(
                        static_cast<std::uint64_t>(fifo) * plan_->slots_max() + slot);
}

transport::Signal Executor::credit_signal(std::int32_t credit) const {
  return signals_ + plan_->wiring->fifos * plan_->slots_max() +
         static_cast<transport::Signal>(credit);
}

std::byte* Executor::base(Buffer buffer) const {
  if (!transport_.carries_data()) return nullptr;
  if (plan_->window_bytes > 0) return transport_.data(offset_of(buffer, transport_.rank()));
  switch (buffer) {
    // A step that stores to the input runs in place, where input and output are the same memory.
    case Buffer::input: return const_cast<std::byte*>(buffers_.input);
    case Buffer::output: return buffers_.output;
    case Buffer::scratch: return transport_.data(scratch_);
  }
  return nullptr;
}

std::vector<Blocked> Executor::blocked() const {
  std::vector<Blocked> all;
  for (const Block& block : blocks_) {
    if (!block.is_waiting) continue;
    all.push_back(blocked_at(*plan_->schedule, *plan_->wiring, waiting(block)));
  }
  return all;
}

Waiting Executor::waiting(const Block& block) const {
  return {transport_.rank(), static_cast<int>(block.index), static_cast<int>(block.step),
          block.reason, block.one_sided == nullptr ? 0 : block.one_sided->next_take};
}

std::string Executor::describe(const Block& block) const {
  const Step& step = block.current();
  const std::string where =
      fmt::format("channel {}, thread block {}, step {} {}", block.program->channel, block.index,
                  block.step, name_of(step.type));
  if (!block.is_waiting) return fmt::format("the end of its own transfer ({})", where);
  switch (block.reason) {
    case WaitReason::dependency:
      return fmt::format("step {} of thread block {} ({})", step.depends_on_step,
                         step.depends_on_block, where);
    case WaitReason::data:
      return fmt::format("slot {} from rank {} ({})", block.slots_received,
                         block.program->receive_peer, where);
    case WaitReason::slot:
      return fmt::format("a free slot at rank {} ({})", block.program->send_peer, where);
    case WaitReason::launch: break;
    case WaitReason::signal:
    case WaitReason::barrier:
    case WaitReason::semaphore:
    case WaitReason::packet: {
      const Blocked at = blocked_at(*plan_->schedule, *plan_->wiring, waiting(block));
      return fmt::format("{} of rank {} thread block {} ({})", words_of(block.reason),
                         at.waits_for_rank, at.waits_for_block, where);
    }
  }
  return where;
}

std::string Executor::waiting_for() const {
  std::string text;
  std::size_t others = 0;
  for (const Block& block : blocks_) {
    if (block.is_finished) continue;
    // A wait for another rank says more than one for a neighbouring block.
    const bool is_remote = !block.is_waiting || block.reason != WaitReason::dependency;
    if (text.empty() && is_remote) {
      text = describe(block);
    } else {
      ++others;
    }
  }
  if (others > 0) text += fmt::format(" and {} other thread blocks", others);
  return text;
}

}  // namespace towpath::collective
