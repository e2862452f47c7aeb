// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "towpath/tenstorrent/kernels/socket.hpp"

// Round trip over one link (tt-metal, Basic Ethernet Multichip, "Single Ethernet Link Round-Trip
// Latency"): a payload with its sync word there, its sync word back.

namespace towpath::tenstorrent::kernels {

struct LinkPing {
  std::uint64_t payload_bytes = 16;
  int samples = 100;
};

// Times as the profilers of both cores see them: each is between two timestamps, which take time
// themselves.
struct LinkPingTimes {
  Time send_and_receive;  // sender, in full
  Time send;              // sender: to hand over the command
  Time wait;              // sender: from the send until the sync word has arrived
  Time wait_and_answer;   // receiver, in full
};

std::vector<LinkPingTimes> run_link_ping(Cluster& cluster, const Socket& socket,
                                         const LinkPing& ping);

}  // namespace towpath::tenstorrent::kernels
