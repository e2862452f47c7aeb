// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/machine/mailbox_cluster.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "towpath/machine/checks.hpp"
#include "towpath/machine/parameters.hpp"

namespace towpath::machine {

namespace {

constexpr double kNodesMax = 1024;
constexpr Allowed kPacketBytes = between(1, kCountMax);

constexpr Parameter kMailboxSoftwareParameters[] = {
    {TOWPATH_PARAMETER(MailboxSoftwareParameters, store_cycles), kAnyCycles, "a store"},
    {TOWPATH_PARAMETER(MailboxSoftwareParameters, load_cycles), kSomeCycles,
     "a load with the test or the store that uses it"},
    {TOWPATH_PARAMETER(MailboxSoftwareParameters, descriptor_words), kCount,
     "words of a packet's descriptor"},
    {TOWPATH_PARAMETER(MailboxSoftwareParameters, send_cycles), kAnyCycles,
     "from a call of send until its first store"},
    {TOWPATH_PARAMETER(MailboxSoftwareParameters, receive_cycles), kAnyCycles,
     "from a call of receive until its first load"},
    {TOWPATH_PARAMETER(MailboxSoftwareParameters, poll_cycles), kSomeCycles,
     "from one poll to the next"},
    {TOWPATH_PARAMETER(MailboxSoftwareParameters, release_cycles), kAnyCycles,
     "removing a packet from its mailbox after it was read"},
    {TOWPATH_PARAMETER(MailboxSoftwareParameters, cycle_counter_cycles), kAnyCycles,
     "reading the cycle counter"},
    {TOWPATH_PARAMETER(MailboxSoftwareParameters, responder_cycles), kAnyCycles,
     "from a message to the call of send of a program that answers"},
};

constexpr Parameter kPageWalkParameters[] = {
    {TOWPATH_PARAMETER(PageWalkParameters, probability), between(0, 1),
     "probability that a store walks pages"},
    {TOWPATH_PARAMETER(PageWalkParameters, cycles_min), kAnyCycles, "shortest walk"},
    {TOWPATH_PARAMETER(PageWalkParameters, cycles_max), kAnyCycles, "longest walk"},
};

constexpr Parameter kInterruptionParameters[] = {
    {"interval_mean_us", TOWPATH_MEMBER(InterruptionParameters, interval_mean), between(1e-6, 1e9),
     "mean time between two"},
    {"duration_min_us", TOWPATH_MEMBER(InterruptionParameters, duration_min), between(0, 1e9),
     "shortest one"},
    {"duration_max_us", TOWPATH_MEMBER(InterruptionParameters, duration_max), between(0, 1e9),
     "longest one"},
};

constexpr Parameter kPacketizerParameters[] = {
    {TOWPATH_PARAMETER(PacketizerParameters, contexts), kCount, "contexts of a node"},
    {TOWPATH_PARAMETER(PacketizerParameters, formation_cycles), kAnyCycles,
     "from the last store until the header leaves"},
    {TOWPATH_PARAMETER(PacketizerParameters, payload_bytes_max), kPacketBytes,
     "payload of the longest packet"},
    {TOWPATH_PARAMETER(PacketizerParameters, packets_unacknowledged_max), kCount,
     "unacknowledged packets of a context"},
};

constexpr Parameter kRingParameters[] = {
    {"line_rate_gb_per_s", TOWPATH_MEMBER(RingParameters, line_rate), kRateGbPerS,
     "rate of a link"},
    {TOWPATH_PARAMETER(RingParameters, header_bytes), kPacketBytes, "header of every packet"},
    {"hop_latency_ns", TOWPATH_MEMBER(RingParameters, hop_latency), kDurationNs,
     "time of a header from one node to the next; the payload follows it"},
};

constexpr Parameter kMailboxParameters[] = {
    {TOWPATH_PARAMETER(MailboxParameters, depth_packets), kCount, "packets that a mailbox holds"},
    {TOWPATH_PARAMETER(MailboxParameters, enqueue_cycles), kAnyCycles,
     "from a header's arrival until a load sees the whole packet"},
    {TOWPATH_PARAMETER(MailboxParameters, drops_when_full), kYesOrNo,
     "a full mailbox drops packets and tells the sender; otherwise packets and their senders wait",
     Form::flag},
};

constexpr Parameter kMailboxClusterParameters[] = {
    {TOWPATH_PARAMETER(MailboxCluster, nodes), between(1, kNodesMax), "nodes on the ring"},
    {TOWPATH_PARAMETER(MailboxCluster, cores_per_node), between(1, 1024), "cores of a node"},
    {"core_clock_mhz", TOWPATH_MEMBER(MailboxCluster, core_clock), between(1, kClockMaxMhz),
     "clock of the cores"},
    {"interconnect_clock_mhz", TOWPATH_MEMBER(MailboxCluster, interconnect_clock),
     between(1, kClockMaxMhz), "clock of packetizers and mailboxes"},
    {TOWPATH_PARAMETER(MailboxCluster, word_bytes), power_of_two(1, 64),
     "bytes of a store or load"},
};

constexpr BlockTable kMailboxClusterTables[] = {
    {"", 0, kMailboxClusterParameters},
    {"software", offsetof(MailboxCluster, software), kMailboxSoftwareParameters},
    {"page_walks", offsetof(MailboxCluster, page_walks), kPageWalkParameters},
    {"interruptions", offsetof(MailboxCluster, interruptions), kInterruptionParameters,
     Needed::always, &kListOf<InterruptionParameters>},
    {"packetizer", offsetof(MailboxCluster, packetizer), kPacketizerParameters},
    {"ring", offsetof(MailboxCluster, ring), kRingParameters},
    {"mailbox", offsetof(MailboxCluster, mailbox), kMailboxParameters},
};

Checks checks_of(const MailboxCluster& cluster) {
  return Checks(fmt::format("cluster '{}'", cluster.name));
}

// Constraints between parameters.
void check_across(const Checks& checks, const MailboxCluster& cluster) {
  checks.at_least("software.poll_cycles", cluster.software.poll_cycles,
                  cluster.software.load_cycles, "the load_cycles");
  checks.at_least("page_walks.cycles_max", cluster.page_walks.cycles_max,
                  cluster.page_walks.cycles_min, "the cycles_min");
  for (std::size_t i = 0; i < cluster.interruptions.size(); ++i) {
    const InterruptionParameters& interruption = cluster.interruptions[i];
    checks.at_least(fmt::format("interruptions[{}].duration_max_us", i),
                    interruption.duration_max.us(), interruption.duration_min.us(),
                    "the duration_min_us");
  }
  checks.at_least("packetizer.payload_bytes_max", cluster.packetizer.payload_bytes_max,
                  cluster.word_bytes, "the word_bytes");
}

}  // namespace

std::span<const BlockTable> mailbox_cluster_tables() { return kMailboxClusterTables; }

std::shared_ptr<const MailboxCluster> build_mailbox_cluster(MailboxCluster cluster) {
  const Checks checks = checks_of(cluster);
  for (const BlockTable& table : mailbox_cluster_tables()) checks.blocks(&cluster, table);
  check_across(checks, cluster);
  return std::make_shared<const MailboxCluster>(std::move(cluster));
}

std::shared_ptr<const MailboxCluster> without_interruptions(const MailboxCluster& cluster) {
  auto quiet = std::make_shared<MailboxCluster>(cluster);
  quiet->interruptions.clear();
  return quiet;
}

void check_programs_per_node(const MailboxCluster& cluster, int programs) {
  const int most = std::min(cluster.cores_per_node, cluster.packetizer.contexts);
  if (programs >= 1 && programs <= most) return;
  checks_of(cluster).fail(
      "{} programs would run on a node; it must have 1 to {}, by its cores and contexts", programs,
      most);
}

}  // namespace towpath::machine
