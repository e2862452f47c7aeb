// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "towpath/collective/schedule/chunking.hpp"
#include "towpath/collective/schedule/steps.hpp"

// The transfers of all steps at one size, computed once. Only the number of chunks, whether the
// step has a FIFO, and whether the iteration is the last one matter.

namespace towpath::collective {

// Some chunks of a step that travel together.
struct Transfer {
  std::uint32_t slices = 1;
  std::array<Slice, 2> slice;
};

class TransferTable {
 public:
  explicit TransferTable(const Chunking& chunking);

  std::uint64_t iterations() const { return iterations_; }
  std::uint32_t chunks_per_transfer() const { return chunks_per_transfer_; }
  const Transfer& of(StepType type, std::uint32_t chunks, std::uint64_t iteration) const {
    const bool is_local = !sends(type) && !receives(type);
    return (is_local ? local_ : sliced_)[iteration + 1 == iterations_][chunks];
  }

 private:
  std::uint64_t iterations_;
  std::uint32_t chunks_per_transfer_;
  // By [last iteration][chunks].
  std::array<std::vector<Transfer>, 2> sliced_;
  std::array<std::vector<Transfer>, 2> local_;  // in one slice, without slots
};

}  // namespace towpath::collective
