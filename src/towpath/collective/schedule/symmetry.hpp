// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <unordered_set>

#include "towpath/collective/schedule/schedule.hpp"

// Repetition within a schedule: ranks that differ only in their peers' numbers, and thread blocks
// that share a list of steps. With many ranks, no algorithm may visit all steps of all ranks. These
// functions select a sufficient subset.

namespace towpath::collective {

// The smallest number of ranks, a divisor of all, by which the schedule can be rotated onto itself:
// the same thread blocks with rotated peers, on the same channels, with the same steps except for
// the chunks. Returns the number of all ranks if there is no symmetry or any step is one-sided.
int rotation_period(const Schedule& schedule);

// Calls visit(block) for thread blocks until it returns true, once per shared list of steps.
// Returns whether it did.
template <typename Visit>
bool any_distinct_steps(const Schedule& schedule, const Visit& visit) {
  std::unordered_set<const StepList*> seen;
  for (const RankProgram& program : schedule.ranks) {
    for (const ThreadBlock& block : program.blocks) {
      const StepList* list = block.steps.list();
      if (list == nullptr) continue;
      if (list->rows > 0 && !seen.insert(list).second) continue;
      if (visit(block)) return true;
    }
  }
  return false;
}

}  // namespace towpath::collective
