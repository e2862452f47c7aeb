// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "towpath/tenstorrent/kernels/socket.hpp"

// The ring ping of the walkthrough (tt-metal, Basic Ethernet Multichip): a master sends a packet
// over the NoC to an Ethernet core of its chip. That core sends it over its link to the next chip,
// whose receiver passes it to the next sender, and back around to the master.

namespace towpath::tenstorrent::kernels {

struct RingPing {
  std::vector<int> chips;
  std::uint64_t packet_bytes = 16;
  int channels = 1;  // packets in flight, 1 to 8
  // Packet and sync word in one command; otherwise two, and the receiver acknowledges at once.
  bool is_merged = true;
  int samples = 100;
};

// Round-trip times from the master's profiler. The first trip is excluded, because it waits for all
// programs to start.
std::vector<Time> run_ring_ping(Cluster& cluster, const RingPing& ping);

}  // namespace towpath::tenstorrent::kernels
