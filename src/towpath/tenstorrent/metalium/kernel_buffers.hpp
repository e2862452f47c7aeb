// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>

#include "towpath/tenstorrent/core/data_movement_core.hpp"
#include "towpath/tenstorrent/metalium/source_kernel.hpp"

namespace towpath::tenstorrent::metalium {

// The circular buffers of a core in one of its kernels. Their page counts are words of L1.
class KernelBuffers {
 public:
  KernelBuffers(DataMovementCore& core, const CircularBuffers& buffers);

  // The buffer with a number. Rejects the call if there is none.
  const CircularBuffer& at(std::uint32_t number) const;
  static std::uint32_t pages_of(const CircularBuffer& buffer) {
    return buffer.size_bytes / buffer.page_bytes;
  }
  void reserve_back(std::uint32_t number, std::uint32_t pages);
  void push_back(std::uint32_t number, std::uint32_t pages);
  void wait_front(std::uint32_t number, std::uint32_t pages);
  void pop_front(std::uint32_t number, std::uint32_t pages);
  // One poll for pages at the front, or for free ones.
  bool are_pages(std::uint32_t number, std::uint32_t pages, bool at_front);
  std::uint32_t read_pointer(std::uint32_t number) const { return pointers_[number].read; }
  std::uint32_t write_pointer(std::uint32_t number) const { return pointers_[number].write; }

 private:
  struct Pointers {
    std::uint32_t read = 0;
    std::uint32_t write = 0;
    std::uint32_t received = 0;  // pages pushed and popped by this kernel
    std::uint32_t acked = 0;
  };
  std::uint32_t advance(std::uint32_t offset, std::uint32_t pages,
                        const CircularBuffer& buffer) const;

  DataMovementCore& core_;
  const CircularBuffers& buffers_;
  std::array<Pointers, kCircularBuffers> pointers_{};
};

}  // namespace towpath::tenstorrent::metalium
