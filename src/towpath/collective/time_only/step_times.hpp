// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "towpath/base/units.hpp"
#include "towpath/collective/time_only/block.hpp"
#include "towpath/sim/snapshot.hpp"

namespace towpath::collective::time_only {

// The end times of the steps of a thread block that other blocks of its rank depend on. The block
// may be far ahead of its readers.
class StepTimes {
 public:
  void add_reader(std::uint32_t block);
  // A reader needs earlier steps than before, so all of them are kept.
  void goes_back() { is_kept_ = true; }

  // Forgets all steps, but not the readers.
  void clear();
  // Steps are numbered from 1, and finish in that order.
  void add(std::uint64_t step, Time finished);
  // Null if the step is not finished.
  const Time* find(std::uint64_t step, std::uint32_t reader);

  // The first block that waits for a step. The waiting blocks are linked by Block::next_waiting.
  std::uint32_t take_waiting() { return std::exchange(first_waiting_, kNobody); }
  void wait(Block& block) { block.next_waiting = std::exchange(first_waiting_, block.number); }

  template <typename Visit>
  void for_each_reader(const Visit& visit) const {
    for (const Reader& reader : readers_) visit(reader.block);
  }
  // Adds the steps after `step`, counted from `zero`. Earlier steps will not be queried.
  void describe(sim::Snapshot& snapshot, std::uint64_t step, std::uint64_t zero) const;
  // Adds to the numbers and to the times of all steps.
  void shift(std::uint64_t steps, Time by);

 private:
  struct Step {
    std::uint64_t number = 0;
    Time finished;
  };
  struct Reader {
    std::uint32_t block = 0;
    std::uint64_t asked = 0;  // the last step
  };
  void trim();

  std::vector<Step> steps_;
  std::vector<Reader> readers_;
  bool is_kept_ = false;
  std::uint32_t first_waiting_ = kNobody;
  std::size_t trim_at_ = 0;
};

}  // namespace towpath::collective::time_only
