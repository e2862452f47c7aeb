// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "towpath/collective/chunking.hpp"
#include "towpath/collective/schedule.hpp"
#include "towpath/collective/wiring.hpp"
#include "towpath/transport/reduction.hpp"

// One schedule at one size: all that the ranks share and that does not change while it runs.

namespace towpath::collective {

struct Plan {
  std::shared_ptr<const Schedule> schedule;
  transport::Reduction reduction;
  Chunking chunking;
  Wiring wiring;
  std::uint64_t slot_bytes = 0;        // distance between the slots of a FIFO
  std::uint64_t fifo_bytes = 0;        // one connection's slots
  std::uint64_t scratch_bytes = 0;     // the largest rank's

  // Symmetric memory and signals that an executor allocates.
  std::uint64_t heap_bytes() const { return wiring.fifos * fifo_bytes + scratch_bytes; }
  // One per slot, so that slices may arrive in any order, and a credit count per outgoing one.
  std::uint32_t signals() const {
    return wiring.fifos * chunking.fifo().slots + wiring.credits;
  }

  // Bytes of the buffers that a rank brings.
  std::uint64_t input_bytes() const;
  std::uint64_t output_bytes() const;
};

// `elements` is the size of the whole array. Throws ScheduleError or std::invalid_argument.
std::shared_ptr<const Plan> make_plan(std::shared_ptr<const Schedule> schedule,
                                      std::uint64_t elements, transport::Reduction reduction);

// What all ranks must have in common, in words: collective, size, type, operation, schedule.
std::string statement(const Plan& plan);

}  // namespace towpath::collective
