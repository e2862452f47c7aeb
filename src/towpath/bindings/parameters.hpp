// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nanobind/nanobind.h>

#include <span>
#include <string_view>

#include "towpath/machine/parameters.hpp"

namespace towpath::bindings {

namespace nb = nanobind;

// A block of a description in Python: values by name, in the unit of the name.
nb::dict values_of(const void* description, std::span<const machine::BlockTable> tables,
                   std::string_view path);

}  // namespace towpath::bindings
