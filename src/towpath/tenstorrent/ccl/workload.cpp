// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/tenstorrent/ccl/workload.hpp"

#include <algorithm>

#include "towpath/base/index.hpp"

namespace towpath::tenstorrent::ccl {

using transport::kNoPeer;
using transport::Move;

namespace {

// Largest scratch of two calls that fits into the L1 of a core. Source: tt-metal,
// reduce_scatter_minimal_direct_op_device_operation.cpp (k_l1_shard_budget_bytes).
constexpr std::uint64_t kScratchBytesMax = 640 << 10;

Region region_of(collective::Buffer buffer) {
  return buffer == collective::Buffer::scratch ? Region::scratch : Region::array;
}

}  // namespace

// In the order in which an Executor fills a Move.
Operands operands_of(const collective::Step& step) {
  Operands found;
  bool has_source = false;
  const auto add = [&](Region region) {
    (has_source ? found.addend : found.source) = region;
    has_source = true;
  };
  if (collective::receives(step.type)) add(Region::slot);
  if (collective::writes_destination(step.type)) {
    found.destination = region_of(step.destination);
    found.accumulates = step.type == collective::StepType::reduce;
    if (found.accumulates) add(found.destination);
  }
  if (collective::reads_source(step.type)) add(region_of(step.source));
  return found;
}

void Workload::set_plan(const collective::Plan& plan, int rank) {
  program_ = &plan.schedule->ranks[index(rank)];
  is_scratch_in_l1_ = 2 * plan.scratch_bytes <= kScratchBytesMax;
}

void Workload::set_step(std::uint32_t block, std::uint32_t step) {
  if (program_ != nullptr) operands_ = operands_of(program_->blocks[block].steps[step]);
}

Work Workload::work_of(const Move& move) {
  Work work{.has_source = move.has_source,
            .has_addend = move.has_addend,
            .has_destination = move.has_destination && !is_in_place(move)};
  work.continues_reduction = continues_reduction(move);
  work.adds_in_pairs = work.continues_reduction && operands_.accumulates;
  work.adds_received = operands_.source == Region::slot || operands_.addend == Region::slot;
  work.reads = reads_of(move, work.continues_reduction);
  work.stays_in_l1 = move.has_destination && is_in_l1(move, operands_.destination);
  return work;
}

// Kernels of tt-metal write to the arrays of the far chip.
bool Workload::is_in_place(const Move& move) const {
  return operands_.source == Region::slot && !move.has_addend && move.has_destination;
}

// A thread block that adds several parts does so in one pass of the compute cores.
bool Workload::continues_reduction(const Move& move) {
  if (move.has_addend && move.peer == kNoPeer) return !reducing_.insert(&move).second;
  reducing_.erase(&move);
  return false;
}

// Workers of links read from DRAM.
bool Workload::is_in_l1(const Move& move, Region region) const {
  return move.peer == kNoPeer && region == Region::scratch && is_scratch_in_l1_;
}

// A sum that receives an addition is not read again.
int Workload::reads_of(const Move& move, bool continues_reduction) const {
  int reads = 0;
  if (move.has_source && !is_in_l1(move, operands_.source)) ++reads;
  if (move.has_addend && !is_in_l1(move, operands_.addend)) ++reads;
  return continues_reduction ? std::min(reads, 1) : reads;
}

}  // namespace towpath::tenstorrent::ccl
