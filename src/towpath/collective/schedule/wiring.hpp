// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "towpath/collective/schedule/one_sided.hpp"
#include "towpath/collective/schedule/schedule.hpp"

// Connection ends of each thread block, so that both ends can address each other's FIFO and signals
// without a handshake. Computed once per schedule and shared by all ranks.

namespace towpath::collective {

struct BlockWiring {
  std::int32_t fifo = kNone;           // its incoming FIFO on its rank
  std::int32_t credit = kNone;         // its credit signal on its rank
  std::int32_t peer_fifo = kNone;      // FIFO of its outgoing connection, at the send peer
  std::int32_t peer_credit = kNone;    // credit signal to raise, at the receive peer
  std::int32_t send_block = kNone;     // receiving thread block at the send peer
  std::int32_t receive_block = kNone;  // sending thread block at the receive peer
};

struct Wiring {
  // [rank][thread block]. Only the first ranks if the others have the same wiring; use of().
  std::vector<std::vector<BlockWiring>> ranks;
  std::uint32_t fifos = 0;      // most incoming connections on any rank
  std::uint32_t credits = 0;    // most outgoing connections on any rank
  std::uint32_t count_max = 0;  // largest step that sends or receives
  OneSidedWiring one_sided;

  const std::vector<BlockWiring>& of(int rank) const {
    return ranks[static_cast<std::size_t>(rank) % ranks.size()];
  }
};

// The sending and receiving thread blocks of a rank for each peer and channel.
class ConnectionEnds {
 public:
  // `period` is a multiple of the schedule's rotation_period(). If several thread blocks claim one
  // end of a connection, the last wins.
  ConnectionEnds(const Schedule& schedule, int period);

  // kNone if there is none.
  int sender(int rank, int to, int channel) const { return find(senders_, rank, to, channel); }
  int receiver(int rank, int from, int channel) const {
    return find(receivers_, rank, from, channel);
  }

 private:
  struct End {
    std::int32_t peer = kNone;
    std::int32_t channel = 0;
    std::int32_t block = kNone;
  };
  using Ends = std::vector<std::vector<End>>;  // [rank], ascending
  int find(const Ends& ends, int rank, int peer, int channel) const;

  int rank_count_;
  Ends senders_;
  Ends receivers_;
};

// `schedule` has passed check_structure.
Wiring wire(const Schedule& schedule);

}  // namespace towpath::collective
