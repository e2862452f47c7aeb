// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "towpath/os/file_descriptor.hpp"
#include "towpath/os/sleep.hpp"
#include "towpath/transport/waiting_transport.hpp"

// The memory of one rank: a control page, the words of its signals, its heap. It has no name in
// any file system; it is gone with the last process that maps it, however that process ends.

namespace towpath::transport::shm {

inline constexpr std::size_t kReasonBytes = 256;

// What a rank says about itself. Only that rank writes it, except the flag. All others read it.
struct Control {
  std::atomic<Presence> presence;
  std::atomic<std::int32_t> culprit;       // rank because of which this one gave up, or kNoPeer
  std::atomic<std::int64_t> looked_at_ns;  // steady clock: when it last looked around in a wait
  std::atomic<std::uint64_t> activity;
  std::array<char, kReasonBytes> reason;  // what the culprit did; whole before `culprit` is stored
  // Others look at it after each store, so no word that changes often shares its lines.
  alignas(128) os::WakeFlag wake_flag;
};

struct MemoryLayout {
  std::uint64_t words = 0;  // signal words, each on a cache line of its own
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
