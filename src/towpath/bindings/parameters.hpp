// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>

#include "towpath/machine/checks.hpp"

namespace towpath::bindings {

namespace nb = nanobind;

// A parameter block in Python: values by name, in the unit of the name.
template <typename Block, std::size_t kSize>
nb::dict values_of(const Block& block, const machine::Parameter<Block> (&table)[kSize]) {
  nb::dict values;
  for (const machine::Parameter<Block>& parameter : table) {
    const nb::str name(parameter.name.data(), parameter.name.size());
    parameter.member.visit([&](auto member) {
      using Value = std::decay_t<decltype(block.*member)>;
      if constexpr (std::is_arithmetic_v<Value>) {
        values[name] = nb::cast(block.*member);
      } else {
        values[name] = nb::cast(machine::shown(block.*member, parameter.name));
      }
    });
  }
  return values;
}

}  // namespace towpath::bindings
