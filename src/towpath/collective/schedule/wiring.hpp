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
  std::vector<std::vector<BlockWiring>> ranks;  // [rank][thread block]
  std::uint32_t fifos = 0;                      // most incoming connections on any rank
  std::uint32_t credits = 0;                    // most outgoing connections on any rank
  std::uint32_t count_max = 0;                  // largest step that sends or receives
  OneSidedWiring one_sided;
};

// `schedule` has passed check_structure.
Wiring wire(const Schedule& schedule);

}  // namespace towpath::collective
