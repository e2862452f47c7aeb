// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include "towpath/mailbox/core.hpp"
#include "towpath/mailbox/interconnect.hpp"

// Library of a user-space program that sends and receives small messages, with its cost in cycles.
//
//   Context context(interconnect, core, {.node = 0});
//   context.send({1, 0}, bytes);
//   Message answer = *context.receive();
//
// Wrong: a receive() on each side before the first send(). Nothing ends it; when no event is left,
// the simulation names who waits.

namespace towpath::riscv_mailbox {

using towpath::mailbox::Address;
using towpath::mailbox::Core;
using towpath::mailbox::Interconnect;
using towpath::mailbox::Message;
using towpath::mailbox::Notices;

// A process's context: its share of the packetizer, and its mailbox. One process calls at a time,
// and each call blocks it for as long as it costs.
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
  // Polls until there is a message; nullopt when none has come by `deadline`.
  std::optional<Message> receive(Time deadline = Time::max());

  // What became of the messages sent. A drop shows here some time after send().
  const Notices& notices() const { return interconnect_.notices(address_); }
  // Waits until the fate of every message sent is known.
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
