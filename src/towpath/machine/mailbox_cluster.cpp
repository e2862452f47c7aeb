// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/machine/mailbox_cluster.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "towpath/machine/checks.hpp"

namespace towpath::machine {

namespace {

constexpr int kQueueMax = 1'000'000;  // contexts and packets

Checks checks_of(const MailboxCluster& cluster) {
  return Checks(fmt::format("cluster '{}'", cluster.name));
}

void check_software(const Checks& checks, const MailboxCluster& cluster) {
  const MailboxSoftwareFigures& software = cluster.software;
  checks.number("store_cycles", software.store_cycles, 0, kCyclesMax);
  checks.number("load_cycles", software.load_cycles, 1, kCyclesMax);
  checks.number("descriptor_words", software.descriptor_words, 1, kQueueMax);
  checks.number("send_cycles", software.send_cycles, 0, kCyclesMax);
  checks.number("receive_cycles", software.receive_cycles, 0, kCyclesMax);
  checks.number("poll_cycles", software.poll_cycles, software.load_cycles, kCyclesMax);
  checks.number("release_cycles", software.release_cycles, 0, kCyclesMax);
  checks.number("cycle_counter_cycles", software.cycle_counter_cycles, 0, kCyclesMax);
  checks.number("responder_cycles", software.responder_cycles, 0, kCyclesMax);
}

void check_disturbances(const Checks& checks, const MailboxCluster& cluster) {
  const PageWalkFigures& walks = cluster.page_walks;
  if (!(walks.probability >= 0 && walks.probability <= 1)) {
    checks.fail("the probability of a page walk is {}; it must be 0 to 1", walks.probability);
  }
  checks.number("cycles_min of page walks", walks.cycles_min, 0, kCyclesMax);
  checks.number("cycles_max of page walks", walks.cycles_max, walks.cycles_min, kCyclesMax);
  for (const InterruptionFigures& one : cluster.interruptions) {
    if (one.interval_mean > Time() && one.duration_min >= Time() &&
        one.duration_max >= one.duration_min) {
      continue;
    }
    checks.fail(
        "interruption '{}' comes every {} ns and takes {} to {} ns; the interval must be positive, "
        "and the durations in order",
        one.name, one.interval_mean.ns(), one.duration_min.ns(), one.duration_max.ns());
  }
}

void check_interconnect(const Checks& checks, const MailboxCluster& cluster) {
  const PacketizerFigures& packetizer = cluster.packetizer;
  checks.number("contexts", packetizer.contexts, 1, kQueueMax);
  checks.number("formation_cycles", packetizer.formation_cycles, 0, kCyclesMax);
  checks.number("payload_bytes_max", packetizer.payload_bytes_max, cluster.word_bytes, 1 << 20);
  checks.number("packets_unacknowledged_max", packetizer.packets_unacknowledged_max, 1, kQueueMax);
  checks.number("line_rate in bytes per second", cluster.ring.line_rate.bytes_per_second(), 1,
                INT64_MAX);
  checks.number("header_bytes", cluster.ring.header_bytes, 1, 1 << 20);
  checks.number("hop_latency in ps", cluster.ring.hop_latency.ps(), 0, INT64_MAX / 4);
  checks.number("depth_packets", cluster.mailbox.depth_packets, 1, kQueueMax);
  checks.number("enqueue_cycles", cluster.mailbox.enqueue_cycles, 0, kCyclesMax);
}

}  // namespace

std::shared_ptr<const MailboxCluster> build_mailbox_cluster(MailboxCluster cluster) {
  const Checks checks = checks_of(cluster);
  checks.number("nodes", cluster.nodes, 1, 100'000);
  checks.number("cores_per_node", cluster.cores_per_node, 1, 1024);
  checks.number("core_clock in Hz", cluster.core_clock.hz(), 1'000, 1'000'000'000'000);
  checks.number("interconnect_clock in Hz", cluster.interconnect_clock.hz(), 1'000,
                1'000'000'000'000);
  checks.number("word_bytes", cluster.word_bytes, 1, 4096);
  check_software(checks, cluster);
  check_disturbances(checks, cluster);
  check_interconnect(checks, cluster);
  return std::make_shared<const MailboxCluster>(std::move(cluster));
}

std::shared_ptr<const MailboxCluster> without_interruptions(const MailboxCluster& cluster) {
  auto calm = std::make_shared<MailboxCluster>(cluster);
  calm->interruptions.clear();
  return calm;
}

void check_programs_per_node(const MailboxCluster& cluster, int programs) {
  const int most = std::min(cluster.cores_per_node, cluster.packetizer.contexts);
  if (programs >= 1 && programs <= most) return;
  checks_of(cluster).fail("{} programs would run on a node; its cores and contexts are for 1 to {}",
                          programs, most);
}

}  // namespace towpath::machine
