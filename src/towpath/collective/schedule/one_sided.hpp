// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "towpath/collective/schedule/schedule.hpp"

// What one-sided steps wait for and what they raise, in numbers. Every order between them, whether
// a signal of another rank, a barrier, a semaphore or the flags of packets, is a counter at the
// rank that waits: raising adds one, taking waits until enough was added.

namespace towpath::collective {

// A counter that a step adds to.
struct CounterRaise {
  std::int32_t rank = kNone;
  std::uint32_t counter = 0;  // of that rank
  std::uint32_t slot = 0;     // of the thread block, one for each counter that it uses
};

// A counter of the own rank that a step takes from: it goes on once
//   raised >= taken before * weight + weight - credit.
struct CounterTake {
  std::uint32_t counter = 0;
  std::uint32_t slot = 0;
  std::uint32_t weight = 1;  // thread blocks of a barrier
  std::uint32_t credit = 0;  // what a semaphore holds at first
  WaitReason reason = WaitReason::signal;
  std::int32_t from_rank = kNone;  // who raises it; of a barrier, the next one that takes part
  std::int32_t from_block = kNone;
};

struct AccessWiring {
  // signal, release and barrier: when the step comes to them. direct: when the bytes are there.
  std::vector<CounterRaise> raises;
  std::vector<CounterTake> takes;  // before the step moves anything
};

struct OneSidedWiring {
  std::vector<std::vector<std::vector<AccessWiring>>> ranks;  // [rank][thread block][access]
  std::vector<std::vector<std::uint32_t>> slots;              // [rank][thread block]
  std::uint32_t counters = 0;                                 // most of any rank
};

// Throws ScheduleError with one sentence naming rank, thread block and step when an operand, a
// signal, a semaphore, a barrier or a pipeline is not possible, a counter has several thread blocks
// that take from it (but for barriers) or that raise it, or packets go to one place twice.
void check_accesses(const Schedule& schedule);

// `schedule` has passed check_accesses. Empty without one-sided steps.
OneSidedWiring wire_one_sided(const Schedule& schedule);

// The ranks whose memory an operand of a step of rank `own` is in.
std::vector<int> ranks_of(const Schedule& schedule, int own, const Operand& operand);

// "input chunk 3", "input chunk 3 of rank 1", "input chunk 3 of the 8 ranks from 0 to 7"
std::string describe_operand(const Schedule& schedule, const Operand& operand);

// The fewest parts of a chunk that all parts of all steps are whole numbers of; 1 if none has
// parts.
std::uint64_t common_parts(const Schedule& schedule);

// Elements of a pipeline's piece, and how often its steps are gone through.
std::uint64_t unit_elements(const Access& pipeline, std::uint64_t element_bytes);
std::uint64_t loop_count(const Access& pipeline, std::uint64_t chunk_elements,
                         std::uint64_t element_bytes);

}  // namespace towpath::collective
