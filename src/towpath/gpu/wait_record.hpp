// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <vector>

#include "towpath/gpu/include/towpath_gpu.h"
#include "towpath/transport/remote_memory.hpp"

namespace towpath::gpu {

namespace abi = towpath_gpu;

class Block;
class Pe;

// Words of the heap that a thread waits for.
struct WaitRecord {
  WaitRecord(Pe& at, const abi::Wait& wait);

  // The result of the call: the number of words that satisfy the condition, or the first of them.
  // -1: the wait continues.
  std::int64_t evaluate() const;
  // Compares the word with the awaited value, in the type of the wait.
  std::strong_ordering order_at(std::uint64_t index) const;
  bool holds_at(std::uint64_t index) const;
  std::uint64_t value_at(std::uint64_t index) const;
  bool counts(std::uint64_t index) const { return status.empty() || status[index] == 0; }
  // The offset of a word in the heap.
  transport::Offset offset_at(std::uint64_t index) const;
  std::string describe() const;

  Pe& pe;
  abi::Wait call;
  abi::Site site{};
  std::vector<std::uint64_t> values;
  std::vector<int> status;
  Block* block = nullptr;
  int thread = 0;
  transport::MemoryWait wait;
};

// The running thread waits for words of its heap. Returns the result of the call.
std::uint64_t wait(Block& block, const abi::Wait& call, const abi::Site& site);

}  // namespace towpath::gpu
