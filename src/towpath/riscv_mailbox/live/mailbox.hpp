// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "towpath/base/units.hpp"
#include "towpath/os/file_descriptor.hpp"
#include "towpath/os/shared_memory.hpp"
#include "towpath/os/spin_wait.hpp"

// Mailboxes between processes of one Linux host: small messages from user space to user space, each
// a cache line, without a system call. There is no daemon and no name in a file system. A killed
// process leaves no file behind, and no sent message is lost, doubled or torn, as long as some
// process keeps the mailbox: its maker, by whose name others find it, or its receiver.
//
//   Mailbox mailbox("job-17/results");         // in the process that keeps it
//   Receiver receiver(mailbox);                // there, or in another one
//   Sender sender(Mailbox::find("job-17/results"));   // in up to senders_max processes
//
// Messages of one sender arrive in order and exactly once. Between senders there is no order.
// Memory is bounded: a sender waits, or its call fails, while its part of the mailbox is full.
//
// Wrong: a Mailbox, Sender or Receiver created before fork(). Both processes hold its lock and
// name, and a child that merely inherits them keeps them from other processes after its parent's
// end, until it ends itself or calls exec(). Fork first, and create one in each process.

namespace towpath::riscv_mailbox::live {

// The memory of a mailbox, as mapped by all its processes.
//
// A mailbox has lanes, one per sender at a time. A lane is a FIFO of cache lines with a single
// writer and a single reader. A message is a cache line: up to 56 bytes, and a tag with the number
// of the message in its lane and its length. The tag is stored last, so a message exists only when
// it is complete. A writer that dies before leaves only bytes that the next one overwrites.
//
// Locks of the file determine the writer of a lane and the reader of the mailbox. The kernel
// releases them when their process ends, for any reason.

using os::FileDescriptor;

inline constexpr std::size_t kLineBytes = 64;
inline constexpr std::size_t kPayloadBytesMax = 56;

struct alignas(kLineBytes) Slot {
  std::byte payload[kPayloadBytesMax];
  // (number of the message in its lane, from 1) * 256 + its size, or the tag of a message of an
  // earlier lap.
  std::atomic<std::uint64_t> tag;
};
static_assert(sizeof(Slot) == kLineBytes);

constexpr std::uint64_t tag_of(std::uint64_t number, std::size_t size_bytes) {
  return number << 8 | size_bytes;
}

// The position of a message in its lane, by the number of messages before it. Consecutive messages
// are on different pages if there are several, because a processor that prefetches a row of lines
// would take the next ones from the other side. One way of 32 bytes between distant cores takes 275
// ns in a row of 256 lines, 250 in this order, and 235 in a single line.
constexpr std::uint64_t place_of(std::uint64_t before, std::uint64_t mask) {
  constexpr std::uint64_t kStride = 101;  // odd, so that no place is left out
  return before * kStride & mask;
}

struct LaneState {
  // Messages that the reader has released. In a separate line, which writers read only when they
  // have no room.
  alignas(kLineBytes) std::atomic<std::uint64_t> credit;
  // The same number, up to date after every message, for the reader and its successors.
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
  // Creates memory that has no name in any file system and is freed with the last process that has
  // it.
  static std::shared_ptr<Memory> create(const std::string& name, std::uint32_t depth,
                                        std::uint32_t lanes);
  // Opens `path`, a file descriptor of some process. Throws std::runtime_error if it is not a
  // mailbox.
  static std::shared_ptr<Memory> open(const std::string& path);

  Memory(FileDescriptor file, std::size_t size_bytes)
      : file_(std::move(file)), mapping_(file_, size_bytes) {}

  // The same memory with separate locks.
  std::shared_ptr<Memory> reopened() const;

  Control& control() const { return *reinterpret_cast<Control*>(mapping_.data()); }
  LaneState& state(std::uint32_t lane) const { return states_[lane]; }
  Slot* slots(std::uint32_t lane) const {
    return slots_ + static_cast<std::size_t>(lane) * control().depth;
  }

  // Locks belong to this object, not to the process, and end with it.
  bool lock_reader() { return lock(0); }
  bool lock_lane(std::uint32_t lane) { return lock(1 + lane); }
  // True if another object has the reader's lock.
  bool has_reader() const;

 private:
  bool lock(std::uint32_t byte);

  FileDescriptor file_;
  os::SharedMapping mapping_;
  LaneState* states_ = nullptr;
  Slot* slots_ = nullptr;
};

struct MailboxOptions {
  std::uint32_t depth_messages = 256;  // per sender, a power of two
  std::uint32_t senders_max = 64;      // at a time
};

// A handle to a mailbox's memory, which exists as long as some process has a handle.
class Mailbox {
 public:
  // Creates a new mailbox, which other processes of the same user find by its name. Throws
  // std::invalid_argument for options that are invalid by themselves, and std::runtime_error if the
  // name is in use.
  explicit Mailbox(const std::string& name, const MailboxOptions& options = {});
  // Finds the mailbox of a live process. Throws std::runtime_error if there is none.
  static Mailbox find(const std::string& name);

