// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "towpath/collective/schedule/one_sided.hpp"
#include "towpath/collective/schedule/schedule.hpp"

// Which end of which connection every thread block holds, so that both ends find each other's FIFO
// and signals without asking. Computed once per schedule, shared by all ranks.

namespace towpath::collective {

struct BlockWiring {
  std::int32_t fifo = kNone;           // number of its incoming FIFO on its own rank
  std::int32_t credit = kNone;         // number of its credit signal on its own rank
  std::int32_t peer_fifo = kNone;      // its outgoing connection's FIFO, at the send peer
  std::int32_t peer_credit = kNone;    // the credit signal to raise, at the receive peer
  std::int32_t send_block = kNone;     // thread block at the send peer that receives from it
  std::int32_t receive_block = kNone;  // thread block at the receive peer that sends to it
};

struct Wiring {
  // [rank][thread block], of the first ranks only where the others are wired alike; of() knows.
  std::vector<std::vector<BlockWiring>> ranks;
  std::uint32_t fifos = 0;      // most incoming connections on any rank
  std::uint32_t credits = 0;    // most outgoing connections on any rank
  std::uint32_t count_max = 0;  // largest step that sends or receives
  OneSidedWiring one_sided;

  const std::vector<BlockWiring>& of(int rank) const {
    return ranks[static_cast<std::size_t>(rank) % ranks.size()];
  }
};

// Which thread block of a rank sends to a peer on a channel, and which receives from it.
class ConnectionEnds {
 public:
  // `period` is a multiple of the schedule's rotation_period(). Of several thread blocks at one end
  // of a connection it knows the last.
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
  using Ends = std::vector<std::vector<End>>;  // [rank], in ascending order
  int find(const Ends& ends, int rank, int peer, int channel) const;

  int rank_count_;
  Ends senders_;
  Ends receivers_;
};

// `schedule` has passed check_structure.
Wiring wire(const Schedule& schedule);

}  // namespace towpath::collective
