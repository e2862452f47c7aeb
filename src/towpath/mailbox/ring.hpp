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

// A context of a node, and its mailbox.
struct Address {
  int node = 0;
  int context = 0;
  auto operator<=>(const Address&) const = default;
};

struct Packet {
  enum class Kind : std::uint8_t {
    message,
    acknowledgement,  // the message is in its mailbox
    full,             // message dropped: mailbox full
    refused,          // message dropped: no such mailbox in the domain
  };
  Kind kind = Kind::message;
  Address from;
  Address to;
  int domain = 0;  // the sender's
  std::vector<std::byte> payload;
};

// Links between neighbours, one in each direction. A packet takes the shorter path, upwards on a
// tie. Its header continues as soon as the next link is free, and the payload follows. Packets
// between two nodes arrive in order.
class Ring {
 public:
  // Called when a packet's header reaches its node. `rest` is the time until its last byte.
  using Arrived = std::function<void(Packet& packet, Time rest)>;
  Ring(sim::Simulation& simulation, std::shared_ptr<const machine::MailboxCluster> cluster,
       Arrived arrived)
      : simulation_(simulation),
        cluster_(std::move(cluster)),
        arrived_(std::move(arrived)),
        link_free_at_(2 * static_cast<std::size_t>(cluster_->nodes)) {}

  // The header leaves now, or when the link is free.
  void send(Packet packet);

 private:
  struct Flight {
    Ring* ring = nullptr;
    Packet packet;
    int at = 0;    // the next node of the header
    int step = 0;  // direction: 1, -1 or 0
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
