// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string_view>

// The machines that come with the library. Their descriptions are part of it, so that a program
// finds them wherever it is moved to. load.hpp loads them by name.

namespace towpath::machine {

struct ShippedMachine {
  std::string_view name;
  std::string_view json;  // as `towpath export machine NAME --json` writes it
};

// In the order of their names.
std::span<const ShippedMachine> shipped_machines();

}  // namespace towpath::machine
