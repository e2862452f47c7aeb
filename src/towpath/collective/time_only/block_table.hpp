// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "towpath/base/index.hpp"
#include "towpath/collective/schedule/plan.hpp"
#include "towpath/collective/time_only/block.hpp"
#include "towpath/collective/time_only/step_times.hpp"
#include "towpath/transport/simulated/gpu/gpu_ranks.hpp"

// All thread blocks of a plan on the simulated ranks of a GPU machine, with their connections and
// flows.

namespace towpath::collective::time_only {

// A slice on its way to a receiver, or its slots on their way back.
struct Mark {
  std::uint64_t slots = 0;  // on this connection, this slice included
  Time time;                // kUnknown while it is on a link
};

class BlockTable {
 public:
  // The ranks outlive this object. Adds the flow of each block that sends to another rank.
  BlockTable(transport::simulated::GpuRanks& ranks, std::shared_ptr<const Plan> plan,
             FlowTable& flows);
  BlockTable(const BlockTable&) = delete;
  BlockTable& operator=(const BlockTable&) = delete;

  const Plan& plan() const { return *plan_; }
  transport::simulated::GpuRanks& ranks() const { return ranks_; }
  int simulated_ranks() const { return ranks_.simulated_ranks(); }
  const StepCost& cost_of(int rank);
  // The thread block of the simulated rank that represents `rank`.
  std::uint32_t block_at(int rank, std::int32_t block) const {
    return first_block_[index(rank % simulated_ranks())] + static_cast<std::uint32_t>(block);
  }
  std::vector<Block>& blocks() { return blocks_; }
  const std::vector<Block>& blocks() const { return blocks_; }
  Block& operator[](std::uint32_t number) { return blocks_[number]; }

  // The thread block that a step depends on.
  Block& dependency_of(const Block& block) {
    const auto other = static_cast<std::uint32_t>(block.cursor.current().depends_on_block);
    return blocks_[block.number - block.number_in_rank + other];
  }
  StepTimes& times_of(const Block& block) { return times_[block.progress]; }
  std::vector<StepTimes>& times() { return times_; }

  // Slices on their way to a receiver by its number, and slots on their way back to a sender.
  Mark& arrival(std::uint32_t receiver, std::uint32_t slice) {
    return mark(arrivals_, receiver, slice);
  }
  Mark& credit(std::uint32_t sender, std::uint32_t slice) { return mark(credits_, sender, slice); }

  // The bytes of a slice that exist in all of its buffers: ragged chunks are shorter.
  std::uint64_t size_of_slice(const Block& block) const {
    return is_ragged_ ? size_of_ragged_slice(block) : block.cursor.slice().count * element_bytes_;
  }
  bool is_ragged() const { return is_ragged_; }

  // Shifts all blocks by a time and by a number of iterations.
  void shift(Time by, std::uint64_t iterations);

 private:
  void add_blocks(int rank);
  void connect(int rank, FlowTable& flows);
  void find_readers(int rank);
  std::uint64_t size_of_ragged_slice(const Block& block) const;
  std::uint64_t existing(const Block& block, Buffer buffer, std::uint32_t chunk) const;
  Mark& mark(std::vector<Mark>& marks, std::uint32_t block, std::uint32_t slice) const {
    return marks[(std::size_t{block} << marks_shift_) + (slice & marks_mask_)];
  }

  transport::simulated::GpuRanks& ranks_;
  std::shared_ptr<const Plan> plan_;
  std::map<const machine::GpuCost*, StepCost> costs_;
  std::uint64_t element_bytes_;
  bool is_ragged_ = false;                  // some chunk has fewer elements than others
  std::vector<std::uint32_t> first_block_;  // per rank that is simulated, and one behind
  std::vector<Block> blocks_;
  std::vector<const Steps*> steps_;  // per block, if some chunk is ragged
  std::vector<StepTimes> times_;
  // One per slot of each block.
  std::vector<Mark> arrivals_;
  std::vector<Mark> credits_;
  std::uint32_t marks_shift_ = 0;
  std::uint32_t marks_mask_ = 0;
};

}  // namespace towpath::collective::time_only
