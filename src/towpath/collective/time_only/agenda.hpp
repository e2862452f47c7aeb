// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "towpath/collective/time_only/block_table.hpp"

namespace towpath::collective::time_only {

// The thread blocks that may continue, by partition, and the limit of time. Events are kept in
// order of time only within a partition, so that its state stays in the processor's cache: a
// partition runs until it waits for another one.
class Agenda {
 public:
  explicit Agenda(BlockTable& table) : table_(table), partitions_(1) {}

  void divide(std::uint32_t partitions) { partitions_.resize(partitions); }
  std::uint32_t partitions() const { return static_cast<std::uint32_t>(partitions_.size()); }

  // Events at the deadline or later are not simulated.
  void begin_invocation(Time now, Time deadline);
  Time deadline() const { return deadline_; }
  // Events at the horizon or later are not simulated until the next horizon is set.
  Time horizon() const { return horizon_; }
  void set_horizon(Time horizon);

  void make_ready(Block& block) {
    block.state = State::ready;
    partitions_[block.partition].ready.push_back(block.number);
    ++ready_count_;
  }
  void wake(std::uint32_t number, State reason) {
    if (table_[number].state == reason) make_ready(table_[number]);
  }
  bool has_ready() const { return ready_count_ > 0; }
  // Takes the next ready thread blocks of a partition. Returns false if there are none.
  bool take_ready(std::uint32_t partition, std::vector<std::uint32_t>& blocks);
  // True if a ready thread block begins before horizon and deadline. Otherwise it is parked.
  bool begins_in_time(const Block& block) {
    if (block.at < until()) return true;
    parked_.push_back(block.number);
    return false;
  }
  bool has_parked() const { return !parked_.empty(); }
  void unpark();

  // The current partition has run up to the limit.
  void open(std::uint32_t partition);
  Time limit() const { return limit_; }
  void close(std::uint32_t partition, Time first);
  // A thread block waits for another partition. The current partition may not run beyond the
  // earliest end of that wait.
  void stall(const Block& block);
  // No partition has an event before that time.
  void reach(Time first);
  void shift(Time by);

 private:
  struct Partition {
    Time reached;                        // it has no event before
    std::vector<std::uint32_t> ready;    // blocks
    std::vector<std::uint32_t> stalled;  // blocks that wait for another partition
  };

  Time until() const { return std::min(horizon_, deadline_); }
  bool stays_stalled(std::uint32_t number);
  Time earliest_resumption(const Block& block) const;

  BlockTable& table_;
  std::vector<Partition> partitions_;
  std::size_t ready_count_ = 0;
  std::vector<std::uint32_t> parked_;
  Time limit_;
  Time horizon_ = Flows::kUnknown;
  Time deadline_ = Flows::kUnknown;
};

}  // namespace towpath::collective::time_only
