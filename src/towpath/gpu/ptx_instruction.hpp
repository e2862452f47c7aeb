// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "towpath/gpu/ptx_operands.hpp"

namespace towpath::gpu {

// An instruction without its predicate.
struct PtxInstruction {
  std::string spelling;               // "ld.global.u32"
  std::vector<std::string> operands;  // "d", "[a+4]"
};

// Calls of towpath_ptx.h that do what the instruction does. Throws PtxRefusal.
std::string cpp_of_instruction(const PtxInstruction& instruction, const PtxRegisters& registers);

}  // namespace towpath::gpu
