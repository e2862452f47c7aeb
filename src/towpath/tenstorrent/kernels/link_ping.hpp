// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "towpath/tenstorrent/kernels/socket.hpp"

// There and back over one link (tt-metal, Basic Ethernet Multichip, "Single Ethernet Link
// Round-Trip Latency"): a payload with its sync word there, its sync word back.

namespace towpath::tenstorrent::kernels {

struct LinkPing {
  std::uint64_t payload_bytes = 16;
  int samples = 100;
};

// As the profilers of both cores see it: each of these is between two timestamps, and timestamps
// take their time.
struct LinkPingTimes {
  Time send_and_receive;  // the sender's, in full
  Time send;              // the sender's, to hand over the command
  Time wait;              // the sender's, from having sent until the sync word is there
  Time wait_and_answer;   // the receiver's, in full
};

std::vector<LinkPingTimes> run_link_ping(Cluster& cluster, const Socket& socket,
                                         const LinkPing& ping);

}  // namespace towpath::tenstorrent::kernels
