// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "towpath/collective/engine/thread_block_machine.hpp"
#include "towpath/collective/execute/plan_memory.hpp"
#include "towpath/collective/schedule/deadlock.hpp"
#include "towpath/collective/schedule/plan.hpp"
#include "towpath/transport/transport.hpp"

// One rank's run of one plan over one transport, simulated or live, with the same code.
//
// ThreadBlockMachine determines when a thread block may continue. The executor reads the
// transport's signals for it and passes the transport one Move after the other. It has no clock.
//
//   Executor executor(transport, plan);      // the same on every rank, in the same order
//   executor.start({input, output});         // as often as wanted, one after another
//   executor.finish(10_s);                   // live or in a process; or let the simulation run
//
// Wrong: destroying an executor while a peer still runs its part. Use a barrier in between.

namespace towpath::collective {

// One finished step, for timelines.
struct StepRecord {
  int rank = 0;
  std::uint32_t block = 0;
  std::uint32_t step = 0;
  Time entered;  // the step before was finished
  Time moving;   // all it waited for was there (for the first slice)
  Time finished;
};
using StepObserver = std::function<void(const StepRecord&)>;

class Executor {
 public:
  // Allocates FIFOs, scratch and signals. Throws std::invalid_argument if the schedule has a number
  // of ranks other than the transport's.
  Executor(transport::Transport& transport, std::shared_ptr<const Plan> plan);
  ~Executor();
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  // Starts one invocation. The previous one must be finished.
  void start(const Buffers& buffers);
  bool is_finished() const { return unfinished_blocks_ == 0; }
  // Blocks until finished, or throws transport::TransportError.
  void finish(Time timeout);

  // The pending waits, for an error message. Empty when finished.
  std::vector<Blocked> blocked() const;
  std::string waiting_for() const;

  std::function<void()> on_finished;  // called at the end of each invocation, may be empty
  StepObserver on_step;               // called at the end of each step, may be empty

 private:
  friend class ThreadBlockMachine;
  struct Block;
  struct Part;
  struct Direct;
  struct DirectRun;

  const TransferTable& transfers() const { return plan_->transfers; }
  const Chunking& chunking() const { return plan_->chunking; }
  static OneSidedCursor* one_sided(Block& block);
  static bool is_running(const Block& block);
  bool is_step_finished(Block& block);
  bool has_arrived(Block& block, std::uint32_t slots);
  bool has_room(Block& block, std::uint32_t slots);
  bool move_slice(Block& block);
  void end_slice(Block& block, std::uint32_t slots);
  void end_step(Block& block);
  void end_iteration(const Block&) {}
  void end_program(Block& block);
  void publish(Block& block);

  // One-sided steps, in one_sided_steps.cpp.
  static bool are_stores_visible(Block& block);
  bool is_raised(Block& block, const CounterTake& take, std::uint64_t times);
  void taken(const Block&, const CounterTake&, std::uint64_t) {}
  void raise(Block& block, const std::vector<CounterRaise>& raises);
  void begin_step(Block& block);
  bool move_directly(Block& block);
  static bool is_moving(const Block& block);
  void set_visible(DirectRun& run);
  void fill_direct(const Block& block, transport::DirectMove& move) const;
  std::vector<transport::Raise> raises_at(const std::vector<CounterRaise>& raises) const;

  void prepare(Block& block, std::size_t number);
  void advance(Block& block);
  void finish_invocation();
  Part part(const Block& block, Buffer buffer, std::uint32_t first_chunk) const;
  void set_operands(Block& block);
  void wait_for(Block& block, transport::Signal signal, std::uint64_t value, int peer,
                WaitReason reason);
  Waiting waiting(const Block& block) const;
  std::string describe(const Block& block) const;

  transport::Transport& transport_;
  transport::MoveOrigins* origins_;
  std::shared_ptr<const Plan> plan_;
  const RankProgram* program_;
  PlanMemory memory_;
  std::vector<Block> blocks_;
  std::size_t unfinished_blocks_ = 0;
};

}  // namespace towpath::collective
