// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "towpath/collective/schedule/schedule.hpp"
#include "towpath/collective/schedule/wiring.hpp"

// Who waits for whom when a schedule is stuck, and the sentence that says so. The verifier, the
// simulator and the live executor collect their own Blocked and describe it in the same words.

namespace towpath::collective {

// One thread block that cannot go on, and the one that could let it.
struct Blocked {
  int rank = kNone;
  int block = kNone;
  int step = kNone;
  WaitReason reason = WaitReason::data;
  int waits_for_rank = kNone;
  int waits_for_block = kNone;  // kNone: the rank as a whole

  bool operator==(const Blocked&) const = default;
};

// A step, and why it waits. `take` is the place in AccessWiring::takes of what a one-sided step
// waits for.
struct Waiting {
  int rank = kNone;
  int block = kNone;
  int step = kNone;
  WaitReason reason = WaitReason::data;
  std::size_t take = 0;
};

// Fills in for whom the thread block waits; for every reason but launch.
Blocked blocked_at(const Schedule& schedule, const Wiring& wiring, const Waiting& waiting);

// Each link waits for the next; the last of a cycle waits for the first.
struct WaitChain {
  std::vector<Blocked> links;
  bool is_cycle = false;
};

// A cycle if there is one, beginning at its lowest rank and thread block; otherwise the way from
// the first of `blocked` to a thread block that is not in the list. Empty when `blocked` is.
WaitChain find_wait_chain(std::span<const Blocked> blocked);

// "rank 0 thread block 1 (channel 0) step 3 send waits for a free slot from rank 1 thread block 0,
// which at step 2 send waits for ...". Long chains are cut short.
std::string describe(const Schedule& schedule, const WaitChain& chain);

// Every link of a cycle in words, "rank 0 thread block 1 (channel 0) step 3 send waits for a free
// slot from rank 1 thread block 0"; empty for a chain that is not a cycle.
std::vector<std::string> describe_cycle(const Schedule& schedule, const WaitChain& chain);

// The two together: one sentence about a standstill.
std::string describe_deadlock(const Schedule& schedule, std::span<const Blocked> blocked);

// What a one-sided step waits for: "a signal", "a barrier".
std::string_view words_of(WaitReason reason);

// "rank 0 thread block 1 (channel 0) step 3 send"
std::string describe_step(const Schedule& schedule, int rank, int block, int step);

}  // namespace towpath::collective
