// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "towpath/collective/schedule/schedule.hpp"

// Verifies that a schedule computes its collective at one size. The result is exact: it holds for
// any order of execution of thread blocks with the FIFO slots of SlotCounts, in place and out of
// place as the schedule allows, and for any number of consecutive invocations.
//
//   Verdict verdict = verify(schedule, 1 << 20, 4);
//   if (!verdict.is_correct()) std::cerr << verdict.findings.front().sentence;
//
// Checks run in this order. A check that depends on a failed one is skipped and named in
// not_checked:
//   structure  check_structure accepts it.
//   mismatch   The n-th transfer sent on a connection is the n-th received there: equal chunk
//   counts,
//              and no transfer left over.
//   deadlock   All thread blocks finish with the finite FIFO slots of this size.
//   race       Two accesses to one rank's memory, at least one a store, are ordered by the program,
//   by
//              data or by dependencies. Order by back-pressure alone (a sender waits for free
//              slots) counts as a race: the slots depend on size and protocol.
//   data       Every output chunk is the sum of exactly the contributions that the collective
//              requires, for any previous memory contents.
//   input      Out of place, no step stores to the input.
//
// An element missing from one of a step's ranges, because its chunk is ragged (chunking.hpp), is
// omitted from the step: it is not stored, and its sent value is undefined. A slice's local store
// is complete before its signal reaches the peer.

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

// A finding as text and as fields. Fields that do not apply are kNone.
struct Finding {
  FindingKind kind = FindingKind::structure;
  std::string sentence;
  int rank = kNone;
  int block = kNone;
  int channel = kNone;
  int step = kNone;
  int other_rank = kNone;  // the other end, the other access, or the awaited rank
  int other_block = kNone;
  int other_step = kNone;
};

// Number of FIFO slots of a connection, by the placement of its ends. Ranks r to r + ranks_per_host
// - 1 share a host; 0: all ranks do. A slot count of 0 means the default of chunking.hpp. Other
// counts are multiples of a transfer's slots.
struct SlotCounts {
  std::uint32_t within_host = 0;
  std::uint32_t between_hosts = 0;
  int ranks_per_host = 0;
};

struct Verdict {
  std::vector<Finding> findings;         // the first few of each kind
  std::uint64_t omitted = 0;             // number of further findings
  std::vector<std::string> not_checked;  // one sentence each, with the reason
  // Properties of a correct schedule that a user may not expect, such as results that differ in
  // their last bits between ranks. One sentence each.
  std::vector<std::string> remarks = {};

  // True if no check failed. Skipped checks are in not_checked.
  bool is_correct() const { return findings.empty(); }
};

// `elements` is the size of the whole array, as in Chunking, which throws std::invalid_argument if
// the schedule cannot split it or a slot count is invalid.
Verdict verify(const Schedule& schedule, std::uint64_t elements, std::uint64_t element_bytes,
               const SlotCounts& slots = {});

// The smallest array, in elements and at most `elements_max`, at which the schedule deadlocks, if
// any. Skips sizes at which the ends of a connection disagree (a mismatch). Throws ScheduleError as
// check_structure does.
std::optional<std::uint64_t> smallest_hanging_size(const Schedule& schedule,
                                                   std::uint64_t element_bytes,
                                                   std::uint64_t elements_max,
                                                   const SlotCounts& slots = {});

}  // namespace towpath::collective
