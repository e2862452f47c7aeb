// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "towpath/collective/schedule/chunking.hpp"
#include "towpath/collective/schedule/schedule.hpp"
#include "towpath/collective/schedule/transfer_table.hpp"
#include "towpath/collective/schedule/wiring.hpp"
#include "towpath/transport/reduction.hpp"

// One schedule at one size: the constant state that all ranks share.

namespace towpath::collective {

struct Plan {
  std::shared_ptr<const Schedule> schedule;
  transport::Reduction reduction;
  Chunking chunking;
  TransferTable transfers;
  std::shared_ptr<const Wiring> wiring;  // may be shared by plans of other sizes
  std::uint64_t slot_bytes = 0;          // stride of a FIFO's slots
  std::uint64_t scratch_bytes = 0;       // maximum over ranks
  std::uint32_t slots_factor = 1;        // above 1: measures the cost of waiting for slots
  // Input and output visible to other ranks; 0 if no step is one-sided.
  std::uint64_t window_bytes = 0;

  // Symmetric memory and signals that an executor allocates.
  std::uint64_t fifo_bytes() const { return slots_max() * slot_bytes; }
  std::uint64_t heap_bytes() const {
    return wiring->fifos * fifo_bytes() + scratch_count() * scratch_bytes + window_bytes;
  }
  // One signal per slot, because slices may arrive in any order, one credit count per outgoing
  // connection, and the counters of one-sided steps.
  std::uint32_t signals() const {
    return wiring->fifos * slots_max() + wiring->credits + wiring->one_sided.counters;
  }
  std::uint32_t scratch_count() const { return schedule->has_double_scratch ? 2 : 1; }

  // Slots of one connection. If the peer's memory is not addressable by stores, the sender's
  // adapter reads from a local FIFO and the receiver's adapter fills a second one, so twice the
  // slots are in flight. The verifier uses the smaller number unless it has the placement of the
  // ranks.
  std::uint32_t slots(bool is_addressable) const {
    return is_addressable ? slots_factor * chunking.fifo().slots : slots_max();
  }
  std::uint32_t slots_max() const { return 2 * slots_factor * chunking.fifo().slots; }

  // Bytes of a rank's buffers.
  std::uint64_t input_bytes() const;
  std::uint64_t output_bytes() const;
};

// `elements` is the size of the whole array. Throws ScheduleError or std::invalid_argument.
std::shared_ptr<const Plan> make_plan(std::shared_ptr<const Schedule> schedule,
                                      std::uint64_t elements, transport::Reduction reduction,
                                      std::uint32_t slots_factor = 1);

// The same schedule at another size. Reuses everything that does not depend on the size. Throws as
// make_plan.
std::shared_ptr<const Plan> with_elements(const Plan& plan, std::uint64_t elements,
                                          std::uint32_t slots_factor = 1);

// A text that must be equal on all ranks: collective, size, type, operation, schedule.
std::string statement(const Plan& plan);

}  // namespace towpath::collective
