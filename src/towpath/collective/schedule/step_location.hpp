// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <utility>

#include "towpath/collective/schedule/schedule.hpp"

namespace towpath::collective {

// The position of a failed check.
struct StepLocation {
  const Schedule& schedule;
  int rank = 0;
  std::size_t block = 0;
  std::size_t step = 0;

  template <typename... Args>
  [[noreturn]] void fail(fmt::format_string<Args...> format, Args&&... args) const {
    throw ScheduleError(fmt::format("schedule '{}', rank {}, thread block {}, step {}: {}",
                                    schedule.name, rank, block, step,
                                    fmt::format(format, std::forward<Args>(args)...)));
  }
};

// Throws if the buffer lacks these chunks. `role` names the range, e.g. "source".
void check_range(const StepLocation& at, const char* role, Buffer buffer, std::uint32_t chunk,
                 std::uint32_t count);

}  // namespace towpath::collective
