// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/collective/time_only/time_engine.hpp"

#include <algorithm>

namespace towpath::collective::time_only {

using transport::simulated::work_of;

TimeEngine::TimeEngine(BlockTable& table, FlowTable& flow_table, Flows& flows, Agenda& agenda,
                       DirectSteps& direct)
    : table_(table),
      transfers_(table.plan().transfers),
      flow_table_(flow_table),
      flows_(flows),
      agenda_(agenda),
      direct_(direct) {
  direct_.go_on = [this](Block& block, Time now) {
    block.at = now;
    block.state = State::ready;
    advance(block);
  };
}

void TimeEngine::begin_invocation() {
  unfinished_ = table_.blocks().size();
  for (StepTimes& times : table_.times()) times.clear();
  finished_at_ = now_;
  for (int rank = 0; rank < table_.simulated_ranks(); ++rank) {
    finished_at_ = std::max(finished_at_, now_ + table_.cost_of(rank).start());
  }
  for (Block& block : table_.blocks()) {
    block.at = now_ + block.cost->start();
    block.cursor.begin_invocation(transfers());
    block.state = State::finished;
    if (block.cursor.step_count == 0) {
      --unfinished_;
    } else if (block.one_sided != kNobody) {
      direct_.call_at(block, block.at, Note::resumed);
    } else {
      agenda_.make_ready(block);
    }
  }
}

void TimeEngine::run_ready(std::uint32_t partition) {
  while (agenda_.take_ready(partition, ready_)) {
    for (const std::uint32_t number : ready_) advance(table_[number]);
  }
}

// --- answers -------------------------------------------------------------------------------------

bool TimeEngine::is_running(Block& block) {
  return block.state == State::ready && agenda_.begins_in_time(block);
}

bool TimeEngine::is_step_finished(Block& block) {
  const Block& other = table_.dependency_of(block);
  StepTimes& times = table_.times_of(other);
  const std::uint64_t needed = block.cursor.steps_needed(other.cursor.step_count);
  const Time* const finished = times.find(needed, block.number);
  if (finished == nullptr) {
    block.state = State::dependency;
    times.wait(block);
    return false;
  }
  block.at = std::max(block.at, *finished);
  return true;
}

// The n-th slice sent is the n-th received. If the ends disagree on its size, the block waits
// forever, and executors run the schedule instead.
bool TimeEngine::has_arrived(Block& block, std::uint32_t slots) {
  const Mark& arrival = table_.arrival(block.number, block.slices_received);
  if (arrival.slots != block.cursor.slots_received + slots || arrival.time == Flows::kUnknown) {
    block.state = State::data;
    if (block.receives_across) agenda_.stall(block);
    return false;
  }
  block.at = std::max(block.at, arrival.time);
  return true;
}

bool TimeEngine::has_room(Block& block, std::uint32_t slots) {
  const std::uint64_t after = block.cursor.slots_sent + slots;
  while (after > block.send_slots + block.slots_returned) {
    const Mark& credit = table_.credit(block.number, block.slices_returned);
    if (credit.slots <= block.slots_returned) {
      block.state = State::slots;
      if (block.sends_across) agenda_.stall(block);
      return false;
    }
    block.slots_returned = credit.slots;
    ++block.slices_returned;
    block.at = std::max(block.at, credit.time);
  }
  return true;
}

bool TimeEngine::are_stores_visible(Block& block) {
  if (block.one_sided == kNobody || block.cursor.current().type == StepType::nop) return true;
  return direct_.are_stores_visible(block);
}

// --- moves --------------------------------------------------------------------------------------

bool TimeEngine::move_directly(Block& block) {
  ++slices_;
  direct_.start(block);
  return true;
}

// Returns true if the end of the slice is set.
bool TimeEngine::move_slice(Block& block) {
  const StepType type = block.cursor.current().type;
  if (type == StepType::nop) {
    slices_ += block.one_sided == kNobody;
    return true;
  }
  ++slices_;
  const std::uint64_t size_bytes = table_.size_of_slice(block);
  const bool is_combined = (receives(type) && reads_source(type)) || type == StepType::reduce;
  const bool is_copy = type == StepType::copy || type == StepType::receive;
  const bool is_stage = is_copy && table_.plan().schedule->has_switch_stages;
  const Work work =
      is_stage ? Work::stage : work_of(sends(type), writes_destination(type), is_combined);
  if (size_bytes != block.memo_bytes || work != block.memo_work) {
    set_memo(block, Bytes(size_bytes), work);
  }
  if (sends(type)) return put(block);
  block.at += block.memo_duration;
  if (block.one_sided == kNobody || block.memo_duration == Time()) return true;
  direct_.call_at(block, block.at, Note::slice_ended);
  return false;
}

void TimeEngine::set_memo(Block& block, Bytes size, Work work) {
  block.memo_bytes = size.count();
  block.memo_work = work;
  block.memo_duration = block.cost->local(size, work);
  block.memo_train = nullptr;
  if (block.flow == kNobody || size == Bytes(0)) return;
  block.memo_train = &flow_table_.train(block.flow, block.cost->on_wire_of(size),
                                        block.cost->pace(size, work), gpu_links::kSegmentMin);
}

bool TimeEngine::put(Block& block) {
  const std::uint32_t slice = block.slices_sent++;
  Mark& arrival = table_.arrival(block.send_to, slice);
  arrival.slots = block.cursor.slots_sent + block.cursor.slice().slots;
  arrival.time = Flows::kUnknown;
  const Time when = block.at + block.cost->before_put(block.leaves_host);
  if (block.memo_train == nullptr) {
    // A put to the own rank, or an empty one, does not load a link.
    const Bytes size = block.cost->on_wire_of(Bytes(block.memo_bytes));
    block.at =
        when + transfer_time(size, block.cost->pace(Bytes(block.memo_bytes), block.memo_work));
    note_arrival(block, slice, block.at + block.latency);
    return true;
  }
  const std::uint64_t tag = std::uint64_t{block.number} << 32 | slice;
  const Flows::Notice notice = flows_.send(block.flow, *block.memo_train, when, tag);
  if (notice.arrived != Flows::kUnknown) note_arrival(block, slice, notice.arrived);
  if (notice.left == Flows::kUnknown) {
    block.state = State::link;
    return false;
  }
  block.at = notice.left;
  return true;
}

// Returns the slots of the received slice.
void TimeEngine::end_slice(Block& block, std::uint32_t) {
  if (!receives(block.cursor.current().type)) return;
  Mark& credit = table_.credit(block.receive_from, block.slices_received++);
  credit = {block.cursor.slots_received, block.at + block.credit_delay};
  reach(credit.time);
  agenda_.wake(block.receive_from, State::slots);
}

void TimeEngine::end_iteration(const Block& block) {
  if (block.number == observed && on_iteration) on_iteration();
}

void TimeEngine::end_program(Block& block) {
  block.state = State::finished;
  finished_at_ = std::max(finished_at_, block.at);
  --unfinished_;
}

void TimeEngine::publish(Block& block) {
  if (block.progress == kNobody) return;
  StepTimes& times = table_.times_of(block);
  times.add(block.cursor.steps_finished(), block.at);
  std::uint32_t waiting = times.take_waiting();
  while (waiting != kNobody) {
    Block& dependent = table_[waiting];
    waiting = dependent.next_waiting;
    if (block.one_sided != kNobody && dependent.one_sided != kNobody) {
      // Happens immediately, as in an executor.
      dependent.state = State::ready;
      advance(dependent);
    } else {
      agenda_.wake(dependent.number, State::dependency);
    }
  }
}

// --- notices ------------------------------------------------------------------------------------

void TimeEngine::note(const Flows::Notice& notice) {
  if (DirectSteps::is_note(notice)) {
    reach(notice.at);
    const Note note = DirectSteps::note_of(notice);
    if (note != Note::resumed && note != Note::slice_ended) return direct_.note(notice);
    Block& block = table_[static_cast<std::uint32_t>(DirectSteps::number_of(notice))];
    block.state = State::ready;
    if (note == Note::slice_ended) ThreadBlockMachine::finish_slice(*this, block);
    return advance(block);
  }
  Block& block = table_[static_cast<std::uint32_t>(notice.tag >> 32)];
  if (notice.arrived != Flows::kUnknown) {
    note_arrival(block, static_cast<std::uint32_t>(notice.tag), notice.arrived);
  }
  if (notice.left == Flows::kUnknown) return;
  block.at = notice.left;
  block.state = State::ready;
  ThreadBlockMachine::finish_slice(*this, block);
  advance(block);
}

void TimeEngine::note_arrival(const Block& from, std::uint32_t slice, Time time) {
  const Time visible = time + from.delay;
  table_.arrival(from.send_to, slice).time = visible;
  reach(visible);
  agenda_.wake(from.send_to, State::data);
}

}  // namespace towpath::collective::time_only
