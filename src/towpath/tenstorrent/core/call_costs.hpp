// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "towpath/tenstorrent/core/architecture.hpp"

// Costs of the calls of a kernel, in cycles of the chip's clock. "Estimator" is tt-metal's
// noc_estimator: times of many calls on a chip.

namespace towpath::tenstorrent {

struct CallCosts {
  int write;
  int read;
  int write_with_state;  // destination and size are set beforehand
  int read_with_state;
  int read_held_up;  // added to a read by each read response that its NIU sends meanwhile
  int set_state;
  int multicast;
  int inline_write;
  int atomic;
  int ethernet_send;  // of a command to a queue that is free
};

inline constexpr ByArchitecture<CallCosts> kCallCosts{
    .wormhole =
        {
            .write = 22,             // estimator: 256 writes of 64 B, 23 each with the barrier
            .read = 19,              // estimator: 256 reads of 64 B
            .write_with_state = 20,  // estimator: 256 stateful writes of 64 B
            .read_with_state = 17,   // estimator: 256 stateful reads of 64 B, 18.5 each
            // Estimator: the difference between reads of 64 B if cores serve each other (all from
            // all) and from cores that do not read (one from all).
            .read_held_up = 9,
            .set_state = 22,     // assumed: as a write
            .multicast = 22,     // estimator: slope of 64 to 256 linked multicasts of 64 B
            .inline_write = 22,  // assumed: as a write
            .atomic = 22,        // assumed: as a write
            // Assumed: that of a NoC write. With a poll of the queue and the stores around it, it
            // is the 33 ns that ubench5 (tt-metal, Basic Ethernet Multichip) leaves for a send.
            .ethernet_send = 22,
        },
    .blackhole =
        {
            .write = 23,             // estimator: 256 writes of 64 B, 24.3 each with the barrier
            .read = 34,              // estimator: 256 reads of 64 B, 36.3 each with the barrier
            .write_with_state = 20,  // estimator: 256 stateful writes of 64 B
            .read_with_state = 34,   // estimator: 64 stateful reads of 64 B
            .read_held_up = 6,       // as on Wormhole
            .set_state = 24,         // assumed: as a write
            .multicast = 23,         // estimator: slope of 64 to 256 linked multicasts of 64 B
            .inline_write = 24,      // assumed: as a write
            .atomic = 24,            // assumed: as a write
            // Fitted to tt-metal test_all_ethernet_links_bandwidth: one way, 512 B take 140 ns
            // each. It occupies the core, not the queue: a packet to a worker, where the receiver
            // also writes and answers, takes about 15 ns more.
            .ethernet_send = 152,
        },
};

// Period of the loop of a wait. Source: tt-isa-documentation, WormholeB0/EthernetTile,
// BabyRISCV/README.md: a load takes 7 cycles from L1 or a register, and a branch waits for it;
// assumed for workers and for Blackhole.
inline constexpr int kPollCycles = 8;

// A call of the base firmware if it has nothing to do. Assumed: it is not published.
inline constexpr int kRoutingFirmwareCycles = 100;

// Code of a core is stored in L1; a cache holds the 16-byte lines that ran last.
struct InstructionFetch {
  int cache_bytes;
  int line_cycles;  // of a line that is not in the cache
};

inline constexpr ByArchitecture<InstructionFetch> kInstructionFetch{
    // tt-isa-documentation, WormholeB0/EthernetTile, BabyRISCV/InstructionCache.md, and README.md:
    // latency of a load from L1, of which a fetch takes 16 B (EthernetTile/L1.md). Assumed: the
    // prefetcher, whose settings are not published, hides none of it.
    .wormhole = {.cache_bytes = 512, .line_cycles = 7},
    // tt-metal CCL_bandwidth, all-gathers of eight up to 128 KiB. The code is assumed to be always
    // in the cache: with Wormhole's fetch time they are 9 to 14 % too slow.
    .blackhole = {.cache_bytes = 0, .line_cycles = 0},
};

}  // namespace towpath::tenstorrent
