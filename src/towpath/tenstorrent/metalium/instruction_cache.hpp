// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "towpath/tenstorrent/metalium/kernel_include/towpath_kernel.h"

namespace towpath::tenstorrent::metalium {

// The code of a kernel up to the end of a call. All calls of a kind count as one location.
enum class CallCode : std::uint8_t {
  read,
  write,
  multicast,
  inline_write,
  with_state,  // partly set up by an earlier call
  atomic,
  short_call,  // states, ids, barriers, local semaphores
  look,        // at the requests with an id
  ethernet,    // plus the kind of call
};

// Code around a call of a kernel on an Ethernet core, besides the call's own cost. Counted in the
// guide's ring kernels around a write, an increment, an acknowledgement and a sync word as gcc 12
// compiles them: 7 to 14 cycles, with an instruction a cycle, loads of 7 and wrong branches of 2
// (tt-isa-documentation WormholeB0/EthernetTile, BabyRISCV/README.md).
inline constexpr int kSourceCallCycles = 10;

// Code of an Ethernet core is in L1, with a cache of the most recent lines. Each missing line costs
// a fetch.
class InstructionCache {
 public:
  // A line is the width of an access to L1: tt-isa-documentation, EthernetTile/L1.md.
  static constexpr int kLineBytes = 16;

  explicit InstructionCache(int bytes) : lines_(bytes / kLineBytes) {}

  // Runs some code. Returns the number of its lines that were not there.
  int run(int code, int lines) {
    const bool was_there = std::erase_if(held_, [&](Held held) { return held.code == code; }) > 0;
    held_.push_back({code, lines});
    drop_oldest();
    return was_there ? 0 : lines;
  }
  // The base firmware has run and replaced all lines.
  void clear() { held_.clear(); }

 private:
  struct Held {
    int code;
    int lines;
  };
  void drop_oldest() {
    int free = lines_;
    for (const Held& held : held_) free -= held.lines;
    while (free < 0) {
      free += held_.front().lines;
      held_.erase(held_.begin());
    }
  }

  int lines_;
  std::vector<Held> held_;  // least recent first
};

// Lines of code from the end of the call before to the end of this one, counted in the guide's ring
// kernels and in tt-metal's tests of links over its headers, as gcc 12 compiles them for such a
// core (rv32im, -Os): the code for one packet. Calls that are in neither have the number of one
// alike.
constexpr int lines_of(CallCode code) {
  switch (code) {
    case CallCode::read:
    case CallCode::write:
    case CallCode::multicast: return 9;
    case CallCode::inline_write:
    case CallCode::with_state: return 6;
    case CallCode::atomic: return 5;
    default: return 2;
  }
}
struct EthernetCallCode {
  TowpathEthernetCall call;
  int lines;
};
inline constexpr EthernetCallCode kEthernetCallCodes[] = {
    {kTowpathTxqIsBusy, 3},           {kTowpathIsSendAcked, 3},
    {kTowpathIsSendDone, 3},          {kTowpathBytesAreAvailable, 3},
    {kTowpathReadBarrier, 3},         {kTowpathWriteBarrier, 3},
    {kTowpathSendBytes, 5},           {kTowpathSendPacket, 5},
    {kTowpathWriteRemoteRegister, 5}, {kTowpathSendPayloadOnly, 5},
    {kTowpathSendPayloadComplete, 7}, {kTowpathReceiverDone, 7},
    {kTowpathReceiverAcknowledge, 7}, {kTowpathChannelAck, 7},
    {kTowpathChannelDone, 7},         {kTowpathSendBytesOverChannel, 12},  // two commands
};
constexpr int lines_of(TowpathEthernetCall call) {
  for (const EthernetCallCode& code : kEthernetCallCodes) {
    if (code.call == call) return code.lines;
  }
  return 2;
}

}  // namespace towpath::tenstorrent::metalium
