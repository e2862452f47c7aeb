// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "towpath/tenstorrent/kernels/socket.hpp"

// The ring ping of the walkthrough (tt-metal, Basic Ethernet Multichip): a master sends a packet
// over the NoC to an Ethernet core of its chip, which sends it over its link to the next chip,
// where the receiver hands it to the next sender, and so on until it is back at the master.

namespace towpath::tenstorrent::kernels {

struct RingPing {
  std::vector<int> chips;
  std::uint64_t packet_bytes = 16;
  int channels = 1;  // packets under way together, 1 to 8
  // Packet and sync word are one command; otherwise two, and the receiver acknowledges at once.
  bool is_merged = true;
  int samples = 100;
};

// Time of each round trip, as the master's profiler sees it. The first trip is not measured: it
// waits until programs on all chips have started.
std::vector<Time> run_ring_ping(Cluster& cluster, const RingPing& ping);

}  // namespace towpath::tenstorrent::kernels
