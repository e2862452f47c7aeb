// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string_view>

// The machines in the library. Their descriptions are embedded, so a program needs no data files.
// load.hpp loads them by name.

namespace towpath::machine {

struct ShippedMachine {
  std::string_view name;
  std::string_view json;  // as written by `towpath export machine NAME --json`
};

// Sorted by name.
std::span<const ShippedMachine> shipped_machines();

}  // namespace towpath::machine
