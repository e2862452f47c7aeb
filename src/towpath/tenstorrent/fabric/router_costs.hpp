// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "towpath/tenstorrent/core/architecture.hpp"

// The program of tt-metal's fabric routers: its costs in cycles of the chip's clock, and its sizes.

namespace towpath::tenstorrent::fabric {

// Period of the loop that looks for work. Assumed: as a wait.
inline constexpr int kRouterLoopCycles = 8;

struct RouterCosts {
  int send;          // choosing a packet to send and submitting its command
  int sent;          // after the command, while the queue fetches the packet
  int channel;       // the same, for each channel after the first
  int answer;        // submitting an answer to the far end
  int receive;       // finding the next hop of a packet, without the calls
  int ring;          // on a ring: first-level acknowledgement and bubble
  int ring_handled;  // on a ring: after a packet that is delivered or forwarded
  int mesh;          // on a mesh: routes in two dimensions and twice the channels
  int mesh_forward;  // on a mesh: to another router
  int list;          // the list of a packet with several destinations or pages
  int segment;       // each of them after the first, without the write

  int cores;                    // of a router; with 2, one sends and the other receives
  int channel_slots_max;        // of a channel in one dimension
  int mesh_slots_max;           // of a channel of a mesh
  std::uint64_t payload_bytes;  // of a packet, as transports use it
};

inline constexpr ByArchitecture<RouterCosts> kRouterCosts{
    .wormhole =
        {
            // send and receive: fitted to tt-metal's latency of a line of 8, 16 B over 14 hops,
            // which shows only their sum. Assumed: they are equal, apart from a command of 22.
            .send = 93,
            // Assumed: one RISC-V serves both directions, and the time after a command is part of
            // that of the next packet.
            .sent = 0,
            .channel = 0,
            .answer = 22,  // assumed: as a send
            .receive = 71,
            // As on Blackhole, with the same program. tt-metal's latency around a ring of 8, 756 ns
            // per hop (705 along a line), checks it.
            .ring = 60,
            // Fitted to tt-metal, golden bandwidths of the fabric: the mean of four rows around a
            // ring, plain and fused.
            .ring_handled = 88,
            // Fitted to tt-metal, golden latencies of T3000 and Galaxy, mesh against line: 56 to
            // 130 ns.
            .mesh = 108,
            // Fitted to the slopes per hop of CCL_bandwidth.md in one and two dimensions, 711 and
            // 874 ns.
            .mesh_forward = 47,
            // Counted in the code of gcc 12.2 for rv32im, -O2 and -O3: 12 instructions and a load
            // of 7, and their code from L1, since a router's code exceeds the cache.
            .list = 38,
            // Counted in the same way: 22 instructions and two loads that the core waits for, 70
            // cycles with their code from L1, minus a write's.
            .segment = 48,
            .cores = 1,  // tt-metal, TT-Fabric-Architecture.md: one RISC-V serves both directions
                         // tt-metal, fabric_static_sized_channels_allocator.cpp: 16, and 16 of the
                         // receiver, or fewer if L1 has no room.
            .channel_slots_max = 16,
            .mesh_slots_max = 7,    // there: 7, and 11 of the receiver, or 4 and 8
            .payload_bytes = 4352,  // tt-metal, fabric: the default of a packet
        },
    .blackhole =
        {
            // Fitted to tt-metal, fabric bandwidth goldens of four p150: with slots of 5440 B and
            // more, a packet takes some 30 ns in addition to the time in which the queue fetches
            // it.
            .send = 32,
            // Fitted to tt-metal, fabric bandwidth goldens of four p150: 8.13 million packets per
            // second between neighbours, of 2 or of 4 KiB.
            .sent = 102,
            // tt-metal, fabric bandwidth goldens of four p150, 4 KiB: between neighbours 123 ns a
            // packet from routers without forwarding, 139 ns from those with a second channel.
            .channel = 22,
            .answer = 16,  // assumed: the stores of a command
                           // Fitted to tt-metal's golden fabric latencies of four and eight p150, a
                           // line, 16 B: 655 to 698 ns.
            .receive = 78,
            // Fitted to tt-metal, golden latencies of four and eight p150, ring against line: 38
            // to 45 ns in seven of eight pairs.
            .ring = 60,
            // Fitted to tt-metal, golden bandwidths of four p150, 2 and 4 KiB around a ring.
            .ring_handled = 62,
            // Fitted to tt-metal, golden latencies of four and eight p150, mesh against line: 33
            // to 67 ns.
            .mesh = 62,
            // Fitted to the slopes per hop of CCL_bandwidth.md in one and two dimensions, 515 and
            // 619 ns.
            .mesh_forward = 78,
            // Counted as on Wormhole, 12 instructions and a load of 8, with code that is always in
            // the cache. With `segment`, tt-metal's golden of scatter writes between four p150 is
            // met within 2 %.
            .list = 20,
            // Counted as on Wormhole, 22 instructions and loads of 8 and of 2, the second from the
            // L0 data cache (tt-isa-documentation BlackholeA0, BabyRISCV/README.md), less those of
            // a write.
            .segment = 10,
            // tt-metal, TT-Fabric-Architecture.md: core 0 serves the senders, core 1 the
            // receivers.
            .cores = 2,
            // tt-metal, fabric_static_sized_channels_allocator.cpp: 32, and 32 of the receiver, or
            // fewer if L1 has no room.
            .channel_slots_max = 32,
            .mesh_slots_max = 8,  // there: 8, and 16 of the receiver, or fewer
                                  // tt-metal, fabric bandwidth goldens: the smallest slot with the
                                  // full rate of the link.
            .payload_bytes = 7616,
        },
};

}  // namespace towpath::tenstorrent::fabric
