// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "towpath/noc/memory/outside_memory.hpp"
#include "towpath/noc/niu/request_rules.hpp"
#include "towpath/noc/niu/responder.hpp"

namespace towpath::noc {

// The tile through which cores reach memory outside the chip.
class OutsidePort {
 public:
  OutsidePort(const machine::Chip& chip, NetworkTicks& ticks, Transactions& transactions,
              Responder& responder, NiuTable& nius)
      : chip_(chip),
        ticks_(ticks),
        transactions_(transactions),
        responder_(responder),
        nius_(nius) {}

  AttachedMemory& attached() { return attached_; }
  const AttachedMemory& attached() const { return attached_; }
  // A core's request has arrived. A read holds its VC until it is answered.
  void request_received(const Received& received, Network& network);
  // The first cycle in which the tile may take the next flit of a write.
  Cycle flit_received(const Packet& packet, Cycle now);
  // Calls of the attached memory, in order of its reads: provides bytes of a read, and sends its
  // answer. The first bytes are in the tile at `first` and the last at `last`, and the last flit
  // leaves no earlier than that.
  void give(const OutsideMemory::Read& read, std::uint64_t at, std::span<const std::byte> data);
  void answer(const OutsideMemory::Read& read, Time first, Time last);

 private:
  const machine::Chip& chip_;
  NetworkTicks& ticks_;
  Transactions& transactions_;
  Responder& responder_;
  NiuTable& nius_;
  AttachedMemory attached_;
};

}  // namespace towpath::noc
