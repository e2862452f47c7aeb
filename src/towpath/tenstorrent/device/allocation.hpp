// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "towpath/noc/niu/request.hpp"

namespace towpath::tenstorrent {

// A buffer of a chip: bytes that are its own while some of the chip's programs run, counted from 0
// in the order in which they were created. It is there when all programs before `first_program`
// have ended, and is freed when all before `end_program` have.
struct Allocation {
  static constexpr int kNoEnd = std::numeric_limits<int>::max();

  std::string name;                  // in errors
  std::vector<noc::Address> places;  // where it begins on each of its tiles
  std::uint64_t size_bytes = 0;      // on each
  int first_program = 0;
  int end_program = kNoEnd;
};

}  // namespace towpath::tenstorrent
