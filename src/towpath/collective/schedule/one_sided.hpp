// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "towpath/collective/schedule/schedule.hpp"

// Dependencies of one-sided steps as counters. Every order between them (a signal from another
// rank, a barrier, a semaphore, packet flags) is a counter at the waiting rank: raising adds one,
// taking waits for a threshold.

namespace towpath::collective {

struct CounterRaise {
  std::int32_t rank = kNone;
  std::uint32_t counter = 0;  // at that rank
  std::uint32_t slot = 0;     // within the thread block, one per counter used
};

// A counter of the step's rank that the step waits for until
//   raised >= taken before * weight + weight - credit.
struct CounterTake {
  std::uint32_t counter = 0;
  std::uint32_t slot = 0;
  std::uint32_t weight = 1;  // thread blocks of a barrier
  std::uint32_t credit = 0;  // initial value of a semaphore
  WaitReason reason = WaitReason::signal;
  std::int32_t from_rank = kNone;  // the rank that raises it; for a barrier, the next participant
  std::int32_t from_block = kNone;
};

struct AccessWiring {
  // signal, release and barrier: raised at the start of the step. direct: on arrival of the bytes.
  std::vector<CounterRaise> raises;
  std::vector<CounterTake> takes;  // before any data moves
};

struct OneSidedWiring {
  std::vector<std::vector<std::vector<AccessWiring>>> ranks;  // [rank][thread block][access]
  std::vector<std::vector<std::uint32_t>> slots;              // [rank][thread block]
  std::uint32_t counters = 0;                                 // maximum over ranks
};

// Throws ScheduleError with one sentence that names rank, thread block and step if an operand,
// signal, semaphore, barrier or pipeline is invalid, if several thread blocks take from a counter
// (other than a barrier) or raise it, or if packets are stored twice to one location.
void check_accesses(const Schedule& schedule);

// `schedule` has passed check_accesses. Empty if it has no one-sided steps.
OneSidedWiring wire_one_sided(const Schedule& schedule);

// The ranks that hold an operand of a step of rank `own`.
std::vector<int> ranks_of(const Schedule& schedule, int own, const Operand& operand);

// "input chunk 3", "input chunk 3 of rank 1", "input chunk 3 of the 8 ranks from 0 to 7"
std::string describe_operand(const Schedule& schedule, const Operand& operand);

// The smallest number of parts per chunk that resolves the parts of all steps; 1 if no step has
// parts.
std::uint64_t common_parts(const Schedule& schedule);

// Elements per piece of a pipeline, and the number of passes over its steps.
std::uint64_t unit_elements(const Access& pipeline, std::uint64_t element_bytes);
std::uint64_t loop_count(const Access& pipeline, std::uint64_t chunk_elements,
                         std::uint64_t element_bytes);

}  // namespace towpath::collective
