// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "towpath/collective/schedule/schedule.hpp"

// Executes a schedule with real integers in one thread, in an order drawn from a seed. It shares
// with the verifier only the Schedule and the Chunking, and is written to be obviously right, not
// fast: a second opinion.
//
// What a thread block does with a slice is three moments, at each of which others may come first:
// it reads its operands, stores the result, and tells its peers. Memory that nothing has written
// holds random bits. Two invocations run back to back with fresh inputs; a rank begins its second
// when its own thread blocks have finished the first.

namespace towpath::collective {

enum class Outcome : std::uint8_t { correct, wrong_data, input_changed, mismatch, hang };

struct Interpretation {
  Outcome outcome = Outcome::correct;
  std::string what;  // the first thing that went wrong
};

// Throws std::invalid_argument like Chunking; `schedule` has passed check_structure.
Interpretation interpret(const Schedule& schedule, std::uint64_t elements,
                         std::uint64_t element_bytes, bool in_place, std::uint64_t seed);

}  // namespace towpath::collective
