// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "towpath/machine/chip_cluster.hpp"
#include "towpath/tenstorrent/kernels/duplex_bandwidth.hpp"
#include "towpath/tenstorrent/kernels/link_bandwidth.hpp"
#include "towpath/tenstorrent/kernels/link_ping.hpp"
#include "towpath/tenstorrent/kernels/ring_ping.hpp"

// The microbenchmarks of Ethernet links, each on a new cluster.

namespace towpath::tenstorrent::bench {

struct EthernetBenchOptions {
  std::uint64_t seed = 1;
  // largest skew of the start of programs of different chips
  noc::Cycle program_skew_cycles = 1000;
  bool finds_hazards = true;
};

// A link and its direction: the first usable one from one chip to another.
struct LinkPlace {
  int sender_chip = 0;
  int receiver_chip = 1;
};

using SharedCluster = std::shared_ptr<const machine::ChipCluster>;

std::vector<Time> ring_ping(const SharedCluster& cluster, const kernels::RingPing& ping,
                            const EthernetBenchOptions& options);
std::vector<kernels::LinkPingTimes> link_ping(const SharedCluster& cluster, const LinkPlace& place,
                                              const kernels::LinkPing& ping,
                                              const EthernetBenchOptions& options);
Time link_bandwidth(const SharedCluster& cluster, const LinkPlace& place,
                    const kernels::LinkBandwidth& test, const EthernetBenchOptions& options);
// GB/s, sum of both directions.
double duplex_bandwidth(const SharedCluster& cluster, const LinkPlace& place,
                        const kernels::DuplexBandwidth& test, const EthernetBenchOptions& options);

}  // namespace towpath::tenstorrent::bench
