// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "towpath/os/file_descriptor.hpp"
#include "towpath/os/shared_memory.hpp"

// The memory of a mailbox, as all its processes map it.
//
// A mailbox has lanes, one per sender at a time, and a lane is a FIFO of cache lines with a single
// writer and a single reader. A message is a cache line: up to 56 bytes, and a tag that says which
// message of the lane it is and how long. The tag is stored last, so that there is no message until
// it is whole. A writer that dies before leaves only bytes that the next one overwrites.
//
// Locks of the file say who writes a lane and who reads the mailbox. The kernel releases them when
// their process ends, however it ends.

namespace towpath::riscv_mailbox::live {

using os::FileDescriptor;

inline constexpr std::size_t kLineBytes = 64;
inline constexpr std::size_t kPayloadBytesMax = 56;

struct alignas(kLineBytes) Slot {
  std::byte payload[kPayloadBytesMax];
  // (number of the message in its lane, from 1) * 256 + its size, or of a message of an earlier lap
  // otherwise.
  std::atomic<std::uint64_t> tag;
};
static_assert(sizeof(Slot) == kLineBytes);

constexpr std::uint64_t tag_of(std::uint64_t number, std::size_t size_bytes) {
  return number << 8 | size_bytes;
}

// The place of a message in its lane, by the number of messages before it. Neighbours in time are
// on different pages if there are several, because a processor that prefetches a row of lines would
// take the next ones from the other side. One way of 32 bytes between far cores takes 275 ns in a
// row of 256 lines, 250 in this order, and 235 in a single line.
constexpr std::uint64_t place_of(std::uint64_t before, std::uint64_t mask) {
  constexpr std::uint64_t kStride = 101;  // odd, so that no place is left out
  return before * kStride & mask;
}

struct LaneState {
  // Messages that the reader has released. In a separate line, which writers read only without
  // room.
  alignas(kLineBytes) std::atomic<std::uint64_t> credit;
  // The same, up to date after every message, for the reader and its successors.
  alignas(kLineBytes) std::atomic<std::uint64_t> head;
};

// The first page.
struct Control {
  std::uint64_t version;
  std::uint32_t depth;  // slots of a lane, a power of two
  std::uint32_t lanes;
  alignas(kLineBytes) std::atomic<std::uint32_t> lanes_used;  // lanes ever written are below it
  // For measurements: a line each way.
  alignas(kLineBytes) std::atomic<std::uint64_t> ping;
  alignas(kLineBytes) std::atomic<std::uint64_t> pong;
};

class Memory {
 public:
  // Makes memory that has no name in any file system and is freed with the last process that has
  // it.
  static std::shared_ptr<Memory> create(const std::string& name, std::uint32_t depth,
                                        std::uint32_t lanes);
  // Opens `path`, a file descriptor of some process. Throws std::runtime_error when it is not a
  // mailbox.
  static std::shared_ptr<Memory> open(const std::string& path);

  Memory(FileDescriptor file, std::size_t size_bytes);

  // The same memory with separate locks.
  std::shared_ptr<Memory> reopened() const;

  Control& control() const { return *reinterpret_cast<Control*>(mapping_.data()); }
  LaneState& state(std::uint32_t lane) const { return states_[lane]; }
  Slot* slots(std::uint32_t lane) const {
    return slots_ + static_cast<std::size_t>(lane) * control().depth;
  }

  // Locks belong to this object, not to the process: they go with it.
  bool lock_reader() { return lock(0); }
  bool lock_lane(std::uint32_t lane) { return lock(1 + lane); }
  // Whether another object has the reader's lock.
  bool has_reader() const;

 private:
  bool lock(std::uint32_t byte);

  FileDescriptor file_;
  os::SharedMapping mapping_;
  LaneState* states_ = nullptr;
  Slot* slots_ = nullptr;
};

}  // namespace towpath::riscv_mailbox::live
