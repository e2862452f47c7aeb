// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/live/operand_fold.hpp"

#include <algorithm>
#include <cstring>

namespace towpath::live {

namespace {

// A piece stays in the first-level cache together with its operands.
constexpr std::uint64_t kPieceBytes = 8 << 10;

}  // namespace

std::byte* OperandFold::buffer(int rank, std::uint64_t size_bytes) {
  buffers_.resize(size_bytes * operands_.size());
  return buffers_.data() + size_bytes * index(rank);
}

void OperandFold::store(const Combination& how, std::byte* result, std::uint64_t size_bytes,
                        std::span<std::byte* const> copies) {
  if (scratch_.empty()) scratch_.resize(kPieceBytes);
  // Two ranks need no scratch memory, and the whole is one piece.
  const bool is_whole = ranks() <= 2 && copies.empty();
  const std::uint64_t piece = is_whole ? std::max<std::uint64_t>(size_bytes, 1) : kPieceBytes;
  for (std::uint64_t done = 0; done < size_bytes; done += piece) {
    const std::uint64_t size = std::min(piece, size_bytes - done);
    std::byte* const to = result + done;
    const std::byte* left = operands_[0] + done;
    if (ranks() == 1 && left != to) std::memmove(to, left, size);
    for (int rank = 1; rank < ranks(); ++rank) {
      // The result may be an operand of a later rank, so it is stored last.
      std::byte* const kept = rank + 1 == ranks() ? to : scratch_.data();
      how.combine(how.context, kept, left, operands_[index(rank)] + done, size);
      left = kept;
    }
    if (how.finish != nullptr) how.finish(how.context, to, size);
    for (std::byte* const copy : copies) std::memcpy(copy + done, to, size);
  }
}

}  // namespace towpath::live
