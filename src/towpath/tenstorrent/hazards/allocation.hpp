// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "towpath/noc/niu/request.hpp"

namespace towpath::tenstorrent {

// A buffer of a chip: bytes reserved for some of the chip's programs, which are numbered from 0 in
// creation order. It exists after all programs before `first_program` have ended, and is freed
// after all before `end_program` have.
struct Allocation {
  static constexpr int kNoEnd = std::numeric_limits<int>::max();

  std::string name;                  // in errors
  std::vector<noc::Address> places;  // its begin on each of its tiles
  std::uint64_t size_bytes = 0;      // on each
  int first_program = 0;
  int end_program = kNoEnd;
};

}  // namespace towpath::tenstorrent
