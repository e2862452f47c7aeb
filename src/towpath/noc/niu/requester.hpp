// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <vector>

#include "towpath/noc/niu/responder.hpp"

namespace towpath::noc {

// The packets of requests: their size, VC and lane, and the time at which the NIU has read their
// data.
class Requester {
 public:
  Requester(const machine::Chip& chip, const NetworkTicks::Networks& networks,
            const Transactions& transactions);

  // `receivers` are the receivers of a multicast; otherwise empty.
  void send(std::uint32_t transaction, const std::vector<machine::Coordinate>& receivers,
            Cycle now);

 private:
  // Data is read from memory in overlapping streams.
  struct Streams {
    std::vector<PaceTime> ends;
    std::size_t next = 0;
  };
  Packet packet_of(const Tag& tag, Cycle now);

  const machine::Chip& chip_;
  const NetworkTicks::Networks& networks_;
  const Transactions& transactions_;
  PaceTime request_interval_;
  std::array<std::vector<Streams>, 2> streams_;  // by tile
};

}  // namespace towpath::noc
