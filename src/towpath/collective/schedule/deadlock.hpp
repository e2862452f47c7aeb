// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "towpath/collective/schedule/schedule.hpp"
#include "towpath/collective/schedule/wiring.hpp"

// Wait chains of a stuck schedule and their description. The verifier, the simulator and the live
// executor collect Blocked entries and share these messages.

namespace towpath::collective {

// A blocked thread block, and the thread block it waits for.
struct Blocked {
  int rank = kNone;
  int block = kNone;
  int step = kNone;
  WaitReason reason = WaitReason::data;
  int waits_for_rank = kNone;
  int waits_for_block = kNone;  // kNone: the whole rank

  bool operator==(const Blocked&) const = default;
};

// A waiting step and the reason. `take` is the index in AccessWiring::takes for a one-sided step.
struct Waiting {
  int rank = kNone;
  int block = kNone;
  int step = kNone;
  WaitReason reason = WaitReason::data;
  std::size_t take = 0;
};

// Fills in the awaited thread block. For all reasons except launch.
Blocked blocked_at(const Schedule& schedule, const Wiring& wiring, const Waiting& waiting);

// Each link waits for the next. In a cycle the last waits for the first.
struct WaitChain {
  std::vector<Blocked> links;
  bool is_cycle = false;
};

// A cycle if there is one, starting at its lowest rank and thread block. Otherwise the path from
// the first of `blocked` to a thread block outside the list. Empty if `blocked` is empty.
WaitChain find_wait_chain(std::span<const Blocked> blocked);

// "rank 0 thread block 1 (channel 0) step 3 send waits for a free slot from rank 1 thread block 0,
// which at step 2 send waits for ...". Long chains are truncated.
std::string describe(const Schedule& schedule, const WaitChain& chain);

// One entry per link of a cycle, "rank 0 thread block 1 (channel 0) step 3 send waits for a free
// slot from rank 1 thread block 0". Empty if the chain is not a cycle.
std::vector<std::string> describe_cycle(const Schedule& schedule, const WaitChain& chain);

// find_wait_chain() and describe() combined.
std::string describe_deadlock(const Schedule& schedule, std::span<const Blocked> blocked);

// The awaited object of a one-sided step: "a signal", "a barrier".
std::string_view words_of(WaitReason reason);

// "rank 0 thread block 1 (channel 0) step 3 send"
std::string describe_step(const Schedule& schedule, int rank, int block, int step);

}  // namespace towpath::collective
