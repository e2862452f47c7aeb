// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "towpath/collective/schedule/schedule.hpp"
#include "towpath/collective/schedule/step_location.hpp"

// Shared by one_sided.cpp and its checks.

namespace towpath::collective {

// Calls visit(at, step, access) for every one-sided step.
template <typename Visit>
void for_each_access(const Schedule& schedule, const Visit& visit) {
  for (int rank = 0; rank < schedule.rank_count(); ++rank) {
    const auto& blocks = schedule.ranks[static_cast<std::size_t>(rank)].blocks;
    for (std::size_t b = 0; b < blocks.size(); ++b) {
      if (blocks[b].accesses.empty()) continue;
      StepLocation at{schedule, rank, b, 0};
      for (; at.step < blocks[b].steps.size(); ++at.step) {
        const Step& step = blocks[b].steps[at.step];
        if (is_one_sided(step.type)) visit(at, step, blocks[b].access(step));
      }
    }
  }
}

// Throws ScheduleError for an access that is invalid by itself.
void check_each_access(const Schedule& schedule);

}  // namespace towpath::collective
