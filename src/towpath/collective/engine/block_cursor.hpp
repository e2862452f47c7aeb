// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "towpath/collective/schedule/one_sided.hpp"
#include "towpath/collective/schedule/transfer_table.hpp"

// The position of a thread block in its program, for every engine.

namespace towpath::collective {

// Iteration > step > transfer > slice. Chunks of its steps are not rotated.
struct BlockCursor {
  Step current_step;  // a copy: the list is shared by many thread blocks and is not in the cache
  const Transfer* transfer = nullptr;
  std::uint32_t step = 0;
  std::uint32_t first_chunk = 0;  // of the transfer, within the step
  std::uint32_t chunk_count = 0;
  std::uint8_t slice_number = 0;
  bool is_dependency_met = false;  // of the step
  std::uint64_t iteration = 0;
  // Counted from the creation of the block. The counters only grow and are never reset.
  std::uint64_t slots_sent = 0;
  std::uint64_t slots_received = 0;
  const Step* steps = nullptr;
  std::uint32_t step_count = 0;

  BlockCursor() = default;
  explicit BlockCursor(const Steps& program)
      : steps(program.empty() ? nullptr : &program.unrotated(0)),
        step_count(static_cast<std::uint32_t>(program.size())) {}

  const Step& current() const { return current_step; }
  const Slice& slice() const { return transfer->slice[slice_number]; }
  bool is_first_slice() const { return slice_number == 0 && first_chunk == 0; }
  bool is_finished(const TransferTable& transfers) const {
    return step_count == 0 || iteration == transfers.iterations();
  }
  // In this invocation, over all iterations.
  std::uint64_t steps_finished() const { return iteration * step_count + step; }
  // Number of completed steps required of the thread block that the current step depends on, which
  // has `steps_of_other` steps.
  std::uint64_t steps_needed(std::uint32_t steps_of_other) const {
    return iteration * steps_of_other + static_cast<std::uint64_t>(current().depends_on_step) + 1;
  }

  void begin_invocation(const TransferTable& transfers) {
    iteration = 0;
    go_to_step(transfers, 0);
  }
  void go_to_step(const TransferTable& transfers, std::uint32_t number) {
    step = number;
    first_chunk = 0;
    if (is_finished(transfers)) return;
    current_step = steps[number];
    is_dependency_met = current().depends_on_block == kNone;
    if (!is_one_sided(current().type)) begin_transfer(transfers);
  }
  // Records that the current slice has moved. Returns true if the step is done.
  bool finish_slice(const TransferTable& transfers) {
    if (sends(current().type)) slots_sent += slice().slots;
    if (receives(current().type)) slots_received += slice().slots;
    if (++slice_number < transfer->slices) return false;
    first_chunk += chunk_count;
    // The count of a nop has no meaning.
    if (first_chunk >= current().count || current().type == StepType::nop) return true;
    begin_transfer(transfers);
    return false;
  }
  void finish_step(const TransferTable& transfers) {
    const bool is_last = step + 1 == step_count;
    iteration += is_last;
    go_to_step(transfers, is_last ? 0 : step + 1);
  }

 private:
  void begin_transfer(const TransferTable& transfers) {
    chunk_count = std::min(current().count - first_chunk, transfers.chunks_per_transfer());
    transfer = &transfers.of(current().type, chunk_count, iteration);
    slice_number = 0;
  }
};

// The counters and the pipeline of a thread block with one-sided steps.
struct OneSidedCursor {
  const ThreadBlock* program = nullptr;
  const std::vector<AccessWiring>* wiring = nullptr;  // per access
  // One per counter that the thread block uses, from its creation on.
  std::vector<std::uint64_t> taken;
  std::vector<std::uint64_t> raised;

  // Position within the current step.
  bool has_raised = false;
  bool has_moved = false;
  std::size_t next_take = 0;

  // The pipeline of the current step.
  std::uint32_t loop_first = 0;  // steps of its body
  std::uint32_t loop_end = 0;
  std::uint64_t loop = 0;
  std::uint64_t loops = 0;
  std::uint64_t unit_elements = 0;

  OneSidedCursor() = default;
  OneSidedCursor(const OneSidedWiring& all, const ThreadBlock& block, int rank, std::size_t number)
      : program(&block),
        wiring(&all.ranks[static_cast<std::size_t>(rank)][number]),
        taken(all.slots[static_cast<std::size_t>(rank)][number], 0),
        raised(taken) {}

  const AccessWiring& wiring_of(const Step& step) const { return (*wiring)[step.source_chunk]; }

  void begin_pipeline(const BlockCursor& at, const Chunking& chunking) {
    const Access& access = program->access(at.current());
    loop_first = at.step + 1;
    loop_end = loop_first + at.current().count;
    loop = 0;
    loops = loop_count(access, chunking.chunk_elements(), chunking.element_bytes());
    unit_elements = collective::unit_elements(access, chunking.element_bytes());
  }
  // The elements of the current step's ranges to process.
  Piece piece(const BlockCursor& at) const {
    const Access& access = program->access(at.current());
    const bool is_in_pipeline = at.step >= loop_first && at.step < loop_end;
    return {at.iteration, access.part, access.parts, is_in_pipeline ? unit_elements : 0, loop};
  }
  // Records that the step at the cursor is done. Returns true if the first step of its pipeline
  // repeats.
  bool goes_back(const BlockCursor& at) {
    has_raised = has_moved = false;
    next_take = 0;
    if (at.step < loop_first || at.step + 1 != loop_end) return false;
    if (++loop < loops) return true;
    loop_end = 0;
    return false;
  }
};

}  // namespace towpath::collective
