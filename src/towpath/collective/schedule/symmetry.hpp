// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <unordered_set>

#include "towpath/collective/schedule/schedule.hpp"

// What in a schedule is there several times: ranks that do the same but for their peers' numbers,
// and thread blocks that share their list of steps. On many ranks nothing may look at all steps of
// all ranks, so these say which ones are enough.

namespace towpath::collective {

// The least number of ranks, a divisor of all, by which the ranks can be rotated so that each does
// what the one in its place did: the same thread blocks with their peers rotated, on the same
// channels, with the same steps but for the chunks. All ranks if there is none, and with one-sided
// steps.
int rotation_period(const Schedule& schedule);

// Calls visit(block) for thread blocks until it returns true, of those that share their steps for
// one only. Returns whether it did.
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
