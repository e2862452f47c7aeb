// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/machine/mailbox_cluster.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <stdexcept>
#include <utility>

namespace towpath::machine {

namespace {

constexpr int kCyclesMax = 1'000'000;
constexpr int kCountMax = 1'000'000;

void require(const MailboxCluster& cluster, const char* figure, std::int64_t value,
             std::int64_t least, std::int64_t most) {
  if (value >= least && value <= most) return;
  throw std::invalid_argument(fmt::format("cluster '{}': {} is {}; it must be {} to {}",
                                          cluster.name, figure, value, least, most));
}

void check_software(const MailboxCluster& cluster) {
  const MailboxSoftwareFigures& software = cluster.software;
  require(cluster, "store_cycles", software.store_cycles, 0, kCyclesMax);
  require(cluster, "load_cycles", software.load_cycles, 1, kCyclesMax);
  require(cluster, "descriptor_words", software.descriptor_words, 1, kCountMax);
  require(cluster, "send_cycles", software.send_cycles, 0, kCyclesMax);
  require(cluster, "receive_cycles", software.receive_cycles, 0, kCyclesMax);
  require(cluster, "poll_cycles", software.poll_cycles, software.load_cycles, kCyclesMax);
  require(cluster, "release_cycles", software.release_cycles, 0, kCyclesMax);
  require(cluster, "cycle_counter_cycles", software.cycle_counter_cycles, 0, kCyclesMax);
  require(cluster, "responder_cycles", software.responder_cycles, 0, kCyclesMax);
}

void check_disturbances(const MailboxCluster& cluster) {
  const PageWalkFigures& walks = cluster.page_walks;
  if (!(walks.probability >= 0 && walks.probability <= 1)) {
    throw std::invalid_argument(
        fmt::format("cluster '{}': the probability of a page walk is {}; it must be 0 to 1",
                    cluster.name, walks.probability));
  }
  require(cluster, "cycles_min of page walks", walks.cycles_min, 0, kCyclesMax);
  require(cluster, "cycles_max of page walks", walks.cycles_max, walks.cycles_min, kCyclesMax);
  for (const InterruptionFigures& one : cluster.interruptions) {
    if (one.interval_mean > Time() && one.duration_min >= Time() &&
        one.duration_max >= one.duration_min) {
      continue;
    }
    throw std::invalid_argument(fmt::format(
        "cluster '{}': interruption '{}' comes every {} ns and takes {} to {} ns; the interval "
        "must be positive, and the durations in order",
        cluster.name, one.name, one.interval_mean.ns(), one.duration_min.ns(),
        one.duration_max.ns()));
  }
}

void check_interconnect(const MailboxCluster& cluster) {
  const PacketizerFigures& packetizer = cluster.packetizer;
  require(cluster, "contexts", packetizer.contexts, 1, kCountMax);
  require(cluster, "formation_cycles", packetizer.formation_cycles, 0, kCyclesMax);
  require(cluster, "payload_bytes_max", packetizer.payload_bytes_max, cluster.word_bytes, 1 << 20);
  require(cluster, "packets_unacknowledged_max", packetizer.packets_unacknowledged_max, 1,
          kCountMax);
  require(cluster, "line_rate in bytes per second", cluster.ring.line_rate.bytes_per_second(), 1,
          INT64_MAX);
  require(cluster, "header_bytes", cluster.ring.header_bytes, 1, 1 << 20);
  require(cluster, "hop_latency in ps", cluster.ring.hop_latency.ps(), 0, INT64_MAX / 4);
  require(cluster, "depth_packets", cluster.mailbox.depth_packets, 1, kCountMax);
  require(cluster, "enqueue_cycles", cluster.mailbox.enqueue_cycles, 0, kCyclesMax);
}

}  // namespace

int MailboxCluster::hops(int from, int to) const {
  const int apart = std::abs(from - to);
  return std::min(apart, nodes - apart);
}

std::shared_ptr<const MailboxCluster> build_mailbox_cluster(MailboxCluster cluster) {
  require(cluster, "nodes", cluster.nodes, 1, 100'000);
  require(cluster, "cores_per_node", cluster.cores_per_node, 1, 1024);
  require(cluster, "core_clock in Hz", cluster.core_clock.hz(), 1'000, 1'000'000'000'000);
  require(cluster, "interconnect_clock in Hz", cluster.interconnect_clock.hz(), 1'000,
          1'000'000'000'000);
  require(cluster, "word_bytes", cluster.word_bytes, 1, 4096);
  check_software(cluster);
  check_disturbances(cluster);
  check_interconnect(cluster);
  return std::make_shared<const MailboxCluster>(std::move(cluster));
}

}  // namespace towpath::machine
