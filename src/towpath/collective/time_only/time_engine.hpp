// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "towpath/collective/engine/thread_block_machine.hpp"
#include "towpath/collective/time_only/agenda.hpp"
#include "towpath/collective/time_only/direct_steps.hpp"

namespace towpath::collective::time_only {

// The engine over times. The start of a slice follows from the end of the previous slice, the
// arrival of data and credits, and the end of the step that it depends on. A thread block therefore
// continues as long as these times are known, ahead of all others, and records its times for its
// peers.
class TimeEngine {
 public:
  TimeEngine(BlockTable& table, FlowTable& flow_table, Flows& flows, Agenda& agenda,
             DirectSteps& direct);
  TimeEngine(const TimeEngine&) = delete;
  TimeEngine& operator=(const TimeEngine&) = delete;

  // Called at the end of each iteration of one thread block. May be empty.
  std::function<void()> on_iteration;
  std::uint32_t observed = kNobody;

  void begin_invocation();
  // Advances the ready thread blocks of a partition.
  void run_ready(std::uint32_t partition);
  void note(const Flows::Notice& notice);

  bool is_finished() const { return unfinished_ == 0; }
  Time finished_at() const { return finished_at_; }
  // The latest time: credits return after the end.
  Time now() const { return now_; }
  void set_now(Time now) { now_ = now; }
  std::uint64_t slices() const { return slices_; }
  void count_again(std::uint64_t slices) { slices_ += slices; }

 private:
  friend class collective::ThreadBlockMachine;

  const TransferTable& transfers() const { return transfers_; }
  const Chunking& chunking() const { return table_.plan().chunking; }
  OneSidedCursor* one_sided(const Block& block) { return direct_.cursor(block); }
  bool is_running(Block& block);
  bool is_step_finished(Block& block);
  bool has_arrived(Block& block, std::uint32_t slots);
  bool has_room(Block& block, std::uint32_t slots);
  bool are_stores_visible(Block& block);
  bool is_raised(Block& block, const CounterTake& take, std::uint64_t times) {
    return direct_.is_raised(block, take, times);
  }
  void taken(const Block&, const CounterTake&, std::uint64_t) {}
  void raise(Block& block, const std::vector<CounterRaise>& raises) {
    direct_.raise(block, raises);
  }
  void begin_step(const Block&) {}
  bool move_directly(Block& block);
  static bool is_moving(const Block& block) { return block.state == State::link; }
  bool move_slice(Block& block);
  void end_slice(Block& block, std::uint32_t slots);
  void end_step(const Block&) {}
  void end_iteration(const Block& block);
  void end_program(Block& block);
  void publish(Block& block);

  void advance(Block& block) { ThreadBlockMachine::advance(*this, block); }
  bool put(Block& block);
  void set_memo(Block& block, Bytes size, Work work);
  void note_arrival(const Block& from, std::uint32_t slice, Time time);
  void reach(Time time) { now_ = std::max(now_, time); }

  BlockTable& table_;
  const TransferTable& transfers_;
  FlowTable& flow_table_;
  Flows& flows_;
  Agenda& agenda_;
  DirectSteps& direct_;
  std::vector<std::uint32_t> ready_;  // thread blocks that are being advanced
  std::size_t unfinished_ = 0;
  Time now_;
  Time finished_at_;
  std::uint64_t slices_ = 0;
};

}  // namespace towpath::collective::time_only
