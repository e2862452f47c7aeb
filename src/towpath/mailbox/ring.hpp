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
    full,             // it was dropped there: no room
    refused,          // it was dropped: no such mailbox, or one of another domain
  };
  Kind kind = Kind::message;
  Address from;
  Address to;
  int domain = 0;  // of the sender
  std::vector<std::byte> payload;
};

// The links of all nodes, one each way between neighbours. A packet takes the shortest way, upwards
// where both are as long; its header goes on as soon as the next link is free, the payload behind
// it. Packets from one node to another arrive in order.
class Ring {
 public:
  // `arrived` gets a packet at its node when the header is there, and how long after that the last
  // byte is.
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
