// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include "towpath/mailbox/core.hpp"
#include "towpath/mailbox/interconnect.hpp"

// The library with which a program in user space sends and receives small messages, and what it
// costs its core.
//
//   Context context(interconnect, core, {.node = 0});
//   context.send({1, 0}, bytes);
//   Message answer = *context.receive();
//
// Wrong: a receive() on each side before the first send(). Nothing ends it: a simulation that has
// no event left says who waits.

namespace towpath::riscv_mailbox {

using towpath::mailbox::Address;
using towpath::mailbox::Core;
using towpath::mailbox::Interconnect;
using towpath::mailbox::Message;
using towpath::mailbox::Notices;

// One process's context: its share of the packetizer, and its mailbox. Calls are those of one
// process at a time, and block it for what they cost.
class Context {
 public:
  struct Options {
    int node = 0;
    int domain = 0;  // messages go between contexts of one domain only
  };
  // Throws std::invalid_argument when the node has no context left.
  Context(Interconnect& interconnect, Core& core, const Options& options);
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;
  ~Context();

  Address address() const { return address_; }
  Core& core() const { return core_; }

  // Returns when the last store is acknowledged by the core's own load/store path; before the first
  // it waits for room in the packetizer. Throws std::invalid_argument for a node that does not
  // exist, and for a payload that is empty or larger than a packet.
  void send(Address to, std::span<const std::byte> payload);

  // Looks once.
  std::optional<Message> try_receive();
  // Polls until there is a message; none when there is none by `deadline`.
  std::optional<Message> receive(Time deadline = Time::max());

  // What has become of what was sent. A message that was dropped is told here, later than send().
  const Notices& notices() const { return interconnect_.notices(address_); }
  // Waits until something is known about all that was sent.
  void flush();

 private:
  std::optional<Message> receive_at(Cycles polled, Time deadline);
  Message read();
  bool can_see(Cycles polled) const;
  void wait(const char* what);

  Interconnect& interconnect_;
  Core& core_;
  const machine::MailboxSoftwareParameters& software_;
  Address address_;
};

}  // namespace towpath::riscv_mailbox
