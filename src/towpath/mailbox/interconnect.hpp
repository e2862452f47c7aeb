// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "towpath/machine/mailbox_cluster.hpp"
#include "towpath/mailbox/ring.hpp"
#include "towpath/sim/clock.hpp"
#include "towpath/sim/simulation.hpp"

// The packetizers and mailboxes of all nodes and the ring between them: the hardware behind loads
// and stores of the cores. Costs of the accesses and a library are in riscv_mailbox/.
//
// A context is one process's share of its node's packetizer, with its mailbox. Contexts belong to a
// domain. A packet for a mailbox of another domain is rejected.

namespace towpath::mailbox {

struct Message {
  Address from;
  std::vector<std::byte> payload;
};

// Results of the messages from one context.
struct Notices {
  std::uint64_t acknowledged = 0;
  std::uint64_t full = 0;     // dropped, because the mailbox was full
  std::uint64_t refused = 0;  // dropped, because the context's domain has no such mailbox
  bool operator==(const Notices&) const = default;
};

class Interconnect {
 public:
  Interconnect(sim::Simulation& simulation, std::shared_ptr<const machine::MailboxCluster> cluster);
  Interconnect(const Interconnect&) = delete;
  Interconnect& operator=(const Interconnect&) = delete;

  const machine::MailboxCluster& cluster() const { return *cluster_; }
  sim::Simulation& simulation() const { return simulation_; }

  // Opens the lowest free context. Throws std::invalid_argument if the node does not exist or has
  // no free context.
  Address open(int node, int domain);
  // Drops the contents of the mailbox. A context cannot be reopened while its packets are in
  // flight. Closing twice is allowed.
  void close(Address context);

  // --- packetizer: called by the context's process
  // Whether a packet is accepted now.
  bool has_room(Address context) const {
    return at(context).unacknowledged < cluster_->packetizer.packets_unacknowledged_max;
  }
  // Accepts a packet after its last store; there must be room. Throws std::invalid_argument if the
  // node does not exist or the payload is empty or too large.
  void submit(Address from, Address to, std::span<const std::byte> payload);
  // Submitted packets without a result yet.
  int unacknowledged(Address context) const { return at(context).unacknowledged; }
  const Notices& notices(Address context) const { return at(context).notices; }

  // --- mailbox: called by the context's process
  // Time from which loads see the first packet; empty if there is none.
  std::optional<Time> visible_from(Address context) const;
  // The first packet as seen by loads. It stays until released.
  Message first(Address context) const;
  void release(Address context);
  std::size_t packets(Address context) const { return at(context).fifo.size(); }

  // Woken when there is room again, and when a packet arrives in an empty mailbox.
  void set_process(Address context, sim::Process* process) { at(context).process = process; }

  // Adds an instant to the node's track if the simulation has a trace.
  void trace_instant(int node, std::string_view event, Time time) const;

 private:
  struct Entry {
    Packet packet;
    Time visible_from;
  };
  struct Context {
    bool is_open = false;
    int domain = 0;
    int unacknowledged = 0;
    Notices notices;
    std::deque<Entry> fifo;
    std::deque<Packet> waiting;  // have arrived while the mailbox is full
    sim::Process* process = nullptr;
  };
  struct Node {
    std::vector<Context> contexts;
    Cycles packetizer_free_at;
  };
  // A packet during assembly.
  struct Forming {
    Interconnect* interconnect = nullptr;
    Packet packet;
  };

  Node& checked(int node);
  Context& at(Address address) {
    return nodes_[static_cast<std::size_t>(address.node)]
        .contexts[static_cast<std::size_t>(address.context)];
  }
  const Context& at(Address address) const { return const_cast<Interconnect&>(*this).at(address); }
  static void formed(void* forming);
  void arrive(Packet& packet, Time rest);
  void enqueue(Context& mailbox, Packet packet, Time rest);
  void answer(const Packet& packet, Packet::Kind kind) {
    ring_.send({kind, packet.to, packet.from, packet.domain, {}});
  }
  void on_notice(Context& sender, Packet::Kind kind);
  void wake(Context& context);

  sim::Simulation& simulation_;
  std::shared_ptr<const machine::MailboxCluster> cluster_;
  sim::Clock clock_;
  Ring ring_;
  std::vector<Node> nodes_;
  std::deque<Forming> forming_;  // storage
  std::vector<Forming*> free_forming_;
};

}  // namespace towpath::mailbox
