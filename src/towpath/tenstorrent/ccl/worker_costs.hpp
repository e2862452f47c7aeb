// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "towpath/tenstorrent/core/architecture.hpp"
#include "towpath/tenstorrent/core/call_costs.hpp"

// Costs of the kernels of ttnn's collectives, in cycles of the chip's clock.

namespace towpath::tenstorrent::ccl {

struct WorkerCosts {
  std::uint64_t reduce_bytes_per_cycle;  // of one operand
  int reduce_latency;                    // from the last byte in L1 to the first result there
  int launch;  // from the end of a program to the first instruction of the next one of a trace
};

inline constexpr ByArchitecture<WorkerCosts> kWorkerCosts{
    .wormhole =
        {
            // Fitted to tt-metal CCL_bandwidth: all-reduce of eight minus all-gather, from 64 MiB.
            .reduce_bytes_per_cycle = 9,
            // Assumed: as on Blackhole, with the same kernels.
            .reduce_latency = 310,
            // tt-metal pgm_dispatch_golden.json, brisc_only_trace: a program of 20 KiB, the code of
            // an all-gather's two kernels, on the line through 8 and 12 KiB.
            .launch = 3740,
        },
    .blackhole =
        {
            // Fitted to tt-metal CCL_bandwidth: reduce-scatter of eight, from 64 MiB.
            .reduce_bytes_per_cycle = 13,
            // Fitted to tt-metal CCL_bandwidth, reduce-scatter of eight, 16 to 64 KiB: the
            // difference between each of its seven steps and a step of all-gather.
            .reduce_latency = 310,
            // tt-metal pgm_dispatch_blackhole_golden.json, brisc_only_trace: a program of 20 KiB
            // on the line through 8 and 12 KiB, 2.42 us.
            .launch = 3260,
        },
};

// Cycles and lines of code of a kernel from its first instruction to its first packet, without the
// opening of connections. A line has 16 B and comes from L1.
// Source: tt-metal, multicast_writer.cpp of all_gather, as gcc 12.2 compiles it. Other kernels are
// assumed to be alike.
inline constexpr std::int64_t kStartCycles = 930;
inline constexpr std::int64_t kStartLines = 196;

// From the launch until a worker opens its connection.
inline Time start_time(const machine::Chip& chip) {
  const std::int64_t fetched = kStartLines * kInstructionFetch.of(chip).line_cycles;
  return chip.clock.time_of(Cycles(kWorkerCosts.of(chip).launch + kStartCycles + fetched));
}

}  // namespace towpath::tenstorrent::ccl
