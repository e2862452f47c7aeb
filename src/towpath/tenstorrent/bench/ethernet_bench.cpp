// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/tenstorrent/bench/ethernet_bench.hpp"

namespace towpath::tenstorrent::bench {

namespace {

using kernels::Socket;

Cluster::Options cluster_options(const EthernetBenchOptions& options) {
  return {.seed = options.seed,
          .program_skew_cycles = options.program_skew_cycles,
          .finds_hazards = options.finds_hazards};
}

Socket socket_at(Cluster& cluster, const LinkPlace& place) {
  return kernels::socket_between(cluster, place.sender_chip, place.receiver_chip);
}

}  // namespace

std::vector<Time> ring_ping(const SharedCluster& description, const kernels::RingPing& ping,
                            const EthernetBenchOptions& options) {
  Cluster cluster(description, cluster_options(options));
  return kernels::run_ring_ping(cluster, ping);
}

std::vector<kernels::LinkPingTimes> link_ping(const SharedCluster& description,
                                              const LinkPlace& place, const kernels::LinkPing& ping,
                                              const EthernetBenchOptions& options) {
  Cluster cluster(description, cluster_options(options));
  return kernels::run_link_ping(cluster, socket_at(cluster, place), ping);
}

Time link_bandwidth(const SharedCluster& description, const LinkPlace& place,
                    const kernels::LinkBandwidth& test, const EthernetBenchOptions& options) {
  Cluster cluster(description, cluster_options(options));
  return kernels::run_link_bandwidth(cluster, socket_at(cluster, place), test);
}

double duplex_bandwidth(const SharedCluster& description, const LinkPlace& place,
                        const kernels::DuplexBandwidth& test, const EthernetBenchOptions& options) {
  Cluster cluster(description, cluster_options(options));
  return kernels::run_duplex_bandwidth(cluster, socket_at(cluster, place), test);
}

}  // namespace towpath::tenstorrent::bench
