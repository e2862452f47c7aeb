// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include "towpath/mailbox/core.hpp"
#include "towpath/mailbox/interconnect.hpp"

// A user-space library for small messages, with its cost in cycles.
//
//   Context context(interconnect, core, {.node = 0});
//   context.send({1, 0}, bytes);
//   Message answer = *context.receive();
//
// Wrong: a receive() on each side before the first send(). It deadlocks, and the simulation reports
// the waiting processes.

namespace towpath::riscv_mailbox {

using towpath::mailbox::Address;
using towpath::mailbox::Core;
using towpath::mailbox::Interconnect;
using towpath::mailbox::Message;
using towpath::mailbox::Notices;

// A process's context: its share of the packetizer, and its mailbox. Only one process may call at a
// time. Each call blocks for its cost.
class Context {
 public:
  struct Options {
    int node = 0;
    int domain = 0;  // messages stay within one domain
  };
  // Throws std::invalid_argument if the node has no free context.
  Context(Interconnect& interconnect, Core& core, const Options& options)
      : interconnect_(interconnect),
        core_(core),
        software_(interconnect.cluster().software),
        address_(interconnect.open(options.node, options.domain)) {}
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;
  ~Context();

  Address address() const { return address_; }
  Core& core() const { return core_; }

  // Waits for room in the packetizer before the first store, and returns when the core's load/store
  // path has acknowledged the last. Throws std::invalid_argument if the node does not exist or the
  // payload is empty or larger than a packet.
  void send(Address to, std::span<const std::byte> payload);

  // Polls once.
  std::optional<Message> try_receive();
  // Polls until there is a message. Returns nullopt if none arrives by `deadline`.
  std::optional<Message> receive(Time deadline = Time::max());

  // Results of sent messages. A drop appears some time after send().
  const Notices& notices() const { return interconnect_.notices(address_); }
  // Waits for the results of all sent messages.
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
