// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "towpath/tenstorrent/kernels/socket.hpp"

// Round trip over one link (tt-metal, Basic Ethernet Multichip, "Single Ethernet Link Round-Trip
// Latency"): a payload with its sync word out, its sync word back.

namespace towpath::tenstorrent::kernels {

struct LinkPing {
  std::uint64_t payload_bytes = 16;
  int samples = 100;
};

// Times from both cores' profilers. Each is between two timestamps, which also take time.
struct LinkPingTimes {
  Time send_and_receive;  // sender, total
  Time send;              // sender: issue of the command
  Time wait;              // sender: from the send to the arrival of the sync word
  Time wait_and_answer;   // receiver, total
};

std::vector<LinkPingTimes> run_link_ping(Cluster& cluster, const Socket& socket,
                                         const LinkPing& ping);

}  // namespace towpath::tenstorrent::kernels
