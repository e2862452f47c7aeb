// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "towpath/base/units.hpp"

namespace towpath::sim {

// Traffic of a simulated link in one direction.
struct LinkLoad {
  Bytes bytes;
  Time busy;
  std::uint64_t messages = 0;
};

}  // namespace towpath::sim
