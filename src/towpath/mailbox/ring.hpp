// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "towpath/machine/mailbox_cluster.hpp"
#include "towpath/sim/simulation.hpp"

namespace towpath::mailbox {

// A context of a node, and the mailbox that belongs to it.
struct Address {
  int node = 0;
  int context = 0;
  auto operator<=>(const Address&) const = default;
};

struct Packet {
  enum class Kind : std::uint8_t {
    message,
    acknowledgement,  // the message is in its mailbox
    full,             // the message was dropped: no room in the mailbox
    refused,          // the message was dropped: no such mailbox, or one of another domain
  };
  Kind kind = Kind::message;
  Address from;
  Address to;
  int domain = 0;  // the sender's
  std::vector<std::byte> payload;
};

// Links of all nodes, one each way between neighbours. A packet takes the shorter way, upwards
// where both are equally long; its header goes on as soon as the next link is free, and the payload
// follows. Packets from one node to another arrive in order.
class Ring {
 public:
  // `arrived` is called when a packet's header is at its node; `rest` is the time until its last
  // byte is there.
  using Arrived = std::function<void(Packet& packet, Time rest)>;
  Ring(sim::Simulation& simulation, std::shared_ptr<const machine::MailboxCluster> cluster,
       Arrived arrived);

  // The header leaves now, or when the link is free.
  void send(Packet packet);

 private:
  struct Flight {
    Ring* ring = nullptr;
    Packet packet;
    int at = 0;    // the node where the header is next
    int step = 0;  // to the next node: 1, -1 or 0
  };
  void forward(Flight& flight);
  Time wire_time(const Packet& packet) const;
  static void at_node(void* flight);

  sim::Simulation& simulation_;
  std::shared_ptr<const machine::MailboxCluster> cluster_;
  Arrived arrived_;
  std::vector<Time> link_free_at_;  // by node: upwards, downwards
  std::deque<Flight> flights_;      // storage
  std::vector<Flight*> free_flights_;
};

}  // namespace towpath::mailbox
