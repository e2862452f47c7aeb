// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/base/units.hpp"

#include "towpath/base/invariant.hpp"

namespace towpath {

void throw_rate_error(std::uint64_t bytes, std::int64_t bytes_per_second) {
  throw_invariant_error(
      fmt::format("{} bytes at {} bytes per second never arrive; the rate must be above 0", bytes,
                  bytes_per_second));
}

}  // namespace towpath
