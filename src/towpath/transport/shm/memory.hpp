// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "towpath/os/file_descriptor.hpp"
#include "towpath/os/shared_memory.hpp"
#include "towpath/os/sleep.hpp"
#include "towpath/transport/waiting_transport.hpp"

// The memory of one rank: a control page, the words of its signals, its heap.

namespace towpath::transport::shm {

inline constexpr std::size_t kReasonBytes = 1024;

// The state that a rank publishes. Only that rank writes it, except the flag. All others read it.
struct Control {
  std::atomic<Presence> presence;
  std::atomic<std::int32_t> culprit;       // rank because of which this one gave up, or kNoPeer
  std::atomic<std::int64_t> looked_at_ns;  // steady clock: its last check of its peers
  std::atomic<std::uint64_t> activity;
  std::array<char, kReasonBytes> reason;  // of the culprit; stored before `culprit`
  // Read by others after each store, so it does not share a cache line with frequently changed
  // words.
  alignas(128) os::WakeFlag wake_flag;
};

struct MemoryLayout {
  std::uint64_t words = 0;  // signal words, each on a separate cache line
  std::uint64_t heap_bytes = 0;

  std::uint64_t heap_begin() const;
  std::uint64_t size_bytes() const { return heap_begin() + heap_bytes; }
};

// Memory mapped into this process.
class Memory {
 public:
  Memory(const os::FileDescriptor& file, const MemoryLayout& layout);

  Control& control() const { return *reinterpret_cast<Control*>(mapping_.data()); }
  std::atomic_ref<std::uint64_t> word(std::uint64_t index) const;
  std::byte* heap() const { return heap_; }

 private:
  os::SharedMapping mapping_;
  std::byte* heap_;
};

}  // namespace towpath::transport::shm
