// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace towpath::gpu {

// An instruction asks for what is not modeled. The text follows "a kernel executes ".
class PtxRefusal : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// The C++ name of a PTX register, empty if there is none of this name.
using PtxRegisters = std::function<std::string(const std::string& name)>;

// Parts of a text that are separated outside brackets and literals, without the space around them.
std::vector<std::string> split_outside(std::string_view text, char separator);
std::string_view trimmed(std::string_view text);

// C++ for an operand that is read: a register, an immediate or a special register. These functions
// throw PtxRefusal.
std::string cpp_of_source(const std::string& operand, const PtxRegisters& registers);
// C++ for a register that is written.
std::string cpp_of_destination(const std::string& operand, const PtxRegisters& registers);
// "base, offset" for "[base+offset]".
std::string cpp_of_address(const std::string& operand, const PtxRegisters& registers);
// The parts of "{a, b}", or the operand itself.
std::vector<std::string> elements_of(const std::string& operand);

}  // namespace towpath::gpu
