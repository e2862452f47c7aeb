// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "towpath/collective/execute/executor.hpp"

// The executor's own: where each thread block is.

namespace towpath::collective {

// A DirectMove under way, and whose it is.
struct Executor::DirectRun {
  transport::DirectMove move;
  Block* block = nullptr;
  bool is_under_way = false;
};

// What a thread block with one-sided steps keeps besides.
struct Executor::OneSided {
  const std::vector<AccessWiring>* wiring = nullptr;  // per access
  // Per slot, since the executor was made; they only grow, so nothing is ever reset.
  std::vector<std::uint64_t> taken;

  // Within the current step.
  bool has_raised = false;
  bool has_moved = false;
  std::size_t next_take = 0;

  // The pipeline that the current step belongs to.
  std::uint32_t loop_first = 0;  // steps of its body
  std::uint32_t loop_end = 0;
  std::uint64_t loop = 0;
  std::uint64_t loops = 0;
  std::uint64_t unit_elements = 0;

  std::size_t under_way = 0;  // moves whose stores are not yet visible
  bool awaits_visible = false;
  std::deque<DirectRun> runs;  // storage
  std::vector<DirectRun*> free_runs;

  bool is_in_pipeline(std::uint32_t step) const { return step >= loop_first && step < loop_end; }
};

// A contiguous piece of a buffer that one slice reads or writes.
struct Executor::Part {
  std::byte* address = nullptr;
  std::uint64_t size_bytes = 0;
};

struct Executor::Block {
  Executor* executor = nullptr;
  const ThreadBlock* program = nullptr;
  const BlockWiring* wiring = nullptr;
  std::uint32_t index = 0;

  // Where it is: iteration > step > transfer > slice.
  std::uint64_t iteration = 0;
  std::uint32_t step = 0;
  std::uint32_t first_chunk = 0;  // of the current transfer, within the step
  std::uint32_t chunk_count = 0;
  std::uint64_t transfer_elements = 0;
  std::uint32_t slice_index = 0;
  std::uint32_t slices = 0;
  Slice slice;

  std::uint64_t send_slots = 0;     // of its outgoing connection's FIFO
  std::uint64_t receive_slots = 0;  // of its incoming one's

  // Slots since the executor was made; they only grow, so nothing is ever reset.
  std::uint64_t slots_sent = 0;
  std::uint64_t slots_received = 0;

  std::uint64_t steps_finished = 0;  // of this invocation, over all iterations
  Block* first_dependent = nullptr;  // blocks of this rank that wait for a step of this one
  Block* next_dependent = nullptr;

  bool is_finished = true;
  bool is_waiting = false;
  bool is_moving = false;
  bool is_starting_move = false;
  WaitReason reason = WaitReason::launch;
  Time entered;
  Time moving;

  transport::Move move;
  transport::SignalWait wait;
  std::unique_ptr<OneSided> one_sided;  // only with one-sided steps

  // Its chunks are as program->steps has them, not rotated to those of the thread block.
  const Step& current() const { return program->steps.unrotated(step); }
};

}  // namespace towpath::collective
