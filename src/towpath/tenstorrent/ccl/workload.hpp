// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <unordered_set>

#include "towpath/collective/schedule/plan.hpp"
#include "towpath/transport/transport.hpp"

// The work of Moves for the workers of a chip: operands to read from DRAM, to add, and to store.

namespace towpath::tenstorrent::ccl {

// Memory of an operand. Scratch may be in the L1 of the cores that add.
enum class Region : std::uint8_t { array, slot, scratch };

// Operands of the Moves of a step.
struct Operands {
  Region source = Region::array;
  Region addend = Region::array;
  Region destination = Region::array;
  bool accumulates = false;  // the source is the contents of the destination
};
Operands operands_of(const collective::Step& step);

struct Work {
  bool has_source = false;
  bool has_addend = false;
  bool has_destination = false;  // in DRAM
  int reads = 0;                 // operands in DRAM
  // A reduction directly after another one of the same Move: the pipeline of the compute cores is
  // running and contains the sum. The store may receive additions, so that no work waits for it.
  bool continues_reduction = false;
  // The addend and the previous part are added at once.
  bool adds_in_pairs = false;
  // The addend arrived over a link and is read page by page. Otherwise it is in scratch.
  bool adds_received = false;
  bool stays_in_l1 = false;  // nothing is stored in DRAM
};

// Work of one rank's Moves, by the step of the plan to which each belongs.
class Workload {
 public:
  // The scratch memories of two calls, which alternate, are in L1 if there is room for both.
  void set_plan(const collective::Plan& plan, int rank);
  void set_step(std::uint32_t block, std::uint32_t step);
  // For the following Moves.
  void set_operands(const Operands& operands) { operands_ = operands; }
  void keep_scratch_in_l1(bool keeps) { is_scratch_in_l1_ = keeps; }

  Work work_of(const transport::Move& move);
  // A router has already written the data to its destination.
  bool is_in_place(const transport::Move& move) const;

 private:
  bool continues_reduction(const transport::Move& move);
  bool is_in_l1(const transport::Move& move, Region region) const;
  int reads_of(const transport::Move& move, bool continues_reduction) const;

  const collective::RankProgram* program_ = nullptr;  // null without a plan
  Operands operands_;
  bool is_scratch_in_l1_ = false;
  // Moves, each of one thread block, whose last use was a reduction inside the chip.
  std::unordered_set<const transport::Move*> reducing_;
};

}  // namespace towpath::tenstorrent::ccl
