// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "towpath/tenstorrent/kernels/socket.hpp"

// Both ends of a link send and receive over several channels each, in one loop (tt-metal, Basic
// Ethernet Multichip, "Bidirectional Bandwidth").

namespace towpath::tenstorrent::kernels {

struct DuplexBandwidth {
  std::uint64_t packet_bytes = 4096;
  // Packet and sync word in one command; otherwise two, with the sync words of erisc_info.
  bool is_merged = true;
  int channels = 4;  // per direction, 1 to 30, or at most 4 if not merged
  int packets = 64;  // over each channel
};

// GB/s, sum of both directions.
double run_duplex_bandwidth(Cluster& cluster, const Socket& socket, const DuplexBandwidth& test);

}  // namespace towpath::tenstorrent::kernels
