// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace towpath::gpu {

// The C++ for `asm volatile ("template" : outputs : inputs : clobbers)`, on one line, or nothing if
// the template is not PTX. `statement` has the part in parentheses. `number` distinguishes the
// statements of a source. An instruction that is not modeled becomes a call that ends the run.
std::optional<std::string> cpp_from_ptx(std::string_view statement, int number);

}  // namespace towpath::gpu
