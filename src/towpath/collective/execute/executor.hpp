// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "towpath/collective/schedule/deadlock.hpp"
#include "towpath/collective/schedule/plan.hpp"
#include "towpath/transport/transport.hpp"

// One rank's run of one plan over one transport, simulated or live: the same object, the same code.
//
// Every thread block is a small state machine that goes on as far as it can and then waits for one
// thing: a step of a neighbouring block, a slice from its receive peer, free slots at its send
// peer, or the end of a Move. The transport calls it back; nothing here knows what time is.
//
//   Executor executor(transport, plan);      // the same on every rank, in the same order
//   executor.start({input, output});         // as often as wanted, one after another
//   executor.finish(10_s);                   // live or in a process; or let the simulation run
//
// Wrong: destroying an executor while a peer still runs its part; put a barrier in between.

namespace towpath::collective {

// In place, output overlaps input as the collective prescribes: the same memory, or one part of it.
// Null in a time-only run.
struct Buffers {
  const std::byte* input = nullptr;
  std::byte* output = nullptr;
};

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
  // Allocates FIFOs, scratch and signals. Throws std::invalid_argument when the schedule is made
  // for another number of ranks than the transport has.
  Executor(transport::Transport& transport, std::shared_ptr<const Plan> plan);
  ~Executor();
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  // Begins one invocation; the one before must be finished.
  void start(const Buffers& buffers);
  bool is_finished() const { return unfinished_blocks_ == 0; }
  // Blocks until finished, or throws transport::TransportError.
  void finish(Time timeout);

  // What it waits for, for the sentence of an error; empty when finished.
  std::vector<Blocked> blocked() const;
  std::string waiting_for() const;

  std::function<void()> on_finished;  // called at the end of each invocation; may be empty
  StepObserver on_step;               // called at the end of each step; may be empty

 private:
  struct Block;
  struct Part;
  struct OneSided;
  struct DirectRun;

  // The loop and what it waits for, in this order.
  void advance(Block& block);
  bool dependency_met(Block& block);
  bool slice_arrived(Block& block);
  bool slots_free(Block& block);
  void start_slice(Block& block);
  void finish_slice(Block& block);
  void finish_step(Block& block);
  void finish_block(Block& block);
  void finish_invocation();

  // One-sided steps; see one_sided_steps.cpp.
  transport::DirectNeeds direct_needs() const;
  void prepare_one_sided(Block& block);
  bool raised_first(Block& block);
  bool advance_one_sided(Block& block);
  bool takes_met(Block& block);
  void raise_counters(Block& block);
  std::vector<transport::Raise> raises_of(const Block& block) const;
  bool start_direct(Block& block);
  bool stores_visible(Block& block);
  void fill_direct(const Block& block, transport::DirectMove& move) const;
  void set_visible(DirectRun& run);
  void begin_pipeline(Block& block);
  bool goes_back(Block& block);
  transport::Signal counter_signal(std::uint32_t counter) const;
  transport::Offset offset_of(Buffer buffer, int rank) const;
  void open_window();
  void close_window();
  Waiting waiting(const Block& block) const;

  void begin_transfer(Block& block);
  Part part(const Block& block, Buffer buffer, std::uint32_t first_chunk) const;
  void set_operands(Block& block);
  void wait_for(Block& block, transport::Signal signal, std::uint64_t value, int peer,
                WaitReason reason);
  std::uint64_t connection_slots(std::int32_t peer) const;
  std::uint64_t slot_offset(std::int32_t fifo, std::uint64_t slot) const;
  transport::Signal data_signal(std::int32_t fifo, std::uint64_t slot) const;
  transport::Signal credit_signal(std::int32_t credit) const;
  std::byte* base(Buffer buffer) const;
  std::string describe(const Block& block) const;

  transport::Transport& transport_;
  std::shared_ptr<const Plan> plan_;
  const RankProgram* program_;
  std::uint64_t elements_per_transfer_max_ = 0;
  transport::Offset fifos_ = 0;
  transport::Offset scratch_ = 0;
  transport::Offset window_ = 0;  // input and output within reach of other ranks
  transport::Signal signals_ = 0;
  Buffers buffers_;
  bool is_in_place_ = false;  // with a window
  std::uint64_t invocations_ = 0;
  std::vector<Block> blocks_;
  std::size_t unfinished_blocks_ = 0;
};

}  // namespace towpath::collective