  const std::string& name() const { return name_; }
  const std::shared_ptr<Memory>& memory() const { return memory_; }
  // Completes pending look-ups of the name. A receiver in the maker's process calls this
  // occasionally. A maker without one must call it before some 4,000 look-ups have queued up.
  void serve_lookups() const;

 private:
  Mailbox(std::string name, std::shared_ptr<Memory> memory);

  std::string name_;
  std::shared_ptr<Memory> memory_;
  std::shared_ptr<FileDescriptor> listener_;  // its owner is the process that has the memory
};

struct Message {
  std::uint32_t lane = 0;    // of the sender, reused by later ones
  std::uint64_t number = 0;  // in its lane, from 1 without gaps
  std::size_t size_bytes = 0;
  std::array<std::byte, kPayloadBytesMax> bytes;
  std::span<const std::byte> payload() const { return {bytes.data(), size_bytes}; }
};

class Sender {
 public:
  // Throws std::runtime_error if there are already senders_max others.
  explicit Sender(const Mailbox& mailbox);
  Sender(Sender&&) = default;
  Sender& operator=(Sender&&) = default;

  std::uint32_t lane() const { return lane_; }
  std::uint64_t depth() const { return mask_ + 1; }
  std::uint64_t sent() const { return position_; }  // by all senders that had this lane

  // True: the message will be received even if this process is killed, as long as some process
  // keeps the mailbox. False: there is no room. Throws std::invalid_argument for more than
  // kPayloadBytesMax bytes.
  bool try_send(std::span<const std::byte> payload) {
    if (position_ - credit_ > mask_ && !has_new_credit()) return false;
    if (payload.size() > kPayloadBytesMax) throw_too_large(payload.size());
    write(payload);
    return true;
  }
  // Waits for room. Throws transport::TransportError if there has been no receiver for half a
  // second (peer_died), or no room for `timeout` (timeout).
  void send(std::span<const std::byte> payload, Time timeout = Time::from_seconds(60));
  bool has_receiver() const { return memory_->has_reader(); }

 private:
  bool has_new_credit();
  void write(std::span<const std::byte> payload);
  [[noreturn]] static void throw_too_large(std::size_t size_bytes);

  std::string name_;
  std::shared_ptr<Memory> memory_;
  std::uint32_t lane_ = 0;
  LaneState* state_ = nullptr;
  Slot* slots_ = nullptr;
  std::uint64_t mask_ = 0;
  std::uint64_t position_ = 0;  // messages in the lane
  std::uint64_t credit_ = 0;    // released messages in the lane, a lower bound
  os::SpinWait spin_wait_{false};
};

// The reader of a mailbox. The next call releases a message. If this process dies before that, its
// successor receives the message once more, with the same lane and number.
class Receiver {
 public:
  // Throws std::runtime_error if there is already a receiver.
  explicit Receiver(const Mailbox& mailbox);
  Receiver(const Receiver&) = delete;
  Receiver& operator=(const Receiver&) = delete;
  ~Receiver() { release(); }

  bool try_receive(Message& message);
  // False if no message arrived within `timeout`.
  bool receive(Message& message, Time timeout = Time::from_seconds(60));
  // Releases the message received last: a successor will not receive it again.
  void release();

 private:
  struct Lane {
    LaneState* state;
    Slot* slots;
    std::uint64_t head;      // messages received
    std::uint64_t credited;  // as senders know
  };
  bool take(std::uint32_t number, Message& message);
  void add_lanes();
  void look_at_one_lane() const;

  Mailbox mailbox_;
  std::shared_ptr<Memory> memory_;
  std::uint64_t mask_ = 0;
  std::uint64_t credit_step_ = 1;
  std::vector<Lane> lanes_;
  std::uint32_t next_ = 0;          // the lane to look at first
  std::uint32_t taken_in_row_ = 0;  // messages from that lane
  std::uint32_t looks_ = 0;
  Lane* unreleased_ = nullptr;
  os::SpinWait spin_wait_{false};
};

// A process's mailbox and all its senders behind the calls of riscv_mailbox::Context, with names
// for addresses. A peer that ended and came back under its name is reached again after a call has
// found its old mailbox full, and reported it.
class Context {
 public:
  explicit Context(const std::string& name, const MailboxOptions& options = {})
      : mailbox_(name, options), receiver_(mailbox_) {}

  const std::string& address() const { return mailbox_.name(); }
  void send(const std::string& to, std::span<const std::byte> payload,
            Time timeout = Time::from_seconds(60));
  bool try_send(const std::string& to, std::span<const std::byte> payload);
  bool try_receive(Message& message) { return receiver_.try_receive(message); }
  bool receive(Message& message, Time timeout = Time::from_seconds(60)) {
    return receiver_.receive(message, timeout);
  }

 private:
  Sender& sender_to(const std::string& name);

  Mailbox mailbox_;
  Receiver receiver_;
  std::map<std::string, Sender> senders_;
};

}  // namespace towpath::riscv_mailbox::live
