// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "towpath/base/units.hpp"
#include "towpath/os/spin_wait.hpp"
#include "towpath/riscv_mailbox/live/memory.hpp"

// Mailboxes between processes of one Linux host: small messages from user space to user space, each
// a cache line, without a system call. There is no daemon and no name in a file system. When a
// process is killed, it leaves no file behind, and no message that was sent is lost, doubled or
// torn, as long as some process keeps the mailbox: its maker, by whose name others find it, or its
// receiver.
//
//   Mailbox mailbox("job-17/results");         // in the process that keeps it
//   Receiver receiver(mailbox);                // there, or in another one
//   Sender sender(Mailbox::find("job-17/results"));   // in up to senders_max processes
//
// Messages of one sender arrive in order and exactly once. Between senders there is no order.
// Memory is bounded: a sender waits, or its call fails, while its part of the mailbox is full.
//
// Wrong: a Mailbox, Sender or Receiver made before fork(). Both processes hold its lock and name,
// and a child that merely inherits them keeps them from others after its parent's end, until it
// ends itself or calls exec(). Fork first, and make one in each process.

namespace towpath::riscv_mailbox::live {

struct MailboxOptions {
  std::uint32_t depth_messages = 256;  // per sender, a power of two
  std::uint32_t senders_max = 64;      // at a time
};

// A handle of a mailbox's memory, which exists for as long as some process has a handle.
class Mailbox {
 public:
  // Makes a new mailbox, which others of the same user find by its name. Throws
  // std::invalid_argument for options that are wrong in themselves, std::runtime_error when the
  // name is taken.
  explicit Mailbox(const std::string& name, const MailboxOptions& options = {});
  // Finds the mailbox of a live process. Throws std::runtime_error when there is none.
  static Mailbox find(const std::string& name);

  const std::string& name() const { return name_; }
  const std::shared_ptr<Memory>& memory() const { return memory_; }
  // Completes pending look-ups of the name. A receiver in the maker's process does this now and
  // then. A maker without one must call it before some 4,000 look-ups have queued up.
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
  // Throws std::runtime_error when senders_max others are there.
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
  // Waits for room. Throws transport::TransportError when there has been no receiver for half a
  // second (peer_died), or no room for `timeout` long (timeout).
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

// The reader of a mailbox. A message is released by the next call: if this process dies before, its
// successor receives it once more, with the same lane and number.
class Receiver {
 public:
  // Throws std::runtime_error when there is a receiver already.
  explicit Receiver(const Mailbox& mailbox);
  Receiver(const Receiver&) = delete;
  Receiver& operator=(const Receiver&) = delete;
  ~Receiver() { release(); }

  bool try_receive(Message& message);
  // False when no message came within `timeout`.
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
// for addresses. A peer that ended and came back under its name is reached again once a call has
// found its old mailbox full, and said so.
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
