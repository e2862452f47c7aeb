// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/collective/execute/executor.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "towpath/collective/execute/executor_block.hpp"

namespace towpath::collective {

using transport::Move;
using transport::SignalWait;

namespace {

const RankProgram* program_of(const Schedule& schedule, const transport::Transport& transport) {
  if (schedule.rank_count() == transport.ranks()) {
    return &schedule.ranks[static_cast<std::size_t>(transport.rank())];
  }
  throw std::invalid_argument(fmt::format("schedule '{}' is for {} ranks, not {}", schedule.name,
                                          schedule.rank_count(), transport.ranks()));
}

}  // namespace

Executor::Executor(transport::Transport& transport, std::shared_ptr<const Plan> plan)
    : transport_(transport),
      origins_(transport.move_origins()),
      plan_(std::move(plan)),
      program_(program_of(*plan_->schedule, transport)),
      memory_(transport, plan_),
      blocks_(program_->blocks.size()) {
  for (std::size_t b = 0; b < blocks_.size(); ++b) prepare(blocks_[b], b);
}

void Executor::prepare(Block& block, std::size_t number) {
  block.executor = this;
  block.program = &program_->blocks[number];
  block.wiring = &plan_->wiring->of(transport_.rank())[number];
  block.index = static_cast<std::uint32_t>(number);
  block.cursor = BlockCursor(block.program->steps);
  block.send_slots = memory_.connection_slots(block.program->send_peer);
  block.receive_slots = memory_.connection_slots(block.program->receive_peer);
  block.move.context = &block;
  block.move.protocol = plan_->schedule->protocol;
  if (number < transport::kNoTurn) block.move.turn = static_cast<std::uint16_t>(number);
  block.move.reduction = plan_->reduction;
  block.move.done = [](Move& move) {
    Block& owner = *static_cast<Block*>(move.context);
    owner.is_moving = false;
    if (owner.is_starting_move) return;
    ThreadBlockMachine::finish_slice(*owner.executor, owner);
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
  if (block.program->accesses.empty()) return;
  block.direct = std::make_unique<Direct>();
  block.direct->cursor =
      OneSidedCursor(plan_->wiring->one_sided, *block.program, transport_.rank(), number);
}

Executor::~Executor() {
  for (Block& block : blocks_) {
    if (block.wait.is_waiting) transport_.cancel(block.wait);
  }
}

// --- an invocation ------------------------------------------------------------------------------

void Executor::start(const Buffers& buffers) {
  memory_.begin_invocation(buffers);
  unfinished_blocks_ = blocks_.size();
  for (Block& block : blocks_) {
    block.cursor.begin_invocation(transfers());
    block.is_finished = false;
    block.entered = transport_.now();
  }
  if (blocks_.empty()) finish_invocation();
  for (Block& block : blocks_) {
    if (block.program->steps.empty()) end_program(block);
  }
  for (Block& block : blocks_) {
    // The end of another block's step may already have woken the block.
    if (!block.is_finished && !block.is_waiting && !block.is_moving) advance(block);
  }
}

void Executor::finish(Time timeout) {
  transport_.block_until([this] { return is_finished(); }, timeout, transport::kNoPeer,
                         [this] { return waiting_for(); });
}

void Executor::end_program(Block& block) {
  block.is_finished = true;
  if (--unfinished_blocks_ == 0) finish_invocation();
}

void Executor::finish_invocation() {
  memory_.end_invocation();
  if (on_finished) on_finished();
}

// --- answers -------------------------------------------------------------------------------------

bool Executor::is_running(const Block& block) { return !block.is_finished; }

bool Executor::is_step_finished(Block& block) {
  Block& other = blocks_[static_cast<std::size_t>(block.cursor.current().depends_on_block)];
  if (other.cursor.steps_finished() >= block.cursor.steps_needed(other.cursor.step_count)) {
    return true;
  }
  block.reason = WaitReason::dependency;
  block.is_waiting = true;
  block.next_dependent = other.first_dependent;
  other.first_dependent = &block;
  return false;
}

bool Executor::has_arrived(Block& block, std::uint32_t slots) {
  const std::uint64_t before = block.cursor.slots_received;
  const transport::Signal signal =
      memory_.data_signal(block.wiring->fifo, before % block.receive_slots);
  if (transport_.signal_fetch(signal) >= before + slots) return true;
  wait_for(block, signal, before + slots, block.program->receive_peer, WaitReason::data);
  return false;
}

bool Executor::has_room(Block& block, std::uint32_t slots) {
  const std::uint64_t after = block.cursor.slots_sent + slots;
  if (after <= block.send_slots) return true;
  const transport::Signal signal = memory_.credit_signal(block.wiring->credit);
  if (transport_.signal_fetch(signal) >= after - block.send_slots) return true;
  wait_for(block, signal, after - block.send_slots, block.program->send_peer, WaitReason::slot);
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

// --- a slice ------------------------------------------------------------------------------------

bool Executor::move_slice(Block& block) {
  if (block.cursor.is_first_slice()) block.moving = transport_.now();
  if (block.cursor.current().type == StepType::nop) return true;
  set_operands(block);
  if (origins_ != nullptr) origins_->set_origin(block.index, block.cursor.step);
  block.is_moving = true;
  block.is_starting_move = true;
  transport_.start(block.move);
  block.is_starting_move = false;
  return !block.is_moving;
}

Executor::Part Executor::part(const Block& block, Buffer buffer, std::uint32_t first_chunk) const {
  const BlockCursor& at = block.cursor;
  const Range range =
      chunking().range(buffer, first_chunk + at.first_chunk, at.chunk_count, at.iteration);
  const std::uint64_t skipped = std::min(at.slice().offset, range.count);
  const std::uint64_t count = std::min(at.slice().count, range.count - skipped);
  std::byte* start = memory_.base(buffer);
  const std::uint64_t offset = (range.offset + skipped) * chunking().element_bytes();
  return {start == nullptr ? nullptr : start + offset, count * chunking().element_bytes()};
}

// The memory that a step of this kind reads and writes. If part of a ragged chunk is missing in one
// of the buffers, it is left out of all of them.
void Executor::set_operands(Block& block) {
  const BlockCursor& at = block.cursor;
  const Step step = block.program->steps[at.step];
  Move& move = block.move;
  move.source = move.addend = nullptr;
  move.destination = nullptr;
  move.has_source = move.has_addend = move.has_destination = false;
  move.has_signal = false;
  move.peer = transport::kNoPeer;
  move.size_bytes = at.slice().count * chunking().element_bytes();

  const auto add_operand = [&move](const std::byte* address) {
    (move.has_source ? move.addend : move.source) = address;
    (move.has_source ? move.has_addend : move.has_source) = true;
  };
  if (receives(step.type)) {
    const std::uint64_t slot = at.slots_received % block.receive_slots;
    add_operand(transport_.data(memory_.slot_offset(block.wiring->fifo, slot)));
  }
  if (writes_destination(step.type)) {
    const Part to = part(block, step.destination, step.destination_chunk);
    move.destination = to.address;
    move.has_destination = true;
    move.size_bytes = std::min(move.size_bytes, to.size_bytes);
    if (step.type == StepType::reduce) add_operand(to.address);
  }
  if (reads_source(step.type)) {
    const Part from = part(block, step.source, step.source_chunk);
    move.size_bytes = std::min(move.size_bytes, from.size_bytes);
    add_operand(from.address);
  }
  if (sends(step.type)) {
    const std::uint64_t slot = at.slots_sent % block.send_slots;
    move.peer = block.program->send_peer;
    move.remote = memory_.slot_offset(block.wiring->peer_fifo, slot);
    move.has_signal = true;
    move.signal = memory_.data_signal(block.wiring->peer_fifo, slot);
    move.signal_value = at.slots_sent + at.slice().slots;
  }
}

// Returns the slots of the received slice.
void Executor::end_slice(Block& block, std::uint32_t slots) {
  if (!receives(block.cursor.current().type)) return;
  Move credit;  // a flag alone is done when start() returns
  credit.protocol = block.move.protocol;
  credit.peer = block.program->receive_peer;
  credit.has_signal = true;
  credit.signal = memory_.credit_signal(block.wiring->peer_credit);
  credit.signal_value = slots;
  credit.signal_operation = transport::SignalOperation::add;
  transport_.start(credit);
}

void Executor::end_step(Block& block) {
  if (!on_step) return;
  on_step({transport_.rank(), block.index, block.cursor.step, block.entered, block.moving,
           transport_.now()});
  block.entered = transport_.now();
}

// Thread blocks with unmet dependencies are queued again.
void Executor::publish(Block& block) {
  Block* dependent = std::exchange(block.first_dependent, nullptr);
  while (dependent != nullptr) {
    Block* next = std::exchange(dependent->next_dependent, nullptr);
    dependent->is_waiting = false;
    advance(*dependent);
    dependent = next;
  }
}

// --- words --------------------------------------------------------------------------------------

std::vector<Blocked> Executor::blocked() const {
  std::vector<Blocked> all;
  for (const Block& block : blocks_) {
    if (!block.is_waiting) continue;
    all.push_back(blocked_at(*plan_->schedule, *plan_->wiring, waiting(block)));
  }
  return all;
}

Waiting Executor::waiting(const Block& block) const {
  return {transport_.rank(), static_cast<int>(block.index), static_cast<int>(block.cursor.step),
          block.reason, block.direct == nullptr ? 0 : block.direct->cursor.next_take};
}

std::string Executor::describe(const Block& block) const {
  const Step& step = block.cursor.current();
  const std::string where =
      fmt::format("channel {}, thread block {}, step {} {}", block.program->channel, block.index,
                  block.cursor.step, name_of(step.type));
  if (!block.is_waiting) return fmt::format("the end of its own transfer ({})", where);
  switch (block.reason) {
    case WaitReason::dependency:
      return fmt::format("step {} of thread block {} ({})", step.depends_on_step,
                         step.depends_on_block, where);
    case WaitReason::data:
      return fmt::format("slot {} from rank {} ({})", block.cursor.slots_received,
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
    // Reports a wait for another rank first, because it says more than a wait for a neighboring
    // block.
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
