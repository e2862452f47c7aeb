// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "towpath/base/index.hpp"
#include "towpath/live/call.hpp"

namespace towpath::live {

// Combines one operand per rank in the order of the ranks, so that every rank gets the same bits.
class OperandFold {
 public:
  explicit OperandFold(int ranks) : operands_(index(ranks)) {}

  const std::byte*& operand(int rank) { return operands_[index(rank)]; }
  // Memory of this size for an operand that is read from another process.
  std::byte* buffer(int rank, std::uint64_t size_bytes);
  // result[i] = operand(0)[i] op operand(1)[i] op ..., also stored to `copies`.
  void store(const Combination& how, std::byte* result, std::uint64_t size_bytes,
             std::span<std::byte* const> copies = {});

 private:
  int ranks() const { return static_cast<int>(operands_.size()); }

  std::vector<const std::byte*> operands_;  // by rank
  std::vector<std::byte> scratch_;
  std::vector<std::byte> buffers_;  // by rank
};

}  // namespace towpath::live
