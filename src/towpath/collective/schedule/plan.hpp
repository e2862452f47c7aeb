// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "towpath/collective/schedule/chunking.hpp"
#include "towpath/collective/schedule/schedule.hpp"
#include "towpath/collective/schedule/wiring.hpp"
#include "towpath/transport/reduction.hpp"

// One schedule at one size: all that the ranks share and that does not change while it runs.

namespace towpath::collective {

struct Plan {
  std::shared_ptr<const Schedule> schedule;
  transport::Reduction reduction;
  Chunking chunking;
  std::shared_ptr<const Wiring> wiring;  // plans of other sizes may have the same
  std::uint64_t slot_bytes = 0;          // distance between the slots of a FIFO
  std::uint64_t scratch_bytes = 0;       // the largest rank's
  std::uint32_t slots_factor = 1;        // more shows what waiting for free slots costs
  // Input and output within reach of other ranks; 0 where no step is one-sided.
  std::uint64_t window_bytes = 0;

  // Symmetric memory and signals that an executor allocates.
  std::uint64_t fifo_bytes() const { return slots_max() * slot_bytes; }
  std::uint64_t heap_bytes() const {
    return wiring->fifos * fifo_bytes() + scratch_count() * scratch_bytes + window_bytes;
  }
  // One per slot, so that slices may arrive in any order, a credit count per outgoing one, and the
  // counters of one-sided steps.
  std::uint32_t signals() const {
    return wiring->fifos * slots_max() + wiring->credits + wiring->one_sided.counters;
  }
  std::uint32_t scratch_count() const { return schedule->has_double_scratch ? 2 : 1; }

  // Slots of one connection. Where stores do not reach the peer, the sender's adapter reads from a
  // FIFO of its own and the receiver's fills a second one, so twice as many are under way. The
  // verifier counts the fewer unless it is told where the ranks are.
  std::uint32_t slots(bool is_addressable) const {
    return is_addressable ? slots_factor * chunking.fifo().slots : slots_max();
  }
  std::uint32_t slots_max() const { return 2 * slots_factor * chunking.fifo().slots; }

  // Bytes of the buffers that a rank brings.
  std::uint64_t input_bytes() const;
  std::uint64_t output_bytes() const;
};

// `elements` is the size of the whole array. Throws ScheduleError or std::invalid_argument.
std::shared_ptr<const Plan> make_plan(std::shared_ptr<const Schedule> schedule,
                                      std::uint64_t elements, transport::Reduction reduction,
                                      std::uint32_t slots_factor = 1);

// The same schedule at another size. What does not depend on the size is not computed again. Throws
// as make_plan.
std::shared_ptr<const Plan> with_elements(const Plan& plan, std::uint64_t elements,
                                          std::uint32_t slots_factor = 1);

// What all ranks must have in common, in words: collective, size, type, operation, schedule.
std::string statement(const Plan& plan);

}  // namespace towpath::collective
