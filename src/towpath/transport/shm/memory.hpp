// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "towpath/os/file_descriptor.hpp"

// The memory of one rank: a control page, the words of its signals, its heap. It has no name in
// any file system; it is gone with the last process that maps it, however that process ends.

namespace towpath::transport::shm {

enum class Presence : std::uint32_t { here, left };

// What a rank says about itself to whoever finds it gone.
struct Control {
  std::atomic<Presence> presence;
  std::atomic<std::int32_t> culprit;  // the dead rank because of which it gave up, or kNoPeer
};

struct MemoryLayout {
  std::uint64_t words = 0;  // of signals, each on a cache line of its own
  std::uint64_t heap_bytes = 0;

  std::uint64_t heap_begin() const;
  std::uint64_t size_bytes() const { return heap_begin() + heap_bytes; }
};

// Makes the memory, all zero; pages take space once they are touched.
os::FileDescriptor create_memory(const MemoryLayout& layout);

// Memory mapped into this process.
class Memory {
 public:
  Memory(const os::FileDescriptor& file, const MemoryLayout& layout);
  Memory(Memory&& other) noexcept;
  Memory& operator=(Memory&& other) = delete;
  ~Memory();

  Control& control() const { return *reinterpret_cast<Control*>(base_); }
  std::atomic_ref<std::uint64_t> word(std::uint64_t index) const;
  std::byte* heap() const { return heap_; }

 private:
  std::byte* base_;
  std::byte* heap_;
  std::uint64_t size_bytes_;
};

}  // namespace towpath::transport::shm
