// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "towpath/collective/schedule/schedule.hpp"

// Whether a schedule computes what it claims, at one size. An exact answer, not a sample: for any
// order in which thread blocks may run, with the FIFO slots that SlotCounts gives, in place and
// out of place as the schedule allows, and for any number of invocations back to back.
//
//   Verdict verdict = verify(schedule, 1 << 20, 4);
//   if (!verdict.is_correct()) std::cerr << verdict.findings.front().sentence;
//
// Checked in this order; what rests on a failed check is not looked at and named in not_checked:
//   structure  check_structure accepts it.
//   mismatch   The n-th transfer sent on a connection is the n-th received there: as many chunks,
//              and none left over.
//   deadlock   All thread blocks finish with the finite FIFO slots of this size.
//   race       Two accesses of one rank's memory, at least one a store, are ordered by the program,
//              by data or by dependencies. Being ordered by back-pressure alone (a sender waits
//              for free slots) is a race: the slots are a matter of size and protocol.
//   data       Every output chunk is the sum of exactly the contributions that the collective asks
//              for, whatever its memory held before.
//   input      Out of place, nothing stores to the input.
//
// An element that one of a step's ranges lacks, because its chunk is a ragged one (chunking.hpp),
// is left out of the step: nothing is stored, and what is sent of it is undefined. A slice's local
// store counts as done before its signal reaches the peer.

namespace towpath::collective {

enum class FindingKind : std::uint8_t {
  structure,
  mismatch,
  deadlock,
  race,
  wrong_data,
  input_overwritten
};
inline constexpr int kFindingKinds = 6;
std::string_view name_of(FindingKind kind);  // "wrong_data"

// What is wrong, in words and in fields. Fields that do not apply are kNone.
struct Finding {
  FindingKind kind = FindingKind::structure;
  std::string sentence;
  int rank = kNone;
  int block = kNone;
  int channel = kNone;
  int step = kNone;
  int other_rank = kNone;  // the other end, the other access, or who is waited for
  int other_block = kNone;
  int other_step = kNone;
};

// How many slots the FIFO of a connection has, by where its ends are. Ranks r to r + ranks_per_host
// - 1 are in one host; 0: all are. A number of slots that is 0 is that of chunking.hpp; others are
// multiples of the slots of a transfer.
struct SlotCounts {
  std::uint32_t within_host = 0;
  std::uint32_t between_hosts = 0;
  int ranks_per_host = 0;
};

struct Verdict {
  std::vector<Finding> findings;         // the first few of each kind
  std::uint64_t omitted = 0;             // how many more there are
  std::vector<std::string> not_checked;  // one sentence each: what, and why

  // Nothing wrong was found in what was checked.
  bool is_correct() const { return findings.empty(); }
};

// `elements` is the size of the whole array, as in Chunking, which throws std::invalid_argument
// when the schedule cannot cut it or when a number of slots is not allowed.
Verdict verify(const Schedule& schedule, std::uint64_t elements, std::uint64_t element_bytes,
               const SlotCounts& slots = {});

// The smallest array, in elements and at most `elements_max`, at which the schedule deadlocks, if
// any. Sizes at which the ends of a connection disagree (a mismatch) are passed over. Throws
// ScheduleError when check_structure does.
std::optional<std::uint64_t> smallest_hanging_size(const Schedule& schedule,
                                                   std::uint64_t element_bytes,
                                                   std::uint64_t elements_max,
                                                   const SlotCounts& slots = {});

}  // namespace towpath::collective
